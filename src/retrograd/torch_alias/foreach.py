"""PyTorch's functions on lists of tensors, `torch._foreach_add` and its relatives, which optimizers call."""

import operator
from collections.abc import Callable
from functools import partial
from itertools import repeat
from typing import Any

from retrograd.core import Tensor
from retrograd.linalg import vector_norm

PREFIX = "_foreach_"
_BOTH = [  # that exist with and without "_"
    "abs", "acos", "add", "addcdiv", "addcmul", "asin", "atan", "ceil", "clamp_max", "clamp_min", "cos", "cosh", "div",
    "erf", "erfc", "exp", "expm1", "floor", "frac", "lerp", "lgamma", "log", "log10", "log1p", "log2", "maximum",
    "minimum", "mul", "neg", "pow", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "sub",
    "tan", "tanh", "trunc",
]  # fmt: skip
_ONE = ["clone", "copy_", "max", "mm", "norm", "powsum", "zero_"]
NAMES = frozenset(f"{PREFIX}{name}" for name in (*_BOTH, *(f"{name}_" for name in _BOTH), *_ONE))
KEYWORDS = (
    "alpha",
    "dtype",
    "memory_format",
    "non_blocking",
)  # arguments of the methods; others are one for each tensor


def function(name: str) -> Callable:
    """Return the function of that name: it calls a method of each tensor in a list.

    Further arguments are lists, with one entry for each tensor, or one value for all. The function returns a tuple, or
    the list itself if its name ends with "_".

    >>> import retrograd as rg
    >>> function("_foreach_add")([rg.ones(2), rg.zeros(2)], [1.0, 2.0])
    (tensor([2., 2.]), tensor([2., 2.]))
    """
    return partial(_call, name.removeprefix(PREFIX))


def _call(name: str, tensors: Any, *args: Any, **keywords: Any) -> Any:
    constant = {key: keywords.pop(key) for key in KEYWORDS if key in keywords}
    columns = [_column(x) for x in (tensors, *args, *keywords.values())]
    lengths = list(dict.fromkeys(len(column) for column in columns if isinstance(column, list)))
    if len(lengths) > 1:
        raise RuntimeError(
            f"{PREFIX}{name}: Tensor lists must have the same number of tensors, got {lengths[0]} and {lengths[1]}"
        )
    apply = _METHODS.get(name) or partial(_method, name)
    results = [apply(*values, **constant) for values in zip(*columns, strict=False)]  # of lists and endless repetitions
    return tensors if name.endswith("_") else tuple(results)


def _column(x: Any) -> Any:
    """Return one value for each tensor: a list, or a value repeated."""
    return list(x) if isinstance(x, list | tuple) else repeat(x)


def _method(name: str, x: Tensor, *args: Any, **keywords: Any) -> Any:
    """Call a method; in place of one that does not exist, copy the result of the method without "_"."""
    if hasattr(x, name):
        return getattr(x, name)(*args, **keywords)
    return x.copy_(getattr(x, name.removesuffix("_"))(*args, **keywords))


def _with_value(name: str, x: Tensor, a: Tensor, b: Tensor, value: Any = 1) -> Any:
    return getattr(x, name)(a, b, value=value)


_METHODS: dict[str, Callable] = {
    "norm": vector_norm,
    "pow": operator.pow,
    "powsum": lambda x, ord=2, dtype=None: x.abs().pow(ord).sum(dtype=dtype),
    **{name: partial(_with_value, name) for name in ("addcmul", "addcmul_", "addcdiv", "addcdiv_")},
}
