"""Elementwise functions."""

from collections.abc import Callable
from typing import Any

from retrograd.core import Tensor, operator_named
from retrograd.interop.array_api.naming import named
from retrograd.interop.array_api.promotion import promoted
from retrograd.ops.family import cast_to

_SAME_NAMES = """
    abs acos acosh asin asinh atan atanh ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log log1p log2
    log10 logical_not real reciprocal round signbit sin sinh square sqrt tan tanh trunc
"""
UNARY = {name: name for name in _SAME_NAMES.split()} | {
    "bitwise_invert": "bitwise_not",
    "negative": "neg",
    "positive": "positive",
    "sign": "sgn",
}
BINARY = {
    "add": "add",
    "atan2": "atan2",
    "bitwise_and": "bitwise_and",
    "bitwise_left_shift": "bitwise_left_shift",
    "bitwise_or": "bitwise_or",
    "bitwise_right_shift": "bitwise_right_shift",
    "bitwise_xor": "bitwise_xor",
    "copysign": "copysign",
    "divide": "div",
    "equal": "eq",
    "floor_divide": "floor_divide",
    "greater": "gt",
    "greater_equal": "ge",
    "hypot": "hypot",
    "less": "lt",
    "less_equal": "le",
    "logaddexp": "logaddexp",
    "logical_and": "logical_and",
    "logical_or": "logical_or",
    "logical_xor": "logical_xor",
    "maximum": "maximum",
    "minimum": "minimum",
    "multiply": "mul",
    "nextafter": "nextafter",
    "not_equal": "ne",
    "pow": "pow",
    "remainder": "remainder",
    "subtract": "sub",
}


def _unary(name: str, target: str) -> Callable:
    operator = operator_named(target)

    def function(x: Any, /) -> Tensor:
        return operator(x)

    return named(function, name, operator.__doc__)


def _binary(name: str, target: str) -> Callable:
    operator = operator_named(target)

    def function(x1: Any, x2: Any, /) -> Tensor:
        return operator(*promoted(x1, x2))

    return named(function, name, operator.__doc__)


FUNCTIONS = {name: _unary(name, target) for name, target in UNARY.items()}
FUNCTIONS |= {name: _binary(name, target) for name, target in BINARY.items()}


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """Clip x to min and max, which are numbers or arrays; the dtype is that of x."""
    for bound, choose in ((min, "maximum"), (max, "minimum")):
        if bound is not None:
            bound = cast_to(bound, x.dtype) if isinstance(bound, Tensor) else bound
            x = operator_named(choose)(x, bound)
    return x + 0 if min is None and max is None else x


FUNCTIONS["clip"] = clip
