"""Functions and classes whose calls on proxies become single nodes, without tracing into them."""

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

from retrograd.core.blocks import generator_block
from retrograd.fx.proxy import proxies_in

PENDING: list[tuple[dict[str, Any], str]] = []  # names wrapped before their module defined them


def wrap(fn_or_name: Any) -> Any:
    """Make calls of a function on proxies single nodes, without tracing into it.

    As a decorator, it returns the wrapped function; a global of the calling module that is this function is replaced
    by the wrapped one.  A name, as in `fx.wrap("len")`, means a global or built-in
    function of the calling module; the module's global of that name is replaced by the wrapped function.  If the
    module defines it later, this happens at the next trace.  Raises RuntimeError for anything else, NameError for
    the name of an object that can't be called, and NotImplementedError if a function or a class calls it.

    >>> from retrograd import fx
    >>> @fx.wrap
    ... def clip(x, limit):
    ...     return x.clip(-limit, limit) if limit else x
    >>> graph = fx.symbolic_trace(lambda x: clip(x, 1) + 1).graph
    >>> [(node.op, node.name) for node in graph.nodes]
    [('placeholder', 'x'), ('call_function', 'clip'), ('call_function', 'add'), ('output', 'output')]
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            f"wrap: Unsupported type for global function! Must be either a callable or string name, got "
            f"{type(fn_or_name).__name__}"
        )
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError(
            f"wrap must be called at the top level of a module, not in {frame.f_code.co_qualname}: it replaces globals"
        )
    if callable(fn_or_name):
        wrapped = fn_or_name if hasattr(fn_or_name, "__wrapped_for_fx__") else _wrapper(fn_or_name)
        scope, name = frame.f_globals, getattr(fn_or_name, "__name__", "")
        if scope.get(name) is fn_or_name:
            scope[name] = wrapped
        return wrapped
    found = frame.f_globals.get(fn_or_name, frame.f_builtins.get(fn_or_name))
    if found is None:
        PENDING.append((frame.f_globals, fn_or_name))
    elif not callable(found):
        raise NameError(f"wrap: {fn_or_name!r} of {frame.f_globals.get('__name__')} is no function, but {found!r}")
    else:
        _wrap_global(frame.f_globals, fn_or_name, found)
    return fn_or_name


class ProxyableClassMeta(type):
    """The metaclass of classes whose construction from proxies becomes a node, without running `__init__`.

    >>> from retrograd import fx
    >>> class Pair(metaclass=fx.ProxyableClassMeta):
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    >>> module = fx.symbolic_trace(lambda x: Pair(x, x + 1))
    >>> module(1).right
    2
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a new object, or the proxy of one."""
        proxies = proxies_in((args, kwargs))
        if proxies:
            return proxies[0].tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


def _wrap_global(scope: dict[str, Any], name: str, found: Callable) -> None:
    if not hasattr(found, "__wrapped_for_fx__"):
        own = getattr(found, "__module__", "") == scope.get("__name__")  # then the name refers to the wrapped one
        scope[name] = _wrapper(found, target=None if own else found)


def _wrapper(function: Callable, target: Callable | None = None) -> Callable:
    """Return a wrapper that on proxies makes a node that calls `target`, by default the wrapper itself."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        proxies = proxies_in((args, kwargs))
        if not proxies:
            return function(*args, **kwargs)
        return proxies[0].tracer.create_proxy("call_function", target or wrapper, args, kwargs)

    wrapper.__wrapped_for_fx__ = True  # type: ignore[attr-defined]
    return wrapper


@generator_block
def wrapped_calls(root: Callable, modules: Iterable[ModuleType], functions: Iterable[Callable]) -> Iterator[None]:
    """Within the block, wrap functions of some modules, and some that `root`'s module has by name."""
    for scope, name in PENDING:
        if callable(scope.get(name)):
            _wrap_global(scope, name, scope[name])
    scopes: list[tuple[dict[str, Any], list | None]] = [(vars(module), None) for module in modules]
    scopes.append((getattr(getattr(root, "__func__", root), "__globals__", {}), list(functions)))
    replaced = [(scope, name, value) for scope, only in scopes for name, value in _functions_in(scope, only)]
    try:
        for scope, name, value in replaced:
            scope[name] = _wrapper(value, target=value)
        yield
    finally:
        for scope, name, value in replaced:
            scope[name] = value


def _functions_in(scope: dict[str, Any], only: list[Callable] | None) -> list[tuple[str, Callable]]:
    """Return the public functions in a scope, or the wanted ones."""
    if only is not None:
        return [(name, value) for name, value in scope.items() if any(value is function for function in only)]
    return [(name, value) for name, value in scope.items() if callable(value) and not name.startswith("_")]
