"""Functions that are excluded from compilation."""

import functools
from collections.abc import Callable
from typing import Any


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return the function as one that is never compiled: a compiled function that calls it runs eagerly.

    `recursive` and `reason` are accepted as in PyTorch.  Without a function, return the decorator.

    >>> import retrograd as rg
    >>> @rg.compiler.disable
    ... def report(x):
    ...     print("mean", x.mean().item())
    >>> report(rg.ones(3))
    mean 1.0
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)

    @functools.wraps(fn)
    def run_disabled(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return run_disabled
