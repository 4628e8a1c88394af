"""Convert nested tensors from and to Awkward Arrays, over the same memory."""

from typing import Any

from retrograd.backend.list_offsets import to_nested_lists
from retrograd.backend.offsets import structure_of_offsets, structure_of_starts
from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nested.buffer import wrap_buffer
from retrograd.nested.construct import as_nested, unflatten_rows
from retrograd.ops.create import as_tensor, from_numpy
from retrograd.ops.methods import array_outside_graph


def from_awkward(array: Any) -> Tensor:
    """Return the nested tensor whose components are the lists of an Awkward Array: a leaf that shares its memory.

    array: an `ak.Array`, or a layout of `ak.contents`, of numbers in lists; (components, ...) is the shape.  Lists of
    variable length are ragged dimensions, those of regular length dense ones.  Values are copied only if the layout
    stores them out of order, in an `IndexedArray`.

    Raises ValueError for missing values, with their number and the index of the first, TypeError for records, unions
    and strings, and ImportError without awkward.

    >>> import awkward as ak
    >>> import retrograd as rg
    >>> rg.nested.from_awkward(ak.Array([[1, 2], [], [3]])).sum(1)
    tensor([3, 0, 3])
    """
    ak = _awkward("from_awkward")
    if not isinstance(array, (ak.Array, ak.contents.Content)):
        raise TypeError(
            f"from_awkward: expected an Awkward Array, got {type(array).__name__}; ak.Array(data) makes one"
        )
    return as_nested("from_awkward", _read_content(ak, ak.to_layout(array)))


def to_awkward(x: Tensor) -> Any:
    """Convert a nested tensor to an Awkward Array with a list for each component, over the same memory.

    Only components with several dimensions that are not contiguous in the buffer are copied.

    Raises RuntimeError for a tensor that requires grad, and ImportError without awkward.

    >>> import retrograd as rg
    >>> rg.nested.to_awkward(rg.nested.nested_tensor([[1, 2], [3]]))
    <Array [[1, 2], [3]] type='2 * var * int64'>
    """
    array = array_outside_graph("to_awkward", x)
    ak = _awkward("to_awkward")
    return ak.Array(to_nested_lists(array, _AwkwardBuilder(ak)))


class _AwkwardBuilder:
    """Builds Awkward's layouts."""

    def __init__(self, ak: Any):
        self.ak = ak

    def rows(self, array: Any) -> Any:
        return self.ak.contents.NumpyArray(array)

    def fixed(self, content: Any, size: int, count: int) -> Any:
        return self.ak.contents.RegularArray(content, size, zeros_length=count)

    def lists(self, offsets: Any, content: Any) -> Any:
        return self.ak.contents.ListOffsetArray(self.ak.index.Index64(offsets), content)

    def pieces(self, starts: Any, lengths: Any, content: Any) -> Any:
        index = self.ak.index.Index64
        return self.ak.contents.ListArray(index(starts), index(starts + lengths), content)


# -------------------------------------------------------------------------------------------------- reading


def _awkward(name: str) -> Any:
    try:
        import awkward
    except ImportError as error:
        raise ImportError(f"{name} needs awkward: pip install 'retrograd[arrow]'") from error
    return awkward


def _read_content(ak: Any, layout: Any) -> Tensor:
    """Return the content of a layout, its elements along the first dimension."""
    if layout.is_option:
        return _read_content(ak, _drop_option(layout))
    if layout.is_indexed:
        return _read_content(ak, layout.project())
    if layout.is_list and layout.parameter("__array__") is None:
        return _read_lists(ak, layout)
    if layout.is_numpy and layout.parameter("__array__") is None:
        return from_numpy(layout.data)
    if layout.is_unknown:
        return as_tensor([])
    raise TypeError(f"from_awkward: expected numbers, or lists of numbers, got {layout.form.type}")


def _read_lists(ak: Any, layout: Any) -> Tensor:
    """Convert lists of one size, given by offsets, or by starts and stops."""
    if layout.is_regular:
        size = int(layout.size)
        return unflatten_rows(_read_content(ak, layout.content[: len(layout) * size]), len(layout), size)
    if isinstance(layout, ak.contents.ListOffsetArray):
        offsets = layout.offsets.data
        first, last = int(offsets[0]), int(offsets[-1])
        content = _read_content(ak, layout.content[first:last])
        return wrap_buffer(content, structure_of_offsets("from_awkward", offsets - offsets[0], None, content.shape[0]))
    starts = layout.starts.data.astype("int64")
    lengths = layout.stops.data[: len(starts)].astype("int64") - starts
    content = _read_content(ak, layout.content)
    return wrap_buffer(content, structure_of_starts("from_awkward", starts, lengths, content.shape[0]))


def _drop_option(layout: Any) -> Any:
    """Return the values of an option layout; ValueError if some are missing."""
    missing = layout.mask_as_bool(valid_when=False)
    if missing.any():
        raise ValueError(
            f"from_awkward: tensors have no missing values, but {missing.sum()} of {len(missing)} elements of type "
            f"{layout.form.type} are None, the first at index {missing.argmax()}; see ak.fill_none and ak.drop_none"
        )
    return layout.project()


suggest_in_module(globals())
