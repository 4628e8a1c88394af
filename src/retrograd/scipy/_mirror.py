"""Mirror SciPy's modules: functions defined here handle tensors, the rest is SciPy's."""

import importlib
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.interop.function_table import TABLE
from retrograd.interop.numpy_protocol.shared import NUMPYS, function_of_row
from retrograd.interop.numpy_protocol.table import holds_tensor, values
from retrograd.interop.signatures import parse
from retrograd.scipy._constants import guarded

_INNER_MODULES = ("sparse.linalg",)


def scipy_member(path: str) -> Any:
    """Return a module of SciPy or its member, "scipy.special" or "scipy.stats.norm"; ImportError names the extra."""
    name = path.removeprefix("scipy.")
    module, _, member = (name, "", "") if name in _INNER_MODULES else name.partition(".")
    try:
        found = importlib.import_module(f"scipy.{module}")
    except ImportError as error:
        raise ImportError("retrograd.scipy needs SciPy: pip install 'retrograd[scipy]'") from error
    return getattr(found, member) if member else found


def scipy_version() -> str:
    """Return the version of SciPy."""
    version: str = importlib.import_module("scipy").__version__
    return version


def on_tensors(path: str, name: str = "") -> Callable[[Callable], Callable]:
    """Decorator: call the function if an argument is or contains a tensor, else SciPy's of that name.

    Errors of both are explained: `suggest_keywords`.
    """

    def decorate(function: Callable) -> Callable:
        @wraps(function)
        def either(*args: Any, **kwargs: Any) -> Any:
            if holds_tensor(args) or (kwargs and holds_tensor(tuple(kwargs.values()))):
                return function(*args, **kwargs)
            return getattr(scipy_member(path), name or function.__name__)(*args, **kwargs)

        return suggest_keywords(either)

    return decorate


def on_arrays(function: Callable, args: Any) -> Callable:
    """Return a caller's derivative, a function of (*arrays, *args), as a function of arrays to an array."""
    plain = [detached(a) for a in (args if isinstance(args, tuple) else (args,))]
    return lambda *x: values(function(*x, *plain))


def detached(x: Any) -> Any:
    """Return a tensor without its graph, anything else as it is."""
    return x.detach() if isinstance(x, Tensor) else x


def generate(home: str) -> dict[str, Callable]:
    """Return the functions of `scipy.<home>` that are operators under other names, from the table of all faces."""
    module, found = f"scipy.{home}", {}
    for row in TABLE:
        for signature in row.scipy:
            part, _, name = parse(signature)[0].rpartition(".")
            if part == home:
                found[name] = on_tensors(module)(function_of_row(row, signature, NUMPYS, f"retrograd.{module}"))
    return found


def fallback_members(path: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a module that takes all other names from SciPy, and refuses there."""

    @cache
    def member(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        home = scipy_member(path)
        if not hasattr(home, name):
            raise AttributeError(
                f"retrograd.{path} has no {name!r}, and {path} of SciPy {scipy_version()} has none either: check the "
                f"name, or install another version of SciPy",
                name=name,
                obj=home,
            )
        return guarded(path, name, getattr(home, name))

    def names() -> list[str]:
        return dir(scipy_member(path))

    return member, names
