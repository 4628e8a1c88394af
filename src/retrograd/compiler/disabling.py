"""Marks of functions for compilation: excluded, or with a constant result; and names of PyTorch without effect."""

import functools
from collections.abc import Callable
from typing import Any

from retrograd.foundation.function_arguments import check_function_arguments


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
    check_function_arguments("disable", [(0, "fn")], (fn,), {})

    @functools.wraps(fn)
    def run_disabled(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return run_disabled


def assume_constant_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function as one whose result is a constant of each program that contains its call.

    While a call is captured it runs as always, and whatever it reads or does is no part of the program. It returns
    numbers, strings or other plain values, no tensors.

    Source: the name is that of torch.compiler.assume_constant_result.

    >>> import retrograd as rg
    >>> seen = []
    >>> @rg.compiler.assume_constant_result
    ... def scale():
    ...     seen.append("called")
    ...     return 2.0
    >>> double = rg.compile(lambda x: x * scale())
    >>> double(rg.ones(1)), double(rg.ones(1)), seen
    (tensor([2.]), tensor([2.]), ['called'])
    """
    check_function_arguments("assume_constant_result", [(0, "fn")], (fn,), {})

    @functools.wraps(fn)
    def run_once(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return run_once


def allow_in_graph(fn: Any) -> Any:
    """Return the function, or the list or tuple of functions: every function becomes a part of a program here.

    Raises TypeError for anything that cannot be called.

    Source: the name is that of torch.compiler.allow_in_graph.

    >>> import retrograd as rg
    >>> rg.compiler.allow_in_graph(rg.sin) is rg.sin
    True
    """
    for function in fn if isinstance(fn, list | tuple) else (fn,):
        check_function_arguments("allow_in_graph", [(0, "fn")], (function,), {})
    return fn


def nested_compile_region(fn: Callable[..., Any] | None = None) -> Any:
    """Return the function: a program contains all calls of it, each on its own. Without a function, the decorator.

    Source: the name is that of torch.compiler.nested_compile_region.

    >>> import retrograd as rg
    >>> rg.compiler.nested_compile_region(rg.sin) is rg.sin
    True
    """
    if fn is None:
        return nested_compile_region
    check_function_arguments("nested_compile_region", [(0, "fn")], (fn,), {})
    return fn


def cudagraph_mark_step_begin() -> None:
    """Do nothing: results of compiled calls are never overwritten by later calls.

    Source: the name is that of torch.compiler.cudagraph_mark_step_begin.

    >>> import retrograd as rg
    >>> rg.compiler.cudagraph_mark_step_begin()
    """
