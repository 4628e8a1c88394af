"""Convert nested tensors from and to Arrow list arrays, over the same memory."""

from typing import Any

from retrograd.backend.list_offsets import to_nested_lists
from retrograd.backend.offsets import structure_of_offsets, structure_of_starts
from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nested.buffer import wrap_buffer
from retrograd.nested.construct import as_nested, unflatten_rows
from retrograd.ops.create import from_numpy
from retrograd.ops.methods import array_outside_graph

INT32 = 2**31


def from_arrow(array: Any) -> Tensor:
    """Return the nested tensor whose components are the lists of an Arrow array: a leaf that shares its memory.

    array: a `ListArray`, `LargeListArray`, `ListViewArray` or `FixedSizeListArray` of numbers or of such lists, a
    slice of one, a `ChunkedArray` (a column of a table), whose chunks are concatenated, or an object with Arrow's C
    interface. Lists in lists are ragged dimensions, lists of fixed size dense ones; (components, ...) is the shape.
    Values are not copied, except booleans, which Arrow packs; as Arrow's memory is constant, they refuse writes.

    Raises ValueError for nulls, with their number and the index of the first, TypeError for non-numeric content, and
    ImportError without pyarrow.

    >>> import pyarrow as pa
    >>> import retrograd as rg
    >>> rg.nested.from_arrow(pa.array([[1.5, 2.5], [], [3.5]]))
    nested_tensor([
      tensor([1.5000, 2.5000], dtype=float64),
      tensor([], dtype=float64),
      tensor([3.5000], dtype=float64)
    ])
    """
    pa = _pyarrow("from_arrow")
    return as_nested("from_arrow", _read_content(pa, _combine_chunks(pa, array)))


def to_arrow(x: Tensor, *, large: bool = False) -> Any:
    """Convert a nested tensor to an Arrow array with a list for each component, over the same memory.

    Ragged dimensions are `ListArray`, dense ones `FixedSizeListArray`.  large: `LargeListArray`, whose offsets have 64
    bits and are shared too.  Booleans, and components that are not contiguous in the buffer, are copied.

    Raises RuntimeError for a tensor that requires grad, ValueError for rows that need large=True, TypeError for complex
    numbers, and ImportError without pyarrow.

    >>> import retrograd as rg
    >>> rg.nested.to_arrow(rg.nested.nested_tensor([[1, 2], [3]])).to_pylist()
    [[1, 2], [3]]
    """
    array = array_outside_graph("to_arrow", x)
    if array.dtype.kind == "c":
        raise TypeError(f"to_arrow: Arrow has no complex numbers, got {array.dtype}; see rg.view_as_real")
    return to_nested_lists(array, _ArrowBuilder(_pyarrow("to_arrow"), large))


class _ArrowBuilder:
    """Builds Arrow's arrays."""

    def __init__(self, pa: Any, large: bool):
        self.pa = pa
        self.large = large

    def rows(self, array: Any) -> Any:
        content = self.pa.array(array.reshape(-1))
        for size in reversed(array.shape[1:]):
            content = self.fixed(content, size)
        return content

    def fixed(self, content: Any, size: int, count: int | None = None) -> Any:
        if not size:
            raise ValueError("to_arrow: Arrow has no lists of the fixed size 0")
        return self.pa.FixedSizeListArray.from_arrays(content, size)

    def lists(self, offsets: Any, content: Any) -> Any:
        if self.large:
            return self.pa.LargeListArray.from_arrays(self.pa.array(offsets), content)
        if offsets[-1] >= INT32:
            raise ValueError(f"to_arrow: {offsets[-1]} rows are more than a ListArray can hold; use large=True")
        return self.pa.ListArray.from_arrays(self.pa.array(offsets.astype("int32")), content)


# -------------------------------------------------------------------------------------------------- reading


def _pyarrow(name: str) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(f"{name} needs pyarrow: pip install 'retrograd[arrow]'") from error
    return pyarrow


def _combine_chunks(pa: Any, array: Any) -> Any:
    """Return an Arrow array in one chunk."""
    if hasattr(array, "__arrow_c_array__") and not isinstance(array, pa.Array):
        array = pa.array(array)
    if hasattr(array, "__arrow_c_stream__") and not isinstance(array, (pa.Array, pa.ChunkedArray, pa.Table)):
        array = pa.chunked_array(array)
    if isinstance(array, pa.ChunkedArray):
        return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    if not isinstance(array, pa.Array):
        raise TypeError(
            f"from_arrow: expected an array of Arrow's, got {type(array).__name__}; of a table give a column"
        )
    return array


def _read_content(pa: Any, array: Any) -> Tensor:
    """Return the content of an array, its elements along the first dimension."""
    kind, types = array.type, pa.types
    _check_no_nulls(array)
    if types.is_list(kind) or types.is_large_list(kind):
        return _read_lists(pa, array)
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        content = _read_content(pa, array.values)
        starts, lengths = (part.to_numpy().astype("int64") for part in (array.offsets, array.sizes))
        return wrap_buffer(content, structure_of_starts("from_arrow", starts, lengths, content.shape[0]))
    if types.is_fixed_size_list(kind):
        size = kind.list_size
        return unflatten_rows(
            _read_content(pa, array.values.slice(array.offset * size, len(array) * size)), len(array), size
        )
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return from_numpy(array.to_numpy(zero_copy_only=not types.is_boolean(kind)))
    raise TypeError(f"from_arrow: expected numbers, or lists of numbers, got {kind}")


def _read_lists(pa: Any, array: Any) -> Tensor:
    """Convert lists given by offsets; in a slice, the first offset is not 0."""
    offsets = array.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    content = _read_content(pa, array.values.slice(first, last - first))
    return wrap_buffer(content, structure_of_offsets("from_arrow", offsets - first, None, content.shape[0]))


def _check_no_nulls(array: Any) -> None:
    if array.null_count:
        first = array.is_null().index(True).as_py()
        raise ValueError(
            f"from_arrow: tensors have no nulls, but {array.null_count} of {len(array)} elements of type {array.type} "
            f"are null, the first at index {first}; see pyarrow.compute.fill_null and drop_null"
        )


suggest_in_module(globals())
