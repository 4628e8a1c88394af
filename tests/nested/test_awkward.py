"""Conversion of nested tensors from and to Awkward Arrays."""

import awkward as ak
import numpy as np
import pytest

import retrograd as rg
from retrograd.nested import from_awkward, nested_tensor, nested_tensor_from_jagged, to_awkward

NUMBERS = [[1.0, 2.0], [], [3.0]]
SETS = [[[1, 2], [3]], [], [[4]]]


@pytest.mark.parametrize(
    ("array", "shape"),
    [
        (ak.Array(NUMBERS), "(3, j)"),
        (ak.Array(NUMBERS)[1:], "(2, j)"),
        (ak.Array(NUMBERS)[[2, 0]], "(2, j)"),
        (ak.Array(NUMBERS)[[2, 0], ::-1], "(2, j)"),
        (ak.Array(NUMBERS).layout, "(3, j)"),
        (ak.Array(SETS), "(3, j, j2)"),
        (ak.Array(SETS)[1:], "(2, j, j2)"),
        (ak.Array(np.arange(6).reshape(2, 3)), "(2, j)"),
        (ak.unflatten(ak.Array(np.arange(12.0).reshape(6, 2)), [1, 5]), "(2, j, 2)"),
        (ak.to_regular(ak.Array([[[1], [2, 3]], [[], [4]]]), axis=1), "(2, j, j2)"),
        (ak.to_regular(ak.Array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]), axis=2)[1:], "(1, j, 2)"),
        (ak.Array([[], []]), "(2, j)"),
        (ak.Array([[1.0], None, [2.0, 3.0]])[[0, 2]], "(2, j)"),
        (ak.Array([[1j], [2.0, 3j]]), "(2, j)"),
        (ak.Array([1, 2]), "(2,)"),
    ],
)
def test_lists_become_components(array, shape):
    x = from_awkward(array)
    assert x.is_nested
    assert not x.requires_grad
    assert str(x.shape) == shape
    assert x.tolist() == ak.to_list(array)


def test_numbers_are_not_copied():
    flat = np.arange(5.0)
    array = ak.unflatten(ak.Array(flat), [2, 3])
    assert from_awkward(array).values().data_ptr() == flat.ctypes.data
    assert from_awkward(array[1:]).values().data_ptr() == flat.ctypes.data + 16
    picked = from_awkward(array[[1, 0]])
    assert picked.values().data_ptr() == flat.ctypes.data
    assert picked.tolist() == [[2.0, 3.0, 4.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[1.0, None], [None]], r"2 of 3 elements of type \?float64 are None, the first at index 1"),
        ([[1.0], None], r"1 of 2 elements of type option\[var \* float64\] are None, the first at index 1"),
    ],
)
def test_missing_values_are_counted_and_the_first_is_named(data, message):
    with pytest.raises(ValueError, match=f"from_awkward: tensors have no missing values, but {message}"):
        from_awkward(ak.Array(data))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (ak.Array([["a"]]), "got string"),
        (ak.Array([[{"x": 1}]]), "got {x: int64}"),
        (ak.Array([[1], ["a"]]), "got union"),
        ([[1]], r"got list; ak\.Array\(data\)"),
    ],
)
def test_arrays_without_numbers_are_refused(array, message):
    with pytest.raises(TypeError, match=f"from_awkward: expected .*{message}"):
        from_awkward(array)


def test_lists_that_end_before_they_begin_are_refused():
    index = ak.index.Index64
    layout = ak.contents.ListArray(index(np.array([0, 4])), index(np.array([2, 1])), ak.Array([1, 2, 3, 4, 5]).layout)
    with pytest.raises(ValueError, match=r"lengths\[1\] is -3, which is negative"):
        from_awkward(layout)


TENSORS = {
    "numbers": (lambda: nested_tensor(NUMBERS), "3 * var * float32"),
    "rows": (lambda: nested_tensor([rg.ones(2, 3), rg.ones(0, 3)]), "2 * var * 3 * float32"),
    "images": (lambda: nested_tensor([rg.ones(2, 3), rg.ones(4, 1)]), "2 * var * var * float32"),
    "columns": (lambda: nested_tensor([rg.ones(2, 3), rg.zeros(2, 2)]), "2 * 2 * var * float32"),
    "flat": (lambda: nested_tensor([rg.ones(0, 3), rg.zeros(0, 2)]), "2 * 0 * var * float32"),
    "sets": (lambda: nested_tensor(SETS), "3 * var * var * int64"),
    "holes": (lambda: nested_tensor_from_jagged(rg.arange(5.0), [0, 2, 5], [1, 2]), "2 * var * float32"),
    "complex": (lambda: nested_tensor([[1j]]), "1 * var * complex64"),
    "none": (lambda: nested_tensor([]), "0 * float32"),
    "nothing": (lambda: nested_tensor([rg.ones(2, 0)]), "1 * var * 0 * float32"),
    "single": (lambda: nested_tensor([1, 2]), "2 * int64"),
    "dense": (lambda: rg.ones(2, 3), "2 * 3 * float32"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_components_become_lists(name):
    make, kind = TENSORS[name]
    x = make()
    array = to_awkward(x)
    assert str(array.type) == kind
    assert array.tolist() == x.tolist()
    assert from_awkward(array).tolist() == x.tolist()


def test_numbers_offsets_and_holes_are_shared():
    x = nested_tensor([rg.ones(2, 3), rg.ones(1, 3)])
    layout = to_awkward(x).layout
    assert layout.content.data.ctypes.data == x.values().data_ptr()
    assert layout.offsets.data.ctypes.data == x.value.structure.offsets.ctypes.data
    holes = nested_tensor_from_jagged(rg.arange(5.0), [0, 2, 5], [1, 2])
    assert to_awkward(holes).layout.content.data.ctypes.data == holes.values().data_ptr()


def test_gradients_would_be_lost():
    with pytest.raises(RuntimeError, match=r"Can't call to_awkward on Tensor that requires grad"):
        to_awkward(nested_tensor(NUMBERS, requires_grad=True))
