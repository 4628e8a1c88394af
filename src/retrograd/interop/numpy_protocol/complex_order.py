"""NumPy's order of complex numbers, by the real and then by the imaginary part, which PyTorch lacks."""

import math
from collections.abc import Callable
from typing import Any

from retrograd.core import Tensor
from retrograd.interop.numpy_protocol.table import O, cast, promote_operands


def real_or_complex(real: Callable, ordered: Callable) -> Callable:
    """Return the function `real` of operands, and `ordered` of their tensors where one of them is complex."""

    def function(*inputs: Any) -> Any:
        if any(isinstance(x, complex) or (hasattr(x, "dtype") and x.dtype.kind == "c") for x in inputs):
            return ordered(*promote_operands(*inputs))
        return real(*inputs)

    return function


def greater(a: Tensor, b: Tensor) -> Tensor:
    """Whether a comes after b; false if one is NaN."""
    real, other = O.real(a), O.real(b)
    later = (real > other) | ((real == other) & (O.imag(a) > O.imag(b)))
    return later & ~O.isnan(a) & ~O.isnan(b)


def less(a: Tensor, b: Tensor) -> Tensor:
    """Whether a comes before b."""
    return greater(b, a)


def greater_equal(a: Tensor, b: Tensor) -> Tensor:
    """Whether a equals b or comes after it."""
    return greater(a, b) | (a == b)


def less_equal(a: Tensor, b: Tensor) -> Tensor:
    """Whether a equals b or comes before it."""
    return greater_equal(b, a)


def maximum(a: Tensor, b: Tensor) -> Tensor:
    """The larger of two numbers in this order, or NaN if one is; equal ones share the gradient."""
    return _later(a, b, O.isnan(a), O.isnan(b) & ~O.isnan(a))


def minimum(a: Tensor, b: Tensor) -> Tensor:
    """The smaller of two numbers in this order, or NaN if one is; equal ones share the gradient."""
    return -maximum(-a, -b)


def fmax(a: Tensor, b: Tensor) -> Tensor:
    """The larger of two numbers in this order, or the one that is not NaN; equal ones share the gradient."""
    return _later(a, b, O.isnan(b), O.isnan(a) & ~O.isnan(b))


def fmin(a: Tensor, b: Tensor) -> Tensor:
    """The smaller of two numbers in this order, or the one that is not NaN; equal ones share the gradient."""
    return -fmax(-a, -b)


def _later(a: Tensor, b: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Return a or b where the masks select it, and elsewhere the larger."""
    later = O.where(a == b, (a + b) / 2, O.where(greater(a, b), a, b))
    return O.where(first, a, O.where(second, b, later))


def extreme(operator: Callable) -> Callable:
    """Return `amax` or `amin`, selected by the operator, of complex numbers; ties share the gradient."""

    def function(x: Tensor, dims: Any = None, keepdim: bool = False) -> Tensor:
        chosen = _extreme_mask(operator, O.detach(x), dims)
        share = cast(chosen, x.dtype) / O.sum(chosen, dims, True)
        return O.sum(O.where(chosen, x, 0) * share, dims, keepdim)

    return function


def arg_extreme(operator: Callable, x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """Return the index of the first extreme element, or of the first NaN if there is one."""
    return O.argmax(cast(_extreme_mask(operator, O.detach(x), axis), "int8"), axis, keepdims)


def _extreme_mask(operator: Callable, x: Tensor, dims: Any) -> Tensor:
    """Return which elements are the extreme, or NaN."""
    real, imag = O.real(x), O.imag(x)
    farthest = -math.inf if operator is O.amax else math.inf
    imag = O.where(real == operator(real, dims, True), imag, farthest)
    chosen = (imag == operator(imag, dims, True)) & (real == operator(real, dims, True))
    unknown = O.isnan(x)
    return O.where(O.any(unknown, dims, True), unknown, chosen)
