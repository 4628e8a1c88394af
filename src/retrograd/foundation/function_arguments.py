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


def class_parameters(function):
    """Return the name and the class of each parameter annotated as one class of this package, such as Tensor."""
    package = __name__.partition(".")[0]
    return {
        name: p.annotation
        for name, p in inspect.signature(function).parameters.items()
        if inspect.isclass(p.annotation) and p.annotation.__module__.partition(".")[0] == package
    }


def explain_kind(function, classes, args, kwargs, error):
    """Raise TypeError if a call failed by Python's words because an argument is of another class than annotated.

    classes: those of `class_parameters`. It is called after a failure, so that a call that succeeds costs nothing.
    """
    if not isinstance(error, AttributeError) and not str(error).startswith("'"):  # a message of our own
        return
    bound = inspect.signature(function).bind(*args, **kwargs).arguments
    for name, kind in classes.items():
        if name in bound and not isinstance(bound[name], kind):
            got = f"{describe(bound[name])} ({type(bound[name]).__name__})"
            raise TypeError(f"{function.__name__}: {name} must be a {kind.__name__}, got {got}: {error}") from None


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
