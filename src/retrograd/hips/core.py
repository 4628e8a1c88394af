"""`autograd.core`: the names of `retrograd.hips.extend`, and the derivatives of functions of one argument."""

from collections.abc import Callable
from typing import Any

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func import autograd_api
from retrograd.hips.extend import (
    def_linear,
    defjvp,
    defjvp_argnum,
    defvjp,
    defvjp_argnum,
    notrace_primitive,
    primitive,
)

__all__ = [
    "def_linear", "defjvp", "defjvp_argnum", "defvjp", "defvjp_argnum", "make_jvp", "make_vjp", "notrace_primitive",
    "primitive",
]  # fmt: skip


def make_vjp(fun: Callable, x: Any) -> tuple[Callable, Any]:
    """Return the function that pulls cotangents back to x, and `fun(x)`.

    >>> pull, value = make_vjp(lambda x: x**3, 2.0)
    >>> value, pull(10.0)
    (np.float64(8.0), np.float64(120.0))
    """
    return autograd_api.make_vjp(fun)(x)


def make_jvp(fun: Callable, x: Any) -> Callable:
    """Return the function that maps a tangent of x to `fun(x)` and the derivative along the tangent.

    >>> make_jvp(lambda x: x**3, 2.0)(10.0)
    (np.float64(8.0), np.float64(120.0))
    """
    return autograd_api.make_jvp(fun)(x)


suggest_in_module(globals())
