"""Public functions that are not operators: they return no tensors, or only call operators."""

from retrograd.core import Tensor
from retrograd.core.op import is_foreign

functions = {}  # dotted name below `rg.` -> function


def function(*names):
    """Decorator: register a function under these public names; by default under its own.

    >>> @function("linalg.answer")
    ... def answer():
    ...     return 42
    >>> functions.pop("linalg.answer")()
    42
    """

    def register(member):
        for name in names or (member.__name__,):
            if name in functions:
                raise ValueError(f"the function {name!r} is registered already, by {functions[name].__module__}")
            functions[name] = member
        return member

    return register


def check_tensor(name, value):
    """Raise a TypeError of the named function unless an argument is a tensor; return it."""
    if isinstance(value, Tensor) or is_foreign(value):
        return value
    raise TypeError(f"{name}: expected a Tensor, got {type(value).__name__}; see rg.tensor")


def check_callable(name, value):
    """Raise a TypeError of the named function unless an argument is callable; return it."""
    if callable(value) and not isinstance(value, Tensor):
        return value
    raise TypeError(f"{name}: expected a function of numbers, got {type(value).__name__}")
