"""A cache of functions of sizes for plain numbers only: the sizes of a trace record their uses, and stay in its run."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

R = TypeVar("R")
_PLAIN = frozenset({int, float, bool, str, type(None)})


def cache_plain(function: Callable[..., R]) -> Callable[..., R]:
    """Return the function with its last 1024 results kept by positional arguments: numbers, text, tuples of them.

    Calls with other numbers, such as traced sizes, run the function: a kept result would hide their uses from the
    trace, and give its sizes to other code.
    """
    cached = lru_cache(1024, typed=True)(function)

    @wraps(function)
    def call(*args: Any) -> Any:
        for value in args:
            kind = type(value)
            if kind is tuple:
                # Without a loop in Python for tuples of numbers: every call of a convolution asks.
                if not _PLAIN.issuperset(map(type, value)) and not _is_plain(value):
                    return function(*args)
            elif kind not in _PLAIN:
                return function(*args)
        return cached(*args)

    return call


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if type(value) is tuple else type(value) in _PLAIN
