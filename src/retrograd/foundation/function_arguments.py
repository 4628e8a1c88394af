"""Compare arguments with their annotations: functions before a call, and other kinds after it failed."""

import inspect
import numbers
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from os import PathLike

from retrograd.foundation.describe_value import describe


@typing.runtime_checkable
class Array(typing.Protocol):
    """A tensor, an array, a sparse array or another object with a shape, as a kind of arguments."""

    @property
    def shape(self) -> typing.Any:
        """Return the sizes."""


# A value with one of the methods can be such a number.
_NUMBERS = {int: ("__index__",), float: ("__float__",), complex: ("__complex__", "__float__")}
_OF_MEMBERS = (Sequence, Iterable, Iterator, Collection, Mapping, list, tuple, dict)
_WORDS = {
    Callable: "function", Sequence: "sequence", Iterable: "iterable", Collection: "collection", Mapping: "dict",
    PathLike: "path", Sized: "object with a length", Array: "array", complex: "number",
}  # fmt: skip
# The beginnings of messages of Python and NumPy, which name what the user has not passed.
_PYTHON_WORDS = re.compile(
    r"'?[\w.]+'? object |unsupported operand|bad operand|cannot unpack|argument of type|must be real|'[^']+' not supp"
    r"|ufunc|can only concatenate|(int|float)\(\) arg|object of type|[Cc]annot (interpret|convert)|unhashable"
    r"|expected str, bytes|a bytes-like|could not convert|type object|list indices|tuple indices"
)


def function_parameters(function):
    """Return the index and the name of each parameter annotated as Callable; the index is None if keyword-only."""
    parameters = inspect.signature(function).parameters.values()
    return [
        (None if p.kind is p.KEYWORD_ONLY else i, p.name)
        for i, p in enumerate(parameters)
        if p.annotation is Callable or typing.get_origin(p.annotation) is Callable
    ]


def explain_kind(function, args, kwargs, error):
    """Raise a better error if a call failed because an argument is of another kind than annotated.

    The error names the function and the argument, and ends with the words of the one that it replaces. An error that
    names one of them already is left alone, and so is one of a call whose arguments all fit. It is called after a
    failure, so that a call that succeeds costs nothing.
    """
    name = function.__qualname__.rpartition(".")[2]
    name = type(args[0]).__name__ if name == "__init__" else name  # not that of a base, which nobody has called
    for argument, value, annotation in _misfits(function, args, kwargs):
        if not (_names(name, error) or _names(argument, error)):
            got = f"{describe(value)} ({type(value).__name__})"
            raise _class_of(error)(
                f"{name}: {argument} must be {_kind_words(annotation)}, got {got}: {error}"
            ) from error
        return


def _misfits(function, args, kwargs):
    """Return name, value and annotation of each argument that does not fit; numbers, which may fit, are last."""
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return []
    found = []
    for name, given in bound.items():
        parameter = signature.parameters[name]
        annotation = _evaluated(parameter.annotation, function)
        values = {name: given}.items()
        if parameter.kind is parameter.VAR_KEYWORD:
            values = given.items()
        elif parameter.kind is parameter.VAR_POSITIONAL:
            values = [(name, v) for v in given]
        found += [(n, v, annotation) for n, v in values if not (v is parameter.default or fits_kind(v, annotation))]
    return sorted(found, key=lambda misfit: isinstance(misfit[1], numbers.Number))


def _evaluated(annotation, function):
    """Return an annotation that is written as text; Any if it names what is imported for type checkers only."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, getattr(function, "__globals__", {}))
    except (NameError, AttributeError, TypeError, SyntaxError):
        return typing.Any


def _names(word, error):
    """Return whether a message that is not Python's own contains a word."""
    text = str(error)
    return not _PYTHON_WORDS.match(text) and re.search(rf"(?<![A-Za-z]){re.escape(word)}(?![A-Za-z])", text) is not None


def _class_of(error):
    """Return the class for a better error: that of the first one, if it is what users of PyTorch expect."""
    package = type(error).__module__.partition(".")[0] == __name__.partition(".")[0]
    kept = ValueError, RuntimeError, NotImplementedError
    return type(error) if type(error) in kept or package else TypeError


def fits_kind(value, annotation):
    """Return whether an argument can be of the kind that an annotation declares; in doubt, it can.

    >>> fits_kind(None, int), fits_kind(3, int | None), fits_kind("ab", Sequence[int]), fits_kind((1, 2), Sequence[int])
    (False, True, False, True)
    >>> fits_kind(1j, float), fits_kind(1j, complex), fits_kind(3, complex)
    (False, True, True)
    >>> import io
    >>> fits_kind(io.BytesIO(), typing.BinaryIO), fits_kind(3, typing.BinaryIO)
    (True, False)
    """
    origin = typing.get_origin(annotation) or annotation
    if origin in (typing.Union, types.UnionType):
        return any(fits_kind(value, part) for part in typing.get_args(annotation))
    if isinstance(annotation, typing.TypeVar):
        return annotation.__bound__ is None or fits_kind(value, annotation.__bound__)
    if annotation is None or annotation is types.NoneType:
        return value is None
    if origin is bool or not inspect.isclass(origin) or origin is inspect.Parameter.empty:
        return origin is not bool or is_switch(value)
    if _overrides(type(value)):  # a class of its own, which handles operators
        return origin is not str
    if origin in _NUMBERS:
        return any(hasattr(value, method) for method in _NUMBERS[origin])
    if issubclass(origin, typing.IO):  # no class of an open file is a subclass of it
        return hasattr(value, "read") or hasattr(value, "write")
    if isinstance(value, str) and origin in _OF_MEMBERS:
        return typing.get_args(annotation)[:1] in ((), (str,)) and origin is not Mapping
    if origin is Sequence:
        return hasattr(value, "__getitem__") and not isinstance(value, Mapping)
    try:
        return isinstance(value, origin) or (hasattr(origin, "__array__") and hasattr(value, "__array__"))
    except TypeError:  # a protocol that can't be asked for
        return True


def is_switch(value):
    """Return whether a value is True, False, an integer, or None, which counts as False."""
    return value is None or isinstance(value, int) or type(value).__name__ == "bool"  # NumPy's is no int


def _overrides(kind):
    return (hasattr(kind, "__torch_function__") or hasattr(kind, "__tensor_function__")) and not hasattr(
        kind, "backward"
    )


def _kind_words(annotation):
    """Return an annotation as words: `a Tensor`, `an int or None`."""
    origin = typing.get_origin(annotation) or annotation
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_kind_words, typing.get_args(annotation))))
    if isinstance(annotation, typing.TypeVar):
        return _kind_words(annotation.__bound__)
    if annotation is None or annotation is types.NoneType:
        return "None"
    word = _WORDS.get(origin) or getattr(origin, "__name__", str(origin))
    article = "an" if word[0] in "aeiouAEIOU" else "a"
    return f"{article} {word}"


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
