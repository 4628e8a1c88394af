"""Names of functions that are made in a loop."""

from collections.abc import Callable


def named(function: Callable, name: str, doc: str | None) -> Callable:
    """The function, with the name that it is found under and a text for `help`."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
