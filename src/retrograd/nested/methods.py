"""Methods and attributes of nested tensors; importing this package adds them to all tensors."""

import copyreg
from typing import Any

from retrograd.backend.ragged import Ragged, pack
from retrograd.core import Tensor
from retrograd.core.dtype import int64
from retrograd.foundation.read_only import read_only
from retrograd.nested.buffer_layout import get_layout as get_ragged_layout
from retrograd.nested.buffer_layout import is_nested
from retrograd.nested.offsets_op import offsets_of
from retrograd.ops.create import tensor, zeros
from retrograd.ops.layout import jagged
from retrograd.ops.methods import attribute, method


def _require_layout(name: str, x: Tensor) -> Any:
    """Return the layout of a nested tensor; RuntimeError for others, named after the method."""
    if not is_nested(x):
        raise RuntimeError(f"{name}(): expected a nested tensor, got a tensor of shape {x.shape}")
    return get_ragged_layout(x)


@method
def offsets(x: Tensor) -> Tensor:
    """Return the first row of each component in `values`, and the end of the last one; int64, a copy.

    >>> import retrograd as rg
    >>> rg.nested.nested_tensor([[1.0, 2.0], [3.0]]).offsets()
    tensor([0, 2, 3])
    """
    _require_layout("offsets", x)
    out: Tensor = offsets_of(x, what="offsets")
    return out


@method
def lengths(x: Tensor) -> Tensor | None:
    """Return the number of rows of each component if there are holes between them; None if offsets suffice.

    >>> import retrograd as rg
    >>> rg.nested.nested_tensor_from_jagged(rg.arange(5), [0, 2, 5], lengths=[1, 3]).lengths()
    tensor([1, 3])
    """
    layout = _require_layout("lengths", x)
    return offsets_of(x, what="lengths") if layout.has_holes else None


def _sequence_lengths(name: str, x: Tensor, error: type[Exception] = AttributeError) -> list[int]:
    """Return the sizes of the ragged dimension of a nested tensor in the jagged layout; raise for others."""
    if x.layout is not jagged:
        raise error(f"{name}: only nested tensors in the jagged layout have it; see layout=rg.jagged")
    sizes: list[int] = get_ragged_layout(x).structure.lengths.tolist()
    return sizes


@attribute
def _min_seqlen(x: Tensor) -> int:
    """The smallest size of the ragged dimension; 0 without components.  Only in the jagged layout.

    >>> import retrograd as rg
    >>> x = rg.nested.nested_tensor([rg.ones(2), rg.ones(3)], layout=rg.jagged)
    >>> x._min_seqlen, x._max_seqlen
    (2, 3)
    """
    return min(_sequence_lengths("_min_seqlen", x), default=0)


@attribute
def _max_seqlen(x: Tensor) -> int:
    """The largest size of the ragged dimension; 0 without components.  Only in the jagged layout."""
    return max(_sequence_lengths("_max_seqlen", x), default=0)


@attribute
def _ragged_idx(x: Tensor) -> int:
    """The ragged dimension of a nested tensor in the jagged layout."""
    _sequence_lengths("_ragged_idx", x)
    return int(get_ragged_layout(x).ragged.start)


@method
def _get_min_seqlen(x: Tensor) -> int:
    """Return the smallest size of the ragged dimension; 0 without components."""
    return min(_sequence_lengths("_get_min_seqlen", x, RuntimeError), default=0)


@method
def _get_max_seqlen(x: Tensor) -> int:
    """Return the largest size of the ragged dimension; 0 without components."""
    return max(_sequence_lengths("_get_max_seqlen", x, RuntimeError), default=0)


@method
def _nested_tensor_size(x: Tensor) -> Tensor:
    """Return the shapes of the components, a row each; int64.

    >>> import retrograd as rg
    >>> rg.nested.nested_tensor([rg.ones(2, 3), rg.ones(1, 3)])._nested_tensor_size()
    tensor([[2, 3],
            [1, 3]])
    """
    _require_layout("_nested_tensor_size", x)
    out: Tensor = offsets_of(x, what="sizes")
    return out


@method
def _nested_tensor_strides(x: Tensor) -> Tensor:
    """Return the strides of the components in elements, a row each; int64.

    >>> import retrograd as rg
    >>> rg.nested.nested_tensor([rg.ones(2, 3), rg.ones(1, 3)])._nested_tensor_strides()
    tensor([[3, 1],
            [3, 1]])
    """
    _require_layout("_nested_tensor_strides", x)
    rows = [part.stride() for part in x.unbind()]
    return tensor(rows, dtype=int64) if rows else zeros((0, x.ndim - 1), dtype=int64)


@method
def _nested_tensor_storage_offsets(x: Tensor) -> Tensor:
    """Return the index of each component's first element in the memory; int64.

    >>> import retrograd as rg
    >>> rg.nested.nested_tensor([rg.ones(2, 3), rg.ones(1, 3)])._nested_tensor_storage_offsets()
    tensor([0, 6])
    """
    _require_layout("_nested_tensor_storage_offsets", x)
    return tensor([part.storage_offset() for part in x.unbind()], dtype=int64)


@attribute
def _offsets(x: Tensor) -> Tensor:
    """The result of `offsets()`.  Only in the jagged layout."""
    _sequence_lengths("_offsets", x)
    return offsets(x)


@attribute
def _lengths(x: Tensor) -> Tensor | None:
    """The result of `lengths()`.  Only in the jagged layout."""
    _sequence_lengths("_lengths", x)
    return lengths(x)


@attribute
def _metadata_cache(x: Tensor) -> dict[str, int]:
    """The bounds of the ragged dimension's size: "min_seqlen" and "max_seqlen".  Only in the jagged layout."""
    sizes = _sequence_lengths("_metadata_cache", x)
    return {"max_seqlen": max(sizes, default=0), "min_seqlen": min(sizes, default=0)}


def _is_nested(x: Tensor) -> bool:
    """Whether the tensor has components, whose shapes may differ."""
    return is_nested(x)


Tensor.is_nested = read_only(_is_nested, "is_nested")  # type: ignore[assignment]


def _rebuilt(*fields: Any) -> Ragged:
    """Return a ragged array from pickled fields; defined here so that unpickling imports this package."""
    return Ragged(*fields)


def _reduce(array: Ragged) -> tuple:
    array = pack(array)
    return _rebuilt, (array.values, array.structure, array.axis, array.lead)


copyreg.pickle(Ragged, _reduce)
