"""Check that arguments annotated as functions can be called, before a call fails without their names."""

import inspect
import typing
from collections.abc import Callable

from retrograd.foundation.describe_value import describe


def function_parameters(function):
    """Return the index and the name of each parameter annotated as Callable; the index is None if keyword-only."""
    parameters = inspect.signature(function).parameters.values()
    return [
        (None if p.kind is p.KEYWORD_ONLY else i, p.name)
        for i, p in enumerate(parameters)
        if p.annotation is Callable or typing.get_origin(p.annotation) is Callable
    ]


def check_function_arguments(name, parameters, args, kwargs):
    """Raise TypeError if an argument of the function called `name` should be a function and can't be called.

    >>> check_function_arguments("grad", [(0, "func")], (abs,), {})
    >>> check_function_arguments("grad", [(0, "func")], (), {"func": 3})
    Traceback (most recent call last):
    TypeError: grad: func must be a function, got 3: 'int' object is not callable
    """
    for index, parameter in parameters:
        value = (
            args[index] if index is not None and index < len(args) else kwargs.get(parameter, check_function_arguments)
        )
        if not callable(value):
            hint = "; pass the function, not its result" if hasattr(value, "shape") else ""
            words = f"{type(value).__name__!r} object is not callable"  # Python's, which PyTorch's errors have
            raise TypeError(f"{name}: {parameter} must be a function, got {describe(value)}: {words}{hint}")
