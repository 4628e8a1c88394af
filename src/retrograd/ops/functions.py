"""Public functions that are not operators: they return no tensors, or only call operators."""

from functools import wraps
from sys import _getframe
from types import FunctionType

from retrograd.core import Tensor
from retrograd.core.op import is_foreign
from retrograd.core.overrides import function_result
from retrograd.core.state import current
from retrograd.foundation.describe_value import tensor_hint
from retrograd.foundation.lazy_imports import LazyTable
from retrograd.foundation.source_location import is_user_frame

functions = LazyTable()  # dotted name below `rg.` -> function
public_members = LazyTable()  # dotted name below `rg.` -> function or operator
_derived = set()  # names of the functions that operators have by their traits


def function(*names):
    """Decorator: register a function under these public names; by default under its own.

    >>> @function("linalg.answer")
    ... def answer():
    ...     return 42
    >>> public_members.pop("linalg.answer")(), functions.pop("linalg.answer")()
    (42, 42)
    """

    def register(member):
        for name in names or (member.__name__,):
            if functions.has(name) and name not in _derived:
                raise ValueError(f"the function {name!r} is registered already, by {functions[name].__module__}")
            _derived.discard(name)
            functions.add(name, member)
            public_members.add(name, member)
        return name_generated(member, names[0] if names else member.__name__)

    return register


def overridable(function):
    """Decorator: let operands' classes and function modes compute a public function that users call.

    Operators do this themselves, and so do functions that only call one. Calls by this package are not overridden.
    The attribute `without_override` is the function itself, for classes that override operators alone.
    """

    @wraps(function, assigned=("__module__", "__name__", "__doc__", "__annotations__"))  # it is named as generated
    def call(*args, **kwargs):
        # Most calls end here, without a look at operands that are keywords or at the caller.
        plain = not kwargs and current().level is None and not any(map(is_foreign, args))
        if not plain and is_user_frame(_getframe(1)):
            result = function_result(call, (*args, *kwargs.values()), args, kwargs)
            if result is not NotImplemented:
                return result
        return function(*args, **kwargs)

    call.without_override = function  # type: ignore[attr-defined]
    return call


def name_generated(member, path):
    """Name a function that another function has made by its public path, where pickle finds it; return the function."""
    if isinstance(member, FunctionType) and "<locals>" in member.__qualname__:
        home, _, name = path.rpartition(".")
        in_class = home == "Tensor"
        member.__module__ = "retrograd" if in_class or not home else f"retrograd.{home}"
        member.__qualname__ = path if in_class else name
    return member


def derived_function(name, home, member):
    """Register a function that an operator of the module `home` has by its traits, unless another one has this name."""
    if functions.homes.get(name, home) == home and not functions.has(name):
        function(name)(member)
        _derived.add(name)


def check_tensor(name, value):
    """Raise a TypeError of the named function unless an argument is a tensor; return it."""
    if isinstance(value, Tensor) or is_foreign(value):
        return value
    raise TypeError(f"{name}: expected a Tensor, got {type(value).__name__}; {tensor_hint(value)}")


def check_callable(name, value):
    """Raise a TypeError of the named function unless an argument is callable; return it."""
    if callable(value) and not isinstance(value, Tensor):
        return value
    raise TypeError(f"{name}: expected a function of numbers, got {type(value).__name__}")


def __getattr__(name):
    """A public operator or function of `rg`, by name: its module is imported on first use."""
    if name in public_members:
        return public_members[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
