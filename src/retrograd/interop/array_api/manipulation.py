"""Shapes, joining, and selection along an axis."""

from typing import Any

from retrograd.core import Tensor, operator_named
from retrograd.core.dtype import int64
from retrograd.interop.array_api.promotion import result_type
from retrograd.ops.family import broadcast_shapes as _broadcast
from retrograd.ops.family import canonical_dim, cast_to

_op = operator_named


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape of arrays of these shapes."""
    return _broadcast("broadcast_shapes", list(shapes)) if shapes else ()


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Concatenate arrays along an axis; None: flattened."""
    dtype = result_type(*arrays)
    parts = [cast_to(a, dtype) for a in arrays]
    return _op("cat")([a.reshape(-1) for a in parts] if axis is None else parts, dim=axis or 0)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Stack arrays of one shape along a new axis."""
    dtype = result_type(*arrays)
    return _op("stack")([cast_to(a, dtype) for a in arrays], dim=axis)


def squeeze(x: Any, /, axis: int | tuple[int, ...]) -> Tensor:
    """Remove the given axes; ValueError if one of them is not of size 1."""
    for a in (axis,) if isinstance(axis, int) else axis:
        if not -x.ndim <= a < x.ndim or x.shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} of shape {x.shape} is not of size 1")
    return _op("squeeze")(x, axis)


def flip(x: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Reverse the elements along the axes (None: all)."""
    return _op("flip")(x, tuple(range(x.ndim)) if axis is None else axis)


def reshape(x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Return the same elements in another shape; copy=False raises ValueError if that needs a copy."""
    out = _op("reshape")(x, tuple(shape))
    if copy is False and x.level is None and not out._is_view():
        raise ValueError(f"reshape: an array of shape {x.shape} can't be shown in shape {tuple(shape)} without a copy")
    return _op("clone")(out) if copy else out


def roll(x: Any, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Roll the elements along axes (None: of the flattened array); those beyond the end reappear at the front."""
    if isinstance(shift, int) and isinstance(axis, tuple):
        shift = (shift,) * len(axis)
    return _op("roll")(x, shift, axis)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """Return the slices along an axis at a vector of indices, counted from either end.

    axis may be omitted for a vector x. Raises IndexError for indices out of range.
    """
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: axis is needed for an array of {x.ndim} axes")
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise ValueError(f"take: indices must be a vector of integers, got {indices.dtype} of shape {indices.shape}")
    at = canonical_dim("take", axis or 0, x.ndim)
    return x[(*(slice(None),) * at, cast_to(indices, int64))]
