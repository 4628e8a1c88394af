"""Check that arguments annotated as numbers or bool are such, before a formula fails without their names."""

import functools
import inspect
import math
import types
import typing
from collections.abc import Iterable, Sequence

from retrograd.foundation.describe_value import describe
from retrograd.foundation.function_arguments import is_switch
from retrograd.foundation.suggestions import for_family, suggest_init_keywords

_COUNTS = {2: "two", 3: "three"}


def is_number(value):
    """Return whether a value is a real number, or an array or a tensor of one element.

    >>> is_number(0.5), is_number("0.5"), is_number(None)
    (True, False, False)
    """
    return hasattr(type(value), "__float__") and math.prod(getattr(value, "shape", ())) == 1


def call_hint(owner, error):
    """Return how to pass tensors to an object that is called, if its constructor has refused them: an error says so."""
    refused = "got a Tensor of shape" in error or "too many positional arguments" in error
    return f"; call an instance with tensors: {type(owner).__name__}(...)(x)" if callable(owner) and refused else ""


def check_number(name, annotation, value):
    """Raise TypeError if an annotation asks for numbers, or True or False, and the value is something else.

    >>> check_number("SGD: lr", float, 0.5)
    >>> check_number("Adam: betas", tuple[float, float], (0.9,))
    Traceback (most recent call last):
    TypeError: Adam: betas must be two numbers, got (0.9,)
    """
    if not _fits(annotation, value):
        kind = " (str)" if isinstance(value, str) else ""
        raise TypeError(f"{name} must be {' or '.join(_words(annotation))}, got {describe(value)}{kind}")


def as_switch(name, value):
    """Return an argument as True or False; raise TypeError if it is neither."""
    check_number(name, bool, value)
    return bool(value)


def check_init_arguments(cls):
    """Make the constructor of a class of this package check its arguments annotated as numbers, and suggest keywords.

    Users' classes are left alone, as by `suggest_init_keywords`, and constructors with the attribute
    `checks_arguments`, which check numbers themselves.
    """
    suggest_init_keywords(cls)
    ours = cls.__module__.partition(".")[0] == __name__.partition(".")[0]
    if ours and "__init__" in vars(cls) and not hasattr(inspect.unwrap(cls.__init__), "checks_arguments"):
        cls.__init__ = _check_numbers(cls.__init__)


checks_init_arguments = for_family(check_init_arguments)


def _check_numbers(function):
    """Return a constructor that checks its arguments first; errors name the class of the object."""

    @functools.cache  # at the definition of a class, it would slow the import
    def read_signature():
        signature = inspect.signature(function)
        return signature, {p.name: p.annotation for p in signature.parameters.values() if _words(p.annotation)}

    @functools.wraps(function)
    def call(self, *args, **kwargs):
        signature, annotations = read_signature()
        if annotations:
            try:
                given = signature.bind_partial(self, *args, **kwargs).arguments
            except TypeError:  # the function raises its own
                given = {}
            try:
                for name, annotation in annotations.items():
                    if name in given:
                        check_number(f"{type(self).__name__}: {name}", annotation, given[name])
            except TypeError as error:
                raise TypeError(f"{error}{call_hint(self, str(error))}") from None
        return function(self, *args, **kwargs)

    return call


def _fits(annotation, value):
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is bool:
        return is_switch(value)
    if annotation in (int, float):
        return is_number(value)
    if not _words(annotation):
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(part, value) for part in parts)
    if annotation is types.NoneType:
        return value is None
    if isinstance(value, str) or not isinstance(value, Iterable):
        return False
    if iter(value) is value:
        return True  # an iterator, which may be read only once
    members = list(value)
    kinds = parts if origin is tuple and ... not in parts else parts[:1] * len(members)
    return len(kinds) == len(members) and all(map(_fits, kinds, members))


def _words(annotation):
    """Return what an annotation asks for, in words; nothing if it asks for something else than numbers."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is bool:
        return ["True or False"]
    if annotation in (int, float):
        return ["a number"]
    if annotation is types.NoneType:
        return ["None"]
    if origin in (typing.Union, types.UnionType):
        words = [_words(part) for part in parts]
        return [] if [] in words else list(dict.fromkeys(word for several in words for word in several))
    if origin in (tuple, list, Sequence, Iterable) and all(_words(part) for part in parts if part is not ...):
        return [f"{_COUNTS[len(parts)]} numbers" if origin is tuple and ... not in parts else "a list of numbers"]
    return []
