"""Statistics, truth, sums along axes, searching, sorting and sets."""

from typing import Any

import numpy as np

from retrograd.core import Tensor, operator_named
from retrograd.core import dtype as dtypes
from retrograd.interop.array_api.promotion import promote, result_type
from retrograd.interop.numpy_protocol.table import over, prepend_number
from retrograd.ops.family import cast_to

# The standard prescribes names that shadow Python's builtins.
_op = operator_named


def _sum_dtype(x: Any, dtype: Any) -> Any:
    """Return the accumulation dtype: unsigned integers in uint64, signed ones in int64."""
    if dtype is not None:
        return np.dtype(dtype)
    return {"u": np.dtype("uint64"), "i": dtypes.int64, "b": dtypes.int64}.get(x.dtype.kind, x.dtype)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over `axis` (None: all)."""
    return over(_op("sum"), cast_to(x, _sum_dtype(x, dtype)), axis, keepdims, dtype=_sum_dtype(x, dtype))


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product over `axis` (None: all)."""
    return over(_op("prod"), cast_to(x, _sum_dtype(x, dtype)), axis, keepdims, dtype=_sum_dtype(x, dtype))


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The number of nonzero elements over `axis` (None: all)."""
    return over(_op("sum"), x != 0, axis, keepdims)


def _along(name: str, x: Any, axis: int | None, dtype: Any, include_initial: bool, initial: int) -> Tensor:
    if axis is None and x.ndim != 1:
        raise ValueError(f"cumulative_{name}: axis is needed for an array of {x.ndim} axes")
    axis, dtype = axis or 0, _sum_dtype(x, dtype)
    out = _op(f"cum{name}")(cast_to(x, dtype), axis, dtype=dtype)
    return prepend_number(out, axis, initial) if include_initial else out


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The cumulative sums along `axis`; include_initial prepends 0."""
    return _along("sum", x, axis, dtype, include_initial, 0)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The cumulative products along `axis`; include_initial prepends 1."""
    return _along("prod", x, axis, dtype, include_initial, 1)


# ------------------------------------------------------------------------------------------------- searching


def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """The indices of the nonzero elements, an array per axis."""
    if not x.ndim:
        raise ValueError("nonzero: expected at least one axis")
    return _op("nonzero")(x, as_tuple=True)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """The insertion index of each element of x2 in the sorted x1."""
    x1, x2 = promote(x1, x2)
    return _op("searchsorted")(x1, x2, side=side, sorter=sorter)


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of x1 is among those of x2; with invert, whether it is not."""
    dtype = result_type(x1, x2)
    x1, x2 = (a if isinstance(a, Tensor) else _op("full")([], a, dtype=dtype) for a in promote(x1, x2))
    return _op("isin")(x1, x2, invert=invert)
