"""Tensor methods that are not operators."""

import copy
import math
import pickle

import numpy as np
import pytest

import retrograd as rg


def test_arrays_share_memory_unless_a_copy_is_requested():
    x = rg.zeros(3)
    assert np.shares_memory(np.asarray(x), x.numpy())
    for other in (np.array(x), np.array(x, copy=True), np.asarray(x, dtype=np.float64)):
        other[0] = 99.0
    assert x.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="float64 without a copy"):
        np.array(x, dtype=np.float64, copy=False)


def test_numpy_refuses_a_tensor_whose_gradients_would_be_lost():
    with pytest.raises(RuntimeError, match="detach"):
        rg.ones(2, requires_grad=True).numpy()
    assert rg.ones(2, requires_grad=True).numpy(force=True).tolist() == [1.0, 1.0]


def test_sequences_are_repeated_and_extended_by_tensors():
    count, labels = rg.tensor(2), rg.tensor([3, 4])
    assert [0] * count == [0, 0]
    assert count * "ab" == "abab"
    assert (1, 2) * count == (1, 2, 1, 2)
    collected = [1]
    collected += labels
    assert [int(label) for label in collected] == [1, 3, 4]
    with pytest.raises(TypeError, match="concatenate list"):
        [1, 2] + labels  # noqa: RUF005
    with pytest.raises(TypeError, match="got list"):
        labels + [1, 2]  # noqa: RUF005
    with pytest.raises(TypeError, match="deleting items"):
        del labels[0]


def test_masks_combine():
    x = rg.arange(6)
    assert ((x > 1) & (x < 4)).tolist() == [False, False, True, True, False, False]
    assert ((x < 1) | (x > 4)).tolist() == [True, False, False, False, False, True]
    assert ((x > 1) ^ (x > 3)).tolist() == [False, False, True, True, False, False]
    assert (~(x > 1)).tolist() == [True, True, False, False, False, False]
    assert (6 & x).tolist() == [0, 0, 2, 2, 4, 4]
    with pytest.raises(TypeError):
        rg.ones(2) & rg.ones(2)


def test_contiguous_works_at_every_level():
    x = rg.arange(6).double().reshape(2, 3)
    assert x.contiguous() is x
    assert x.T.contiguous().numpy().flags.c_contiguous
    assert rg.func.grad(lambda y: (y.T.contiguous() * 2).sum())(x).tolist() == [[2.0] * 3] * 2


@pytest.mark.parametrize(("value", "convert"), [(2.5, float), (3, int), (1 + 2j, complex), (True, bool)])
def test_one_element_converts_to_a_python_number(value, convert):
    assert convert(rg.tensor(value)) == value
    assert rg.tensor([value]).item() == value


def test_several_elements_have_no_truth_and_no_item():
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(rg.ones(2))
    with pytest.raises(ValueError, match="one element"):
        rg.ones(2).item()


def test_tensors_print_as_they_would_be_written():
    assert repr(rg.tensor([1.5, 2.0])) == "tensor([1.5000, 2.0000])"
    assert repr(rg.tensor([1.0], dtype=rg.float64, requires_grad=True)) == (
        "tensor([1.], dtype=float64, requires_grad=True)"
    )
    assert repr(rg.tensor([[1], [2]])) == "tensor([[1],\n        [2]])"
    assert "grad_fn=<MulBackward0" in repr(rg.ones(1, requires_grad=True) * 2)


def test_iteration_length_and_membership():
    x = rg.arange(3)
    assert [int(i) for i in x] == [0, 1, 2]
    assert len(x) == 3
    assert 2 in x
    assert 5 not in x
    with pytest.raises(TypeError, match="0-d tensor"):
        len(rg.ones(()))


def test_scalars_format_like_numbers():
    assert f"{rg.tensor(1.25):.1f}" == "1.2"
    assert f"{rg.ones(2)}" == "tensor([1., 1.])"


def test_results_of_operators_refuse_to_be_copied_with_their_graph():
    y = rg.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="leaves"):
        copy.deepcopy(y)
    loaded = pickle.loads(pickle.dumps(y))  # the value, as a leaf
    assert (loaded.tolist(), loaded.requires_grad, loaded.is_leaf) == ([2.0, 2.0], True, True)
    x = rg.ones(2, requires_grad=True)
    assert pickle.loads(pickle.dumps(x)).requires_grad
    assert copy.deepcopy(x).tolist() == [1.0, 1.0]


# ------------------------------------------------------------------------------------------------ conversions


def test_a_conversion_to_what_it_is_already_is_the_tensor_itself():
    x = rg.ones(2)
    same = [x.to(rg.float32), x.to("cpu"), x.to(rg.device("cpu"), rg.float32), x.to(rg.zeros(1)), x.float(), x.cpu()]
    same += [x.to(dtype=rg.float32), x.to(device="cpu"), x.type(rg.float32), x.type_as(rg.zeros(1)), x.contiguous()]
    assert all(y is x for y in same)


def test_a_copy_is_made_on_request():
    x = rg.ones(2)
    for y in (x.to(rg.float32, copy=True), x.to("cpu", copy=True), x.to(rg.float32, False, True), x.clone()):
        assert y is not x
        assert not np.shares_memory(y.numpy(), x.numpy())


@pytest.mark.parametrize("target", ["float64", np.float64, float, rg.float64])
def test_a_dtype_may_be_named_in_several_ways(target):
    assert rg.ones(2).to(target).dtype == rg.float64
    assert rg.ones(2).to(dtype=target).dtype == rg.float64


def test_gradients_pass_through_conversions():
    x = rg.ones(2, requires_grad=True)
    (x.double() * x.to("cpu", rg.float64) + x.clone(memory_format=rg.contiguous_format)).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (rg.float32, [3.0, 3.0])


@pytest.mark.parametrize("move", [lambda x: x.to("cuda"), lambda x: x.to(device="cuda:1"), lambda x: x.cuda()])
def test_other_devices_are_refused_by_name(move):
    with pytest.raises(RuntimeError, match="cuda"):
        move(rg.ones(2))


def test_classes_by_dtype_make_tensors_and_know_them():
    assert rg.FloatTensor(2, 3).aval == rg.FloatTensor(rg.ones(2, 3).shape).aval == rg.ones(2, 3).aval
    assert rg.LongTensor([1, 2]).tolist() == [1, 2]
    assert isinstance(rg.ones(2).double(), rg.DoubleTensor)
    assert not isinstance(rg.ones(2), rg.DoubleTensor)
    assert rg.ones(1).half().type() == rg.typename(rg.ones(1).half()) == "retrograd.HalfTensor"
    assert rg.ones(1).cfloat().type() == "retrograd.ComplexFloatTensor"
    assert rg.typename(rg.nn.Linear(1, 1)) == "retrograd.nn.linear.Linear"
    assert rg.typename(math.sqrt) == "math.sqrt"
    with pytest.raises(TypeError, match="LongTensor: expected dtype int64, got float32"):
        rg.LongTensor(rg.ones(2))


# ----------------------------------------------------------------------------------------------------- memory


def test_strides_and_offsets_count_elements():
    x = rg.zeros(4, 6)
    part = x[1:, ::2]
    assert (part.stride(), part.storage_offset(), part.stride(-1)) == ((6, 2), 6, 2)
    assert part.data_ptr() == x.data_ptr() + 6 * x.element_size()
    assert (x.itemsize, x.nbytes, part.nbytes) == (4, 96, 36)


def test_memory_formats_order_the_strides():
    x = rg.arange(120.0).reshape(2, 3, 4, 5).requires_grad_()
    y = x.contiguous(memory_format=rg.channels_last)
    assert (y.stride(), y.tolist()) == ((60, 1, 15, 3), x.tolist())
    assert y.is_contiguous(memory_format=rg.channels_last)
    assert not y.is_contiguous()
    assert y.contiguous(memory_format=rg.channels_last) is y
    assert y.clone().stride() == y.stride()
    (y * y).sum().backward()
    assert x.grad.tolist() == (2 * x).tolist()
    with pytest.raises(RuntimeError, match="channels_last is for 4 dimensions, got 2"):
        rg.ones(2, 3).contiguous(memory_format=rg.channels_last)


def test_memory_is_not_pinned_without_a_gpu():
    x = rg.ones(2)
    assert not any([x.is_pinned(), x.is_shared(), x.is_cuda, x.is_sparse, x.is_quantized])
    with pytest.raises(RuntimeError, match="pin_memory"):
        x.pin_memory()


@pytest.mark.parametrize("dtype", ["float32", "bool", "bfloat16"])
def test_share_memory_moves_the_elements_and_keeps_the_strides_and_the_graph(dtype):
    x = rg.arange(6).reshape(2, 3).to(dtype).T.contiguous().T
    strides, values = x.stride(), x.tolist()
    assert x.share_memory_() is x
    assert (x.is_shared(), x.stride(), x.tolist()) == (True, strides, values)
    address = x.data_ptr()
    assert x.share_memory_().data_ptr() == address
    assert x[1:].is_shared()
    assert x.untyped_storage().is_shared()
    assert not x.clone().is_shared()
    copied = pickle.loads(pickle.dumps(x))
    assert (copied.is_shared(), copied.tolist()) == (False, values)


def test_shared_parameters_are_trained_in_place():
    model = rg.nn.Linear(2, 1)
    square = (model(rg.ones(1, 2)) ** 2).sum()
    assert model.share_memory() is model
    square.backward()
    optimizer = rg.optim.SGD(model.parameters(), lr=0.1)
    weight, before = model.weight.detach(), model.weight.tolist()
    optimizer.step()
    assert weight.tolist() == model.weight.tolist() != before
    assert all(p.is_shared() for p in model.parameters())
    assert rg.zeros(0).share_memory_().is_shared()


def test_share_memory_refuses_tensors_of_transforms_and_sparse_ones():
    with pytest.raises(RuntimeError, match="share_memory_: only plain tensors"):
        rg.func.vmap(lambda x: x.share_memory_())(rg.ones(2))
    with pytest.raises((RuntimeError, NotImplementedError), match="share_memory_"):
        rg.eye(2).to_sparse().share_memory_()


def test_python_functions_replace_elements():
    x = rg.arange(4).reshape(2, 2).T
    assert x.apply_(lambda v: v * v) is x
    assert x.tolist() == [[0, 4], [1, 9]]
    assert x.map_(rg.tensor([1, 2]), lambda a, b: a + b).tolist() == [[1, 6], [2, 11]]
    with pytest.raises(RuntimeError, match="apply_: gradients"):
        rg.ones(2, requires_grad=True).apply_(abs)


# -------------------------------------------------------------------------------------------- Python's operators


def test_augmented_operators_write_into_the_tensor():
    x = rg.tensor([5, 6, 7])
    same = x
    x &= 6
    x |= 1
    x ^= 2
    x <<= 2
    x >>= 1
    x //= 3
    x %= 5
    x **= 2
    assert x is same
    expected = ((((np.array([5, 6, 7]) & 6 | 1) ^ 2) << 2 >> 1) // 3 % 5) ** 2
    assert x.tolist() == expected.tolist()


def test_shifts_divmod_and_reversed():
    x = rg.tensor([1, 2, 7])
    assert ((x << 1).tolist(), (x >> 1).tolist()) == ([2, 4, 14], [0, 1, 3])
    assert ((1 << x).tolist(), (128 >> x).tolist()) == ([2, 4, 128], [64, 32, 1])
    assert [part.tolist() for part in divmod(x, 2)] == [[0, 1, 3], [1, 0, 1]]
    assert [part.tolist() for part in divmod(7, x)] == [[7, 3, 1], [0, 1, 0]]
    assert reversed(x).tolist() == [7, 2, 1]


def test_functions_that_write_are_there_for_operators_of_one_tensor():
    x = rg.ones(2)
    assert rg.sqrt_(x) is x
    assert rg.log_(x).tolist() == [0.0, 0.0]
    assert rg.exp_(x).tolist() == [1.0, 1.0]
    assert rg.zero_(x).tolist() == [0.0, 0.0]
    assert rg.fill_(x, 2.0).tolist() == [2.0, 2.0]
    assert not hasattr(rg, "add_")


def test_facts_about_tensors():
    x = rg.ones(2, 3)
    assert (rg.numel(x), x.nelement(), x.ndimension()) == (6, 6, 2)
    assert rg.is_tensor(x)
    assert not rg.is_tensor(x.numpy())
    assert rg.is_same_size(x, x * 2)
    assert rg.is_nonzero(rg.tensor([2.0]))
    assert not rg.is_conj(x.cfloat().conj())
    assert x.is_signed()
    with rg.inference_mode():
        assert rg.is_inference(x * 2)
    with pytest.raises(RuntimeError, match="ambiguous"):
        rg.is_nonzero(x)


# ----------------------------------------------------------------------------------------------------- printing


@pytest.fixture
def default_print():
    yield
    rg.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("options", "data", "expected"),
    [
        ({"precision": 2}, [1 / 3], "tensor([0.33])"),
        ({"sci_mode": True}, [1500.0], "tensor([1.5000e+03])"),
        ({"sci_mode": True, "precision": 1}, [1500.0], "tensor([1.5e+03])"),
        ({"sci_mode": False}, [1e-9, 1.0], "tensor([0.0000, 1.0000])"),
        ({"threshold": 4, "edgeitems": 1}, [1.0] * 9, "tensor([1.,  ..., 1.])"),
        ({"linewidth": 20}, [1.0] * 5, "tensor([1., 1., 1.,\n        1., 1.])"),
        ({"profile": "short"}, [1 / 3], "tensor([0.33])"),
    ],
)
def test_options_change_how_tensors_print(options, data, expected, default_print):
    before = repr(rg.tensor(data))
    rg.set_printoptions(**options)
    assert repr(rg.tensor(data)) == expected != before
    rg.set_printoptions(profile="default")
    assert repr(rg.tensor(data)) == before


def test_a_profile_that_there_is_not_is_refused(default_print):
    with pytest.raises(ValueError, match="'long'"):
        rg.set_printoptions(profile="long")


def test_the_warning_setting_is_remembered():
    rg.set_warn_always(True)
    assert rg.is_warn_always_enabled()
    rg.set_warn_always(False)
    assert not rg.is_warn_always_enabled()


@pytest.mark.parametrize("convert", [float, complex, math.sin])
def test_a_number_made_of_a_tensor_in_a_graph_warns_that_the_gradient_ends(convert):
    x = rg.tensor(2.0, requires_grad=True)
    with pytest.warns(UserWarning, match="no gradient flows through"):
        convert(x)
    assert convert(x.detach()) == convert(2.0)
    assert x.item() == 2.0


def test_tensors_without_elements_print_their_size_and_complex_ones_no_obvious_dtype():
    assert repr(rg.zeros(0)) == "tensor([])"
    assert repr(rg.zeros(0, 3, dtype=rg.float64)) == "tensor([], size=(0, 3), dtype=float64)"
    assert repr(rg.tensor([1j])) == "tensor([0.+1.j])"
    assert repr(rg.tensor([1j], dtype=rg.complex128)) == "tensor([0.+1.j], dtype=complex128)"


def test_the_class_of_tensors_says_how_tensors_are_made_of_data():
    for data in (2.5, "ab", {}, np.float32(2)):
        with pytest.raises(TypeError, match=r"Tensor: expected an array, a list or sizes, got .*; rg\.tensor\(data\)"):
            rg.Tensor(data)
    with pytest.raises(TypeError, match=r"got \(2, 3\); .*; a tuple of integers could be either"):
        rg.Tensor((2, 3))


def test_the_class_of_tensors_makes_tensors_of_lists_and_of_sizes_as_the_legacy_classes_do():
    for x, shape in (
        (rg.Tensor(), (0,)),
        (rg.Tensor(3), (3,)),
        (rg.Tensor(2, 3), (2, 3)),
        (rg.Tensor(1, 2, 3, 4, 5), (1, 2, 3, 4, 5)),
        (rg.Tensor(rg.Size([2, 3])), (2, 3)),
        (rg.Tensor(np.int64(2), 3), (2, 3)),
        (rg.Tensor([[1, 2], [3, 4]]), (2, 2)),
        (rg.Tensor(((1, 2), (3, 4))), (2, 2)),
        (rg.Tensor((0.5, 1)), (2,)),
        (rg.Tensor(range(3)), (3,)),
        (rg.Tensor(()), (0,)),
        (rg.Tensor(np.arange(3)), (3,)),
        (rg.Tensor(np.ones((2, 1))), (2, 1)),
    ):
        assert (x.shape, x.dtype, x.requires_grad) == (shape, rg.float32, False)
    assert rg.Tensor([True, False]).tolist() == [1.0, 0.0]
    array = np.ones(2, np.float32)
    x = rg.Tensor(array)
    array[0] = 5
    assert x.tolist() == [5.0, 1.0]  # an array of the default dtype shares its memory
    assert rg.ones(1, dtype=rg.int64).new([1, 2]).dtype == rg.int64


def test_functions_that_write_are_there_as_in_pytorch():
    x = rg.tensor([1.0, 5.0])
    assert rg.clamp_(x, 0, 2) is x
    assert rg.index_put_(x, (rg.tensor([0]),), rg.tensor(7.0)).tolist() == [7.0, 2.0]
    assert rg.get_device(x) == -1


def test_without_a_graph_a_tensor_that_requires_grad_is_an_array():
    x = rg.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with rg.no_grad():
        assert (x.numpy().tolist(), np.asarray(x * 2).tolist()) == ([1.0, 1.0], [2.0, 2.0])
        with pytest.raises(RuntimeError, match="has a tangent"):
            rg.func.jvp(rg.Tensor.numpy, (x,), (x.detach(),))


def test_a_tensor_of_other_dimensions_has_no_memory_format_of_images():
    formats = (rg.channels_last, rg.channels_last_3d)
    found = [rg.ones(shape).is_contiguous(memory_format=f) for shape in ((2, 3), (1, 2, 3, 4, 5)) for f in formats]
    assert found == [False, False, False, False]
    with pytest.raises(RuntimeError, match="is for 4 dimensions, got 2"):
        rg.ones(2, 3).contiguous(memory_format=rg.channels_last)


def test_sums_of_sizes_and_tuples_are_sizes():
    size, one = rg.Size([2]), (1,)
    assert (one + size, size + one) == ((1, 2), (2, 1))
    assert type(one + size) is type(size + one) is rg.Size
    with pytest.raises(TypeError):
        list(one) + size


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda: rg.ones(1).unflatten(0, []), RuntimeError, "sizes must be non-empty"),
        (lambda: rg.tensor(1).unflatten(0, [1]), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
        (lambda: rg.unravel_index(rg.tensor(0), (2, -3)), ValueError, r"negative values, but got \(2, -3\)"),
        (lambda: rg.broadcast_shapes((1, -12), 1), ValueError, r"must not be negative, got \(1, -12\) and \(1,\)"),
        (lambda: rg.empty(3, dtype=rg.bool).random_(0, 3), ValueError, "bool does not hold the integers from 0 to 2"),
        (lambda: rg.device("cuda:"), RuntimeError, "got 'cuda:'"),
        (lambda: rg.device("cuda:01"), RuntimeError, "got 'cuda:01'"),
        (lambda: rg.device("cpu", -1), RuntimeError, "device: expected one of"),
        (lambda: rg.ones(3).type("foo"), ValueError, "type: invalid type: 'foo'"),
    ],
)
def test_sizes_devices_and_types_that_do_not_exist_are_refused(use, error, message):
    with pytest.raises(error, match=message):
        use()


def test_a_number_without_memory_is_formatted_as_it_is_printed():
    x = rg.empty((), device="meta")
    assert f"{x}" == str(x)
