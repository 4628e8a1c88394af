"""How a module of SciPy's is reflected: what is written for tensors asks for them first, the rest is SciPy's."""

import importlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from retrograd.interop.numpy_protocol.table import holds_tensor


def scipy_member(path: str) -> Any:
    """A module of SciPy's or what is in it, "scipy.special" or "scipy.stats.norm"; ImportError names the extra."""
    module, _, member = path.removeprefix("scipy.").partition(".")
    try:
        found = importlib.import_module(f"scipy.{module}")
    except ImportError as error:
        raise ImportError("retrograd.scipy needs SciPy: pip install 'retrograd[scipy]'") from error
    return getattr(found, member) if member else found


def on_tensors(path: str, name: str = "") -> Callable[[Callable], Callable]:
    """Decorator: the function answers where an argument is a tensor or holds one, SciPy's of that name elsewhere."""

    def decorate(function: Callable) -> Callable:
        @wraps(function)
        def either(*args: Any, **kwargs: Any) -> Any:
            if holds_tensor(args) or (kwargs and holds_tensor(tuple(kwargs.values()))):
                return function(*args, **kwargs)
            return getattr(scipy_member(path), name or function.__name__)(*args, **kwargs)

        return either

    return decorate


def rest_of(path: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a module that is SciPy's in all that it does not define itself."""

    def member(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(scipy_member(path), name)

    def names() -> list[str]:
        return dir(scipy_member(path))

    return member, names
