"""Elementwise functions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.core import Tensor, operator_named
from retrograd.interop.array_api.generated import OPERANDS
from retrograd.interop.function_table import UFUNCS
from retrograd.interop.signatures import function_with_signature
from retrograd.ops.family import cast_to

_NAMES = """
    abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan
    log log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt tan
    tanh trunc
    add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
    floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum
    minimum multiply nextafter not_equal pow remainder subtract
"""


def _function(name: str) -> Callable:
    """Return the standard's function: the operator of NumPy's ufunc that has this name as well."""
    ufunc = getattr(np, name)
    operator = operator_named(UFUNCS.get(ufunc.__name__, name))
    arguments = "&x1, &x2, /" if getattr(ufunc, "nin", 1) == 2 else "x, /"
    return function_with_signature(f"{name}({arguments})", operator, OPERANDS, "retrograd.interop.array_api")


FUNCTIONS = {name: _function(name) for name in _NAMES.split()}


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """Clip x to min and max, which are numbers or arrays; the dtype is that of x."""
    for bound, choose in ((min, "maximum"), (max, "minimum")):
        if bound is not None:
            bound = cast_to(bound, x.dtype) if isinstance(bound, Tensor) else bound
            x = operator_named(choose)(x, bound)
    return x + 0 if min is None and max is None else x


FUNCTIONS["clip"] = clip
