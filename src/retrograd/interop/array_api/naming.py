"""Names of functions that are created in a loop."""

from collections.abc import Callable


def named(function: Callable, name: str, doc: str | None) -> Callable:
    """Return the function with its public name and docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
