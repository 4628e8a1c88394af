"""Creation operators: memory, leaves, levels and refused arguments, which tests/parity does not compare."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing import assert_close

MAKERS = {
    "zeros": lambda **k: rg.zeros(2, 3, **k),
    "ones": lambda **k: rg.ones(2, 3, **k),
    "empty": lambda **k: rg.empty(2, 3, **k),
    "full": lambda **k: rg.full((2, 3), 1.5, **k),
    "eye": lambda **k: rg.eye(2, **k),
    "arange": lambda **k: rg.arange(3.0, **k),
    "linspace": lambda **k: rg.linspace(0, 1, 3, **k),
    "logspace": lambda **k: rg.logspace(0, 1, 3, **k),
    "empty_strided": lambda **k: rg.empty_strided((2, 3), (1, 2), **k),
    "empty_permuted": lambda **k: rg.empty_permuted((2, 3), (1, 0), **k),
    "scalar_tensor": lambda **k: rg.scalar_tensor(2.5, **k),
    "zeros_like": lambda **k: rg.zeros_like(rg.ones(2), **k),
    "rand": lambda **k: rg.rand(2, 3, **k),
    "randn_like": lambda **k: rg.randn_like(rg.ones(2), **k),
    "normal": lambda **k: rg.normal(0.0, 1.0, (2,), **k),
    "hann_window": lambda **k: rg.hann_window(4, **k),
    "signal.windows.kaiser": lambda **k: rg.signal.windows.kaiser(4, **k),
    "new_zeros": lambda **k: rg.ones(2).new_zeros(3, **k),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
class TestEveryMaker:
    def test_takes_the_keywords_that_all_share(self, make):
        x = make(dtype=rg.float64, device="cpu", layout=rg.strided, pin_memory=False, requires_grad=True)
        assert (x.dtype, x.is_leaf, x.requires_grad) == (rg.float64, True, True)

    def test_makes_leaves_that_do_not_require_grad_by_default(self, make):
        assert not make().requires_grad

    @pytest.mark.parametrize("keywords", [{"device": "cuda"}, {"layout": rg.jagged}, {"pin_memory": True}])
    def test_refuses_what_is_not_there(self, make, keywords):
        with pytest.raises(RuntimeError, match=next(iter(keywords))):
            make(**keywords)

    def test_refuses_keywords_that_nobody_knows(self, make):
        with pytest.raises(TypeError, match="colour"):
            make(colour="red")

    def test_writes_into_out_in_its_dtype(self, make):
        out = make(dtype=rg.float64).clone().fill_(7.0)
        if make not in (MAKERS["zeros_like"], MAKERS["randn_like"]):
            assert make(out=out) is out
            assert (out != 7.0).any() or out.numel() == 0
        other = rg.zeros(99)
        assert make(out=other) is other
        assert other.shape == make().shape


def test_help_shows_the_signature_and_what_it_does():
    parameters = inspect.signature(rg.zeros).parameters
    assert list(parameters)[:2] == ["size", "dtype"]
    assert parameters["size"].kind is inspect.Parameter.VAR_POSITIONAL
    assert {"out", "device", "layout", "pin_memory", "memory_format", "requires_grad"} <= set(parameters)
    assert rg.zeros.__doc__.startswith("Zeros of the given shape")


def test_sizes_come_one_by_one_or_together_or_not_at_all():
    assert [rg.zeros(2, 3).shape, rg.zeros((2, 3)).shape, rg.zeros(size=[2, 3]).shape] == [(2, 3)] * 3
    assert [rg.rand(*()).shape, rg.ones(()).shape, rg.empty(()).shape, rg.ones(2).new_zeros(()).shape] == [()] * 4
    assert rg.zeros(np.int64(2), np.int64(3)).shape == (2, 3)


def test_integers_can_not_require_gradients():
    with pytest.raises(RuntimeError, match="floating"):
        rg.arange(3, requires_grad=True)


def test_tensors_made_inside_a_transform_belong_to_it():
    assert rg.func.grad(lambda x: (x * rg.full((3,), 2.0)).sum())(rg.ones(3)).tolist() == [2.0] * 3
    assert rg.func.grad(lambda x: (x * x.new_ones(3)).sum())(rg.ones(3)).tolist() == [1.0] * 3


def test_makers_are_part_of_a_trace():
    graph = rg.fx.trace(lambda x: x + rg.zeros_like(x) + rg.linspace(0, 1, 2), rg.ones(2))
    assert {"zeros_like", "linspace"} <= {node.target.name for node in graph.graph.nodes if node.op == "call_function"}


# ------------------------------------------------------------------------------------------------ from data


def test_memory_is_shared_where_it_can_be():
    array = np.zeros(3)
    shared = [rg.from_numpy(array), rg.as_tensor(array), rg.asarray(array), rg.from_dlpack(array)]
    array[0] = 5.0
    assert [x[0].item() for x in shared] == [5.0] * 4
    assert [x[0].item() for x in (rg.tensor(np.zeros(3)), rg.asarray(array, copy=True))] == [0.0, 5.0]
    x = rg.zeros(3)
    assert rg.asarray(x) is x is rg.as_tensor(x)
    assert np.shares_memory(np.from_dlpack(x), x.numpy())
    assert np.shares_memory(rg.from_dlpack(x).numpy(), x.numpy())


@pytest.mark.parametrize("dtype", [">f4", "<f4", ">i8", "<i8", ">c16"])
def test_numbers_in_another_order_of_bytes_are_copied_or_refused(dtype):
    array = np.arange(3).astype(dtype)
    for make in (rg.tensor, rg.as_tensor, rg.asarray):
        assert make(array).dtype == np.dtype(dtype).newbyteorder("=")
        assert make(array).tolist() == [0, 1, 2]
    if array.dtype.isnative:
        assert np.shares_memory(rg.from_numpy(array).numpy(), array)
    else:
        with pytest.raises(ValueError, match="another order of bytes"):
            rg.from_numpy(array)


def test_a_copy_is_a_copy():
    array = np.zeros(3)
    assert not np.shares_memory(rg.asarray(array, copy=True).numpy(), array)
    assert not np.shares_memory(rg.from_dlpack(array, copy=True).numpy(), array)
    assert not np.shares_memory(rg.tensor(array).numpy(), array)


@pytest.mark.parametrize("data", [[1.0, 2.0], 3.0, np.zeros(2, "float32")])
def test_conversions_that_need_a_copy_are_refused_without_copy(data):
    with pytest.raises(ValueError, match="without a copy"):
        rg.asarray(data, dtype=rg.float64, copy=False)


def test_buffers_become_tensors_of_their_memory():
    memory = bytearray(8)
    x = rg.frombuffer(memory, dtype=rg.int32)
    x[1] = 7
    assert memory[4] == 7
    assert rg.asarray(memoryview(memory)).shape == (8,)
    with pytest.raises(RuntimeError, match="read-only"):
        rg.frombuffer(b"abcd", dtype=rg.uint8).fill_(0)


def test_dlpack_says_where_it_is_and_refuses_to_lose_gradients():
    assert rg.ones(2).__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="detach"):
        np.from_dlpack(rg.ones(2, requires_grad=True))


def test_new_tensors_take_the_dtype_of_the_old_one():
    x = rg.ones(2, dtype=rg.float64)
    made = [x.new_zeros(2), x.new_ones(2), x.new_full((2,), 3), x.new_empty(2), x.new_tensor([1, 2])]
    assert {m.dtype for m in made} == {rg.float64}
    assert x.new_zeros(2, dtype=rg.int32).dtype == rg.int32


@pytest.mark.parametrize("order", [(0,), (0, 0), (1, 2), (-1, 0)])
def test_an_order_of_memory_that_is_no_order_of_the_dimensions_is_refused(order):
    with pytest.raises(ValueError, match="physical_layout must order the 2 dimensions"):
        rg.empty_permuted((1, 2), order)


def test_strides_are_the_requested_ones():
    x = rg.empty_strided((2, 3), (1, 2))
    assert (x.stride(), x.T.is_contiguous()) == ((1, 2), True)
    x[1, 2] = 5.0
    assert x.sum() == 5.0
    assert rg.empty_strided((0, 3), (3, 1)).shape == (0, 3)


# ----------------------------------------------------------------------------------------------- devices


def test_a_device_equals_its_name_and_goes_through_pickle():
    cpu = rg.device("cpu")
    assert cpu == "cpu" == rg.ones(1).device
    assert {cpu: 1}["cpu"] == 1
    assert rg.device("cuda", 1) == rg.device("cuda:1") != cpu
    assert pickle.loads(pickle.dumps(cpu)) == copy.deepcopy(cpu) == cpu
    with pytest.raises(RuntimeError, match="'gpu'"):
        rg.device("gpu")


def test_constants_print_as_they_are_written_and_stay_the_same_objects():
    assert repr(rg.channels_last) == "retrograd.channels_last"
    for constant in (rg.strided, rg.jagged, rg.channels_last, rg.contiguous_format):
        assert pickle.loads(pickle.dumps(constant)) is constant
    assert isinstance(rg.strided, rg.layout)
    assert isinstance(rg.preserve_format, rg.memory_format)


def test_sizes_are_tuples():
    size = rg.Size([2, 3])
    assert (size, size.numel(), size[0]) == ((2, 3), 6, 2)
    assert all(type(s) is rg.Size for s in (size[1:], size + rg.Size([4]), size * 2, 2 * size))
    assert rg.zeros(size).shape == (2, 3)
    assert not isinstance([2, 3], rg.Size)
    with pytest.raises(TypeError, match=r"2\.5 at position 1"):
        rg.Size([1, 2.5])


def test_the_default_device_is_the_cpu_and_stays_it():
    rg.set_default_device("cpu")
    assert rg.get_default_device() == "cpu"
    with pytest.raises(RuntimeError, match="'cuda'"):
        rg.set_default_device("cuda")


def test_objects_without_dlpack_are_refused():
    with pytest.raises(TypeError, match="from_dlpack: expected an array that knows DLPack, got int"):
        rg.from_dlpack(3)


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b: rg.linspace(a, b, 5),
        lambda a, b: rg.linspace(a, 2, 4, dtype=rg.float64),
        lambda a, b: rg.linspace(-1.0, b, 1),
        lambda a, b: rg.linspace(a, b, 0),
        lambda a, b: rg.logspace(a, b, 3),
        lambda a, b: rg.logspace(0, 1, 3, base=2 + a * a),
    ],
)
def test_steps_between_tensors_are_those_between_numbers_with_derivatives_and_in_batches(f):
    rows = rg.tensor([[0.5, 1.5], [-1.0, 2.0], [0.0, 0.0]], dtype=rg.float64)
    alone = rg.stack([f(*row.tolist()) for row in rows])
    assert_close(rg.func.vmap(f)(*rows.unbind(1)), alone)
    a, b = (x.detach().requires_grad_() for x in rows[0])
    assert f(a, b).dtype == alone.dtype
    assert_close(f(a, b), alone[0])
    if alone.dtype == rg.float64 and alone.numel():
        assert rg.autograd.gradcheck(f, (a, b))


def test_ends_of_steps_have_no_dimensions():
    with pytest.raises(RuntimeError, match=r"linspace: end must be a number or a tensor.*, got shape \(1,\)"):
        rg.linspace(0, rg.ones(1), 3)
    with pytest.raises(RuntimeError, match="logspace: base must be a number"):
        rg.logspace(0, 1, 3, base=rg.ones(2))


def test_tangents_flow_through_steps():
    with rg.autograd.forward_ad.dual_level():
        end = rg.autograd.forward_ad.make_dual(rg.tensor(2.0), rg.tensor(1.0))
        out = rg.autograd.forward_ad.unpack_dual(rg.linspace(0, end, 3))
    assert out.tangent.tolist() == [0.0, 0.5, 1.0]
