"""Conversion of nested tensors from and to Arrow arrays."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import retrograd as rg
from retrograd.nested import from_arrow, nested_tensor, nested_tensor_from_jagged, to_arrow

NUMBERS = [[1.0, 2.0], [], [3.0]]
SETS = [[[1, 2], [3]], [], [[4]]]
PAIRS = pa.list_(pa.int32(), 2)


def address(array):
    """Return the address of the values within an Arrow array."""
    while hasattr(array, "values"):
        array = array.values
    return array.buffers()[1].address + array.offset * array.type.bit_width // 8


@pytest.mark.parametrize(
    ("data", "kind", "shape"),
    [
        (NUMBERS, pa.list_(pa.float64()), "(3, j)"),
        (NUMBERS, pa.large_list(pa.float32()), "(3, j)"),
        (NUMBERS, pa.list_view(pa.float64()), "(3, j)"),
        (NUMBERS, pa.large_list_view(pa.float64()), "(3, j)"),
        (SETS, pa.list_(pa.list_(pa.int64())), "(3, j, j2)"),
        (SETS, pa.large_list(pa.list_(pa.uint8())), "(3, j, j2)"),
        ([[[1, 2], [3, 4]], [], [[5, 6]]], pa.list_(PAIRS), "(3, j, 2)"),
        ([[[1], [2, 3]], [[], [4]]], pa.list_(pa.list_(pa.int32()), 2), "(2, j, j2)"),
        ([[1, 2], [3, 4]], PAIRS, "(2, j)"),
        ([[[True, False]], [[True], []]], pa.list_(pa.list_(pa.bool_())), "(2, j, j2)"),
        ([], pa.list_(pa.float32()), "(0, j)"),
        ([[], []], pa.list_(pa.float32()), "(2, j)"),
        ([1.5, 2.5], pa.float64(), "(2,)"),
    ],
)
def test_lists_become_components(data, kind, shape):
    array = pa.array(data, kind)
    x = from_arrow(array)
    assert x.is_nested
    assert x.is_leaf
    assert not x.requires_grad
    assert str(x.shape) == shape
    assert x.tolist() == data
    for first in range(len(data) + 1):
        assert from_arrow(array[first:]).tolist() == data[first:]
        assert from_arrow(array[first : first + 1]).tolist() == data[first : first + 1]


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.large_list(pa.float64()), pa.list_view(pa.float64())])
def test_numbers_are_not_copied(kind):
    array = pa.array(NUMBERS, kind)
    x = from_arrow(array)
    assert x.values().data_ptr() == address(array)
    assert from_arrow(pa.array(SETS)).values().values().data_ptr() != 0
    del array
    assert x.tolist() == NUMBERS  # the tensor keeps the memory


def test_a_slice_shows_its_part_of_the_memory():
    array = pa.array(NUMBERS)
    assert from_arrow(array[1:]).values().data_ptr() == address(array) + 16


def test_memory_of_arrows_refuses_writes():
    with pytest.raises(RuntimeError, match="read-only"):
        from_arrow(pa.array(NUMBERS)).mul_(2)


def test_gradients_flow_to_what_was_read():
    x = from_arrow(pa.array(NUMBERS)).requires_grad_()
    (x * x).values().sum().backward()
    assert x.grad.tolist() == [[2.0, 4.0], [], [6.0]]


def test_chunks_and_columns_are_put_together():
    array = pa.array(NUMBERS)
    assert from_arrow(pa.chunked_array([array, array[1:]])).tolist() == NUMBERS + NUMBERS[1:]
    assert from_arrow(pa.chunked_array([array])).values().data_ptr() == address(array)
    assert from_arrow(pa.table({"a": array})["a"]).tolist() == NUMBERS


class Foreign:
    """An array of another library with Arrow's C interface."""

    def __init__(self, array):
        self.array = array

    def __arrow_c_array__(self, requested_schema=None):
        return self.array.__arrow_c_array__(requested_schema)


class ForeignStream:
    """A column of another library with Arrow's C interface."""

    def __init__(self, array):
        self.array = array

    def __arrow_c_stream__(self, requested_schema=None):
        return self.array.__arrow_c_stream__(requested_schema)


def test_the_c_interface_is_enough():
    array = pa.array(NUMBERS)
    assert from_arrow(Foreign(array)).tolist() == NUMBERS
    assert from_arrow(ForeignStream(pa.chunked_array([array]))).tolist() == NUMBERS


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[1.0, None], [None]], "2 of 3 elements of type double are null, the first at index 1"),
        ([[1.0], None, None], "2 of 3 elements of type list<item: double> are null, the first at index 1"),
        ([[[1], None]], "1 of 2 elements of type list<item: int64> are null, the first at index 1"),
    ],
)
def test_nulls_are_counted_and_the_first_is_named(data, message):
    with pytest.raises(ValueError, match=f"from_arrow: tensors have no nulls, but {message}"):
        from_arrow(pa.array(data))


def test_nulls_outside_a_slice_do_not_matter():
    assert from_arrow(pa.array([[None], None, [1.0]])[2:]).tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (pa.array([["a"]]), "got string"),
        (pa.array([[{"a": 1}]]), "got struct<a: int64>"),
        (pa.array([[1]], pa.list_(pa.timestamp("s"))), r"got timestamp\[s\]"),
        (pa.table({"a": [[1]]}), "got Table; of a table give a column"),
        ([[1]], "got list"),
    ],
)
def test_arrays_without_numbers_are_refused(array, message):
    with pytest.raises(TypeError, match=f"from_arrow: expected .*{message}"):
        from_arrow(array)


def test_invalid_offsets_are_refused():
    bad = pa.ListArray.from_arrays(pa.array([0, 9, 1], pa.int32()), pa.array([1.0]))
    with pytest.raises(ValueError, match="offsets must not decrease, got 9 at index 1"):
        from_arrow(bad)


# ------------------------------------------------------------------------------------------------- to Arrow


def images():
    return nested_tensor([rg.arange(6.0).reshape(2, 3), rg.arange(4.0).reshape(4, 1)])


def columns():
    return nested_tensor([rg.arange(6.0).reshape(2, 3), rg.arange(4.0).reshape(2, 2)])


TENSORS = {
    "numbers": (lambda: nested_tensor(NUMBERS), "list<item: float>"),
    "rows": (lambda: nested_tensor([rg.ones(2, 3), rg.ones(0, 3)]), "list<item: fixed_size_list<item: float>[3]>"),
    "images": (images, "list<item: list<item: float>>"),
    "columns": (columns, "fixed_size_list<item: list<item: float>>[2]"),
    "deep": (
        lambda: nested_tensor([rg.arange(12.0).reshape(2, 1, 3, 2), rg.zeros(2, 2, 1, 2)]),
        "fixed_size_list<item: list<item: list<item: fixed_size_list<item: float>[2]>>>[2]",
    ),
    "sets": (lambda: nested_tensor(SETS), "list<item: list<item: int64>>"),
    "holes": (lambda: nested_tensor_from_jagged(rg.arange(5.0), [0, 2, 5], [1, 2]), "list<item: float>"),
    "bools": (lambda: nested_tensor([[True], [False, True]]), "list<item: bool>"),
    "none": (lambda: nested_tensor([]), "float"),
    "single": (lambda: nested_tensor([1.0, 2.0]), "float"),
    "dense": (lambda: rg.arange(6.0).reshape(3, 2), "fixed_size_list<item: float>[2]"),
}


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("large", [False, True])
def test_components_become_lists(name, large):
    make, kind = TENSORS[name]
    x = make()
    array = to_arrow(x, large=large)
    array.validate(full=True)
    assert str(array.type).replace("large_", "") == kind
    assert ("large_list" in str(array.type)) is (large and " list" in f" {kind}".replace("<item: ", " "))
    assert array.to_pylist() == x.tolist()
    assert from_arrow(array).tolist() == x.tolist()


def test_numbers_and_large_offsets_are_shared():
    x = nested_tensor([rg.ones(2, 3), rg.ones(1, 3)])
    array = to_arrow(x, large=True)
    assert address(array) == x.values().data_ptr()
    assert array.buffers()[1].address == x.value.structure.offsets.ctypes.data
    assert address(to_arrow(x)) == x.values().data_ptr()
    assert address(to_arrow(images_ := images())) == images_.values().data_ptr()


def test_gradients_would_be_lost():
    with pytest.raises(RuntimeError, match=r"Can't call to_arrow on Tensor that requires grad"):
        to_arrow(nested_tensor(NUMBERS, requires_grad=True))


def test_complex_numbers_are_refused():
    with pytest.raises(TypeError, match="no complex numbers, got complex64"):
        to_arrow(nested_tensor([[1j]]))


def test_lists_of_the_fixed_size_0_are_refused():
    with pytest.raises(ValueError, match="fixed size 0"):
        to_arrow(nested_tensor([rg.ones(2, 0)]))


def test_more_rows_than_32_bits_count_need_large_lists():
    many = nested_tensor_from_jagged(rg.zeros(1, dtype=rg.bool).expand(2**31), np.array([0, 2**31]))
    with pytest.raises(ValueError, match="2147483648 rows are more than a ListArray can hold; use large=True"):
        to_arrow(many)


def test_a_batch_of_nested_tensors_is_refused():
    x = nested_tensor(NUMBERS)
    with pytest.raises(RuntimeError, match=r"a batch of nested tensors, of shape \(2, 3, j\)"):
        to_arrow(rg.vmap(lambda a: x * a)(rg.ones(2)))


def test_without_pyarrow_the_error_names_the_extra():
    program = (
        "import sys; sys.modules['pyarrow'] = sys.modules['awkward'] = None\n"
        "import retrograd as rg\n"
        "x = rg.nested.nested_tensor([[1.0]])\n"
        "for f in (rg.nested.to_arrow, rg.nested.from_arrow, rg.nested.to_awkward, rg.nested.from_awkward):\n"
        "    try:\n"
        "        f(x)\n"
        "    except ImportError as error:\n"
        "        assert \"pip install 'retrograd[arrow]'\" in str(error), error\n"
        "    else:\n"
        "        raise AssertionError(f)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
