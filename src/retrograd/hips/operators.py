"""The functions of `autograd.differential_operators` with another name or meaning here."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import optree

from retrograd import numpy as np
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func.autograd_api import make_vjp
from retrograd.utils.checkpoint import checkpoint as _checkpoint


def checkpoint(fun: Callable) -> Callable:
    """Return the function with checkpointing: it recomputes its saved tensors in the backward pass.

    >>> from retrograd import grad
    >>> grad(checkpoint(lambda x: x**3))(2.0)
    np.float64(12.0)
    """

    @wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        return _checkpoint(fun, *args, use_reentrant=False, **kwargs)

    return run


def make_jvp_reversemode(fun: Callable, argnum: int | Sequence[int] = 0) -> Callable:
    """Return the function from a tangent to the directional derivative at a point, computed by reverse mode.

    A pullback is linear in its cotangent, so its own pullback computes the jvp. Use it for functions whose primitives
    have no forward rule; otherwise prefer `make_jvp`, which returns the value as well.

    >>> make_jvp_reversemode(lambda x: x**3)(2.0)(10.0)
    np.float64(120.0)
    """

    def jvp_at(*args: Any, **kwargs: Any) -> Callable:
        pull, value = make_vjp(fun, argnum)(*args, **kwargs)
        return make_vjp(pull)(optree.tree_map(np.zeros_like, value))[0]

    return jvp_at


suggest_in_module(globals())
