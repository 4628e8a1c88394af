"""Kernels and derivative rules for half precision that compute in float32 and round once.

NumPy's functions on bfloat16 are those of `ml_dtypes`: slow loops that round after each function. So the kernel of an
operator gets float32 in its place, except where elements only move, and so do its derivative rules.  float16 is widened
where `ops/opmath.py` says so.
"""

from functools import partial, wraps

from numpy import asarray, ndarray

from retrograd.core.aval import Aval
from retrograd.core.dtype import (
    float32,
    is_bfloat16,
    is_differentiable,
    is_extension,
    is_half,
    scalar_name,
    stores_only,
)
from retrograd.core.op import namespaces, operator_named
from retrograd.core.tensor import TensorBase, have_no_half


def kernel_in_single(kernel):
    """Return the kernel that computes in float32 and rounds its result if given half precision."""

    def run_kernel(*arrays, **params):
        if have_no_half(arrays):
            return kernel(*arrays, **params)
        for a in arrays:
            if _is_half(a):
                return _run_in_single(kernel, arrays, params, a.dtype)
        return kernel(*arrays, **params)

    return run_kernel


def widened_kernel(name, kernel):
    """Return the kernel of an operator for arrays of `ml_dtypes`: in float32 for bfloat16, none for the others."""
    in_single = kernel_in_single(kernel)

    def run_or_refuse(*arrays, **params):
        for a in arrays:
            if hasattr(a, "dtype") and stores_only(a.dtype):
                raise NotImplementedError(
                    f"\"{name}\" not implemented for '{scalar_name(a.dtype)}': convert with .to(rg.float32) first"
                )
        return in_single(*arrays, **params)

    return run_or_refuse


def comparing_kernel(kernel):
    """Return the kernel of a comparison for arrays of `ml_dtypes`: of their values in float32, which holds them all."""

    def compare(*arrays, **params):
        return kernel(*map(_extension_to_single, arrays), **params)

    return compare


def _extension_to_single(a):
    return a.astype(float32) if hasattr(a, "dtype") and is_extension(a.dtype) else a


def _run_in_single(kernel, arrays, params, half):
    dtype = params.get("dtype")
    if dtype is not None and dtype != half:  # an explicit dtype determines the precision
        return kernel(*[_array_to_single(a) if is_bfloat16(half) else a for a in arrays], **params)
    params = {**params, "dtype": float32} if "dtype" in params else params
    out = kernel(*[_array_to_single(a) for a in arrays], **params)
    return out if _has_wider(arrays) else map_values(partial(_array_to_half, half), out)


def _has_wider(arrays):
    """Return whether there are arrays of bfloat16 and of wider dtypes, to which the operator may have promoted them."""
    dtypes = {a.dtype for a in arrays if hasattr(a, "dtype") and is_differentiable(a.dtype)}
    return len(dtypes) > 1 and any(map(is_bfloat16, dtypes))


def rule_in_single(rule):
    """Return the derivative rule that computes in float32 if its cotangent or tangent has half precision."""

    @wraps(rule)
    def run_rule(g, *args, **named):
        half = _half_of(g)
        if half is None:
            return rule(g, *args, **named)
        wide = [map_values(to_single, a) for a in (g, *args)]
        named = {k: map_values(to_single, a) for k, a in named.items()}
        return map_values(partial(to_half, half), rule(*wide, **named))

    return run_rule


def _half_of(g):
    """Return the dtype of a cotangent, or of one of several, that has half precision; None if none has."""
    if isinstance(g, (tuple, list)):
        return next(filter(None, map(_half_of, g)), None)
    return g.dtype if isinstance(g, TensorBase) and is_half(g.dtype) else None


def map_values(change, value):
    """Apply a function to a value, or to each member of a tuple or list; named tuples keep their type."""
    if isinstance(value, (tuple, list)):
        members = [map_values(change, member) for member in value]
        return type(value)(*members) if hasattr(value, "_fields") else type(value)(members)
    return change(value)


def _is_half(a):
    return hasattr(a, "dtype") and is_half(a.dtype)


def _array_to_single(a):
    return _convert(a, float32) if _is_half(a) else a


def _array_to_half(half, a):
    return _convert(a, half) if getattr(a, "dtype", None) == float32 else a


def _convert(a, dtype):
    """Return an array, or NumPy's scalar, which would be Python's, as an array of another dtype."""
    kind = type(a) if type(a) in namespaces else ndarray
    return namespaces[kind].cast(asarray(a) if kind is ndarray else a, dtype)


def to_single(value):
    """Return a tensor, or an aval, of half precision in float32; other values as they are."""
    if not isinstance(value, (TensorBase, Aval)) or not is_half(value.dtype):
        return value
    return operator_named("to")(value, float32) if isinstance(value, TensorBase) else Aval(value.shape, float32)


def to_half(half, value):
    """Return a float32 tensor in half precision; other values as they are."""
    return operator_named("to")(value, half) if isinstance(value, TensorBase) and value.dtype == float32 else value
