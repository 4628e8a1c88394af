"""Attributes of nested tensors, and Python's protocols on them."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import retrograd as rg
from retrograd.interop.safetensors import save_file
from retrograd.nested import as_nested_tensor, nested_tensor, nested_tensor_from_jagged


def jagged(**given):
    return nested_tensor([[1.0, 2.0], [3.0]], **given)


def holes():
    return nested_tensor_from_jagged(rg.arange(5.0), [0, 2, 5], [1, 2])


SETS = [[[1.0, 2.0], [3.0]], [[4.0]]]


def test_shape_and_sizes():
    x = nested_tensor([rg.ones(2, 4), rg.ones(1, 4)])
    assert str(x.shape) == str(x.size()) == "(2, j, 4)"
    assert (x.ndim, x.dim(), x.size(0), x.size(-1), len(x)) == (3, 3, 2, 4, 2)
    assert (x.numel(), x.size, x.nbytes, x.itemsize) == (12, 12, 48, 4)
    assert x._nested_tensor_size().tolist() == [[2, 4], [1, 4]]


@pytest.mark.parametrize("dim", [1, -2])
def test_a_ragged_dimension_has_no_size(dim):
    with pytest.raises(
        RuntimeError, match=r"differs between the components \(2, 1\).*offsets\(\) and to_padded_tensor"
    ):
        nested_tensor([rg.ones(2, 4), rg.ones(1, 4)]).size(dim)


def test_values_and_offsets_and_lengths():
    x = jagged(requires_grad=True)
    assert x.values().tolist() == [1.0, 2.0, 3.0]
    x.values().sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0], [1.0]]
    assert x.offsets().tolist() == [0, 2, 3]
    assert x.lengths() is None
    assert holes().lengths().tolist() == [1, 2]


def test_offsets_that_a_program_writes_to_are_its_own():
    x = jagged()
    x.offsets().fill_(7)
    assert x.offsets().tolist() == [0, 2, 3]
    y = holes()
    y.lengths().fill_(7)
    y.offsets().fill_(7)
    assert y.tolist() == [[0.0], [2.0, 3.0]]


@pytest.mark.parametrize("name", ["offsets", "lengths", "_nested_tensor_size"])
def test_dense_tensors_have_no_buffer(name):
    with pytest.raises(RuntimeError, match=rf"{name}\(\): expected a nested tensor, got a tensor of shape \(2,\)"):
        getattr(rg.ones(2), name)()


def test_nested_and_dense_tensors_can_be_distinguished():
    assert jagged().is_nested is True
    assert rg.ones(2).is_nested is False
    assert jagged().values().is_nested is False


def test_importing_the_library_does_not_import_nested_tensors():
    program = (
        "import sys, retrograd as rg\n"
        "assert rg.ones(2).is_nested is False\n"
        "assert not [m for m in sys.modules if m.startswith(('retrograd.nested', 'pyarrow', 'awkward'))]\n"
        "assert rg.nested.nested_tensor([[1.0]]).is_nested\n"
        "assert not [m for m in sys.modules if m.startswith(('pyarrow', 'awkward'))]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_inside_a_batch_each_example_reports_its_own_value():
    x = jagged()
    seen = []

    def f(a):
        y = x * a
        seen.append((str(y.shape), y.numel(), y.is_nested, y.values().shape, y.lengths(), len(y), y.layout, y.nbytes))
        return y, y.offsets(), y._nested_tensor_size()

    out, offsets, sizes = rg.vmap(f)(rg.tensor([1.0, 2.0]))
    assert seen == [("(2, j)", 3, True, (3,), None, 2, rg.strided, 12)]
    assert offsets.tolist() == [[0, 2, 3]] * 2
    assert sizes.tolist() == [[[2], [1]]] * 2
    assert out.tolist() == [[[1.0, 2.0], [3.0]], [[2.0, 4.0], [6.0]]]


# -------------------------------------------------------------------------------- Python's and NumPy's protocols


def test_iteration_gives_the_components_with_their_gradients():
    x = jagged(requires_grad=True)
    first, second = x
    (first.sum() + 5 * second.sum()).backward()
    assert x.grad.tolist() == [[1.0, 1.0], [5.0]]
    assert [c.tolist() for c in nested_tensor(SETS)] == SETS


@pytest.mark.parametrize("read", [rg.Tensor.numpy, np.asarray, lambda x: x.numpy(force=True), rg.Tensor.__dlpack__])
def test_a_nested_tensor_is_no_array_and_says_what_is(read):
    with pytest.raises(RuntimeError, match=r"no NumPy array: see unbind\(\).*values\(\).*to_padded_tensor"):
        read(jagged())


def test_a_nested_tensor_has_no_strides():
    with pytest.raises(RuntimeError, match="no strides"):
        jagged().stride()


def test_one_element_is_a_number():
    x = nested_tensor([[], [5.0]])
    assert (x.item(), float(x), int(x), bool(x)) == (5.0, 5.0, 5, True)
    assert nested_tensor_from_jagged(rg.arange(5.0), [0, 3, 5], [0, 1]).item() == 3.0
    with pytest.raises(ValueError, match=r"only one element tensors .*; got shape \(2, j\)"):
        jagged().item()
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(jagged())


def test_identity_is_what_hash_compares_and_equality_is_by_element():
    x = jagged()
    assert hash(x) != hash(jagged())
    assert (x == nested_tensor([[1.0, 0.0], [3.0]])).tolist() == [[True, False], [True]]


def test_tolist_of_every_kind():
    assert jagged().tolist() == [[1.0, 2.0], [3.0]]
    assert holes().tolist() == [[0.0], [2.0, 3.0]]
    assert nested_tensor(SETS).tolist() == SETS
    assert nested_tensor([[[1, 2]], [[3], [4]]]).tolist() == [[[1, 2]], [[3], [4]]]


# ------------------------------------------------------------------------------------------ copies and storage

KINDS = {
    "jagged": jagged,
    "holes": holes,
    "sets": lambda: nested_tensor(SETS),
    "several": lambda: nested_tensor([rg.ones(2, 3), rg.ones(1, 4)]),
    "none": lambda: nested_tensor([]),
    "numbers": lambda: nested_tensor([1.0, 2.0]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), rg.Tensor.clone])
def test_copies_have_memory_of_their_own(kind, way):
    x = KINDS[kind]()
    before = x.tolist()
    twin = way(x)
    assert twin.tolist() == before
    assert twin.shape == x.shape
    twin.mul_(2)
    assert x.tolist() == before


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_leaves_stay_leaves_and_deep_copies_keep_the_gradient(way):
    x = jagged(requires_grad=True)
    (x * x).values().sum().backward()
    twin = way(x)
    assert twin.is_leaf
    assert twin.requires_grad
    assert twin.grad.tolist() == [[2.0, 4.0], [6.0]] if way is copy.deepcopy else twin.grad is None


def test_a_shallow_copy_shares_memory():
    x = jagged()
    copy.copy(x).mul_(2)
    assert x.tolist() == [[2.0, 4.0], [6.0]]


def test_another_process_reads_a_pickled_nested_tensor(tmp_path):
    file = tmp_path / "x.pickle"
    file.write_bytes(pickle.dumps(holes()))
    program = f"import pickle; x = pickle.load(open({str(file)!r}, 'rb')); print((x * 2).tolist(), x)"
    shown = subprocess.run([sys.executable, "-c", program], check=True, text=True, stdout=subprocess.PIPE).stdout
    assert shown.startswith("[[0.0], [4.0, 6.0]] nested_tensor([")


def test_pickling_drops_rows_in_holes():
    x = nested_tensor_from_jagged(rg.zeros(100_000), [0, 5, 100_000], [1, 1])
    assert len(pickle.dumps(x)) < 10_000


def test_safetensors_have_no_nested_tensors(tmp_path):
    with pytest.raises(TypeError, match=r"'x' is a nested or sparse tensor; .*rg.save to a name without .safetensors"):
        save_file({"x": jagged()}, tmp_path / "x.safetensors")


def test_data_is_outside_the_graph_and_may_be_set():
    x = jagged(requires_grad=True)
    x.data.mul_(2)
    assert x.tolist() == [[2.0, 4.0], [6.0]]
    assert not x.data.requires_grad
    x.data = nested_tensor([[7.0], [8.0]])
    assert x.tolist() == [[7.0], [8.0]]


def test_contiguous_closes_holes():
    x = holes()
    assert not x.is_contiguous()
    assert x.contiguous().lengths() is None
    assert x.contiguous().values().tolist() == [0.0, 2.0, 3.0]
    assert jagged().is_contiguous()
    y = jagged()
    assert y.contiguous() is y


def test_an_optimizer_steps_on_a_nested_leaf():
    x = jagged(requires_grad=True)
    (x * x).values().sum().backward()
    rg.optim.SGD([x], lr=0.5).step()
    assert x.tolist() == [[0.0, 0.0], [0.0]]


def test_detached_and_made_leaves():
    x = as_nested_tensor([rg.ones(2, requires_grad=True), rg.ones(1)])
    assert x.requires_grad
    assert not x.detach().requires_grad
    assert x.detach().requires_grad_().is_leaf
