"""Statistics, truth, sums along axes, searching, sorting and sets."""

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.core import Tensor, operator_named
from retrograd.core import dtype as dtypes
from retrograd.interop.array_api.naming import named
from retrograd.interop.array_api.promotion import promoted, result_type
from retrograd.interop.numpy_protocol import sorting
from retrograd.interop.numpy_protocol.table import over, with_first
from retrograd.ops.family import cast_to

# The standard prescribes names that shadow Python's builtins.
_op = operator_named


def _over(name: str, x: Any, axis: Any, keepdims: bool, **params: Any) -> Tensor:
    return over(_op(name), x, axis, keepdims, **params)


def _sum_dtype(x: Any, dtype: Any) -> Any:
    """Return the accumulation dtype: unsigned integers in uint64, signed ones in int64."""
    if dtype is not None:
        return np.dtype(dtype)
    return {"u": np.dtype("uint64"), "i": dtypes.int64, "b": dtypes.int64}.get(x.dtype.kind, x.dtype)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over `axis` (None: all)."""
    return _over("sum", cast_to(x, _sum_dtype(x, dtype)), axis, keepdims, dtype=_sum_dtype(x, dtype))


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product over `axis` (None: all)."""
    return _over("prod", cast_to(x, _sum_dtype(x, dtype)), axis, keepdims, dtype=_sum_dtype(x, dtype))


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over `axis` (None: all)."""
    return _over("mean", x, axis, keepdims)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The mean squared distance from the mean, over n - correction."""
    return _over("var", x, axis, keepdims, correction=correction)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of `var`."""
    return _over("std", x, axis, keepdims, correction=correction)


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element over `axis` (None: all); NaN propagates."""
    return _over("amax", x, axis, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest element over `axis` (None: all); NaN propagates."""
    return _over("amin", x, axis, keepdims)


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether every element over `axis` (None: all) is true."""
    return _over("all", x, axis, keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether some element over `axis` (None: all) is true."""
    return _over("any", x, axis, keepdims)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The number of nonzero elements over `axis` (None: all)."""
    return _over("sum", x != 0, axis, keepdims)


def _along(name: str, x: Any, axis: int | None, dtype: Any, include_initial: bool, initial: int) -> Tensor:
    if axis is None and x.ndim != 1:
        raise ValueError(f"cumulative_{name}: axis is needed for an array of {x.ndim} axes")
    axis, dtype = axis or 0, _sum_dtype(x, dtype)
    out = _op(f"cum{name}")(cast_to(x, dtype), axis, dtype=dtype)
    return with_first(out, axis, initial) if include_initial else out


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The cumulative sums along `axis`; include_initial prepends 0."""
    return _along("sum", x, axis, dtype, include_initial, 0)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The cumulative products along `axis`; include_initial prepends 1."""
    return _along("prod", x, axis, dtype, include_initial, 1)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Tensor:
    """The n-th differences of neighbours along `axis`."""
    return _op("diff")(x, n=n, dim=axis, prepend=prepend, append=append)


# ------------------------------------------------------------------------------------------------- searching


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the largest element along `axis`; None: in the flattened array."""
    return _op("argmax")(x, axis, keepdim=keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the smallest element along `axis`; None: in the flattened array."""
    return _op("argmin")(x, axis, keepdim=keepdims)


def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """The indices of the nonzero elements, an array per axis."""
    if not x.ndim:
        raise ValueError("nonzero: expected at least one axis")
    return _op("nonzero")(x, as_tuple=True)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """The insertion index of each element of x2 in the sorted x1."""
    x1, x2 = promoted(x1, x2)
    return _op("searchsorted")(x1, x2, side=side, sorter=sorter)


def where(condition: Any, x1: Any, x2: Any, /) -> Tensor:
    """x1 where the condition holds, x2 elsewhere."""
    return _op("where")(condition, *promoted(x1, x2))


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort the elements along `axis`."""
    return _op("argsort")(x, dim=axis, descending=descending, stable=stable)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The sorted elements along `axis`."""
    return _op("sort")(x, dim=axis, descending=descending, stable=stable)[0]


def _of_one(function: Callable) -> Callable:
    """Return NumPy's function of one array, which is positional-only in the standard."""

    def positional(x: Any, /) -> Any:
        return function(x)

    return named(positional, function.__name__, function.__doc__)


unique_all, unique_counts = _of_one(sorting.unique_all), _of_one(sorting.unique_counts)
unique_inverse, unique_values = _of_one(sorting.unique_inverse), _of_one(sorting.unique_values)


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of x1 is among those of x2; with invert, whether it is not."""
    dtype = result_type(x1, x2)
    x1, x2 = (a if isinstance(a, Tensor) else _op("full")([], a, dtype=dtype) for a in promoted(x1, x2))
    return _op("isin")(x1, x2, invert=invert)
