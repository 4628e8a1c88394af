"""Evenly spaced values between ends that may be differentiable tensors."""

from retrograd.core import Tensor, registry
from retrograd.core import dtype as dtypes
from retrograd.ops.create import as_tensor, factory
from retrograd.ops.methods import lost_derivatives
from retrograd.ops.pointwise import pow as power
from retrograd.ops.pointwise import to, trunc, where

_linspace, _logspace = registry["linspace"], registry["logspace"]


def linspace(start, end, steps, *, dtype=None) -> Tensor:
    """Return `steps` evenly spaced values from start to end, both included; integers are truncated towards 0.

    start and end are numbers, or tensors without dimensions, which may differ between examples and get derivatives.
    Raises RuntimeError for tensors that have dimensions, ValueError for negative steps.

    >>> import retrograd as rg
    >>> rg.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    >>> rg.func.vmap(lambda end: rg.linspace(0, end, 3))(rg.tensor([1.0, 4.0]))
    tensor([[0.0000, 0.5000, 1.0000],
            [0.0000, 2.0000, 4.0000]])
    """
    if not _needs_operators("linspace", start=start, end=end):
        return _linspace(start, end, steps, dtype=dtype)
    return to(_interpolate(start, end, steps, dtype), _result_dtype(dtype, start, end))


def logspace(start, end, steps, base=10.0, *, dtype=None) -> Tensor:
    """Return `steps` powers of the base, with evenly spaced exponents from start to end.

    start, end and base are numbers, or tensors without dimensions, which may differ between examples and get
    derivatives.  Raises RuntimeError for tensors that have dimensions, ValueError for negative steps.

    >>> import retrograd as rg
    >>> rg.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    if not _needs_operators("logspace", start=start, end=end, base=base):
        return _logspace(start, end, steps, base, dtype=dtype)
    return to(power(_to_double(base), _interpolate(start, end, steps, dtype)), _result_dtype(dtype, start, end, base))


def _needs_operators(name, **ends):
    """Whether an end is a tensor with a graph, tangent or batch dimension, which a plain number would lose."""
    needed = False
    for which, x in ends.items():
        if isinstance(x, Tensor):
            if x.ndim:
                words = "must be a number or a tensor without dimensions"
                raise RuntimeError(f"{name}: {which} {words}, got shape {x.shape}")
            needed = needed or x.level is not None or lost_derivatives(x)
    return needed


def _interpolate(start, end, steps, dtype):
    """Return the values in double precision, with both ends exact, as `linspace` of numbers does."""
    is_integer = dtype is not None and as_tensor(0, dtype=dtype).dtype.kind in "iu"
    start, end = (trunc(_to_double(x)) if is_integer else _to_double(x) for x in (start, end))
    step, order = (end - start) / max(steps - 1, 1), registry["arange"](0, steps, 1)
    return where((order == steps - 1) & (order > 0), end, start + order * step)


def _to_double(x):
    if not isinstance(x, Tensor):
        return as_tensor(x, dtype=dtypes.complex128 if isinstance(x, complex) else dtypes.float64)
    return to(x, dtypes.complex128 if x.dtype.kind == "c" else dtypes.float64)


def _result_dtype(dtype, *ends):
    if dtype is not None:
        return dtype
    default = dtypes.get_default_dtype()
    return dtypes.complex_of(default) if any(as_tensor(x).dtype.kind == "c" for x in ends) else default


linspace, logspace = factory(linspace), factory(logspace)
