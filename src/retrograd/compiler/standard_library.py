"""Functions of Python's standard library without effects, of which a program knows all that they read.

The watch enters most functions of the standard library as it does the user's, so that all that they name is guarded.
That is not possible for functions of C, nor for those that read caches, or half of Python: here is what these read.
"""

import inspect
import logging
import re
import types
import warnings
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from retrograd.compiler.arguments import is_python_class
from retrograd.compiler.surroundings import Surroundings

_BUILTIN_FUNCTIONS = {
    "abs", "all", "any", "ascii", "bin", "callable", "chr", "delattr", "divmod", "format", "getattr", "hasattr", "hex",
    "isinstance", "issubclass", "iter", "len", "max", "min", "next", "oct", "ord", "pow", "repr", "round", "setattr",
    "sorted", "sum", "vars",
}  # fmt: skip
_PURE_MODULES = ("math", "cmath", "_operator", "operator", "_functools", "itertools", "_bisect", "_heapq", "_json",
                 "_statistics", "_string", "_sre", "_collections", "binascii", "_stat", "unicodedata")  # fmt: skip
_OF_MODULES = {"sys": ("intern",), "_abc": ("_abc_instancecheck", "_abc_subclasscheck")}
_IN_STANDARD_LIBRARY = {"sys": ("getrecursionlimit",)}  # what it does with the results changes none of its own
_BUILTIN_TYPES: tuple[type, ...] = (
    list, dict, tuple, set, frozenset, str, bytes, int, float, complex, range, deque, types.GeneratorType, slice,
    types.MappingProxyType, type({}.keys()), type({}.values()), type({}.items()), re.Pattern, re.Match,
)  # fmt: skip
_OF_ANY_OBJECT = {name: getattr(object, name) for name in ("__reduce_ex__", "__reduce__", "__getstate__", "__format__")
                  if hasattr(object, name)}  # fmt: skip
WARNINGS = (warnings.warn, warnings.warn_explicit)
SHOWN_WARNING = warnings._showwarnmsg.__code__  # type: ignore[attr-defined]


def is_pure_builtin(function: Any, is_for_platform: bool) -> bool:
    """Return whether a function of C only computes its result, or changes containers that guards compare.

    `is_for_platform`: code of the standard library calls it.
    """
    owner = getattr(function, "__self__", None)
    if isinstance(owner, types.ModuleType):
        home, name = owner.__name__, function.__name__
        if home == "builtins":
            return name in _BUILTIN_FUNCTIONS
        if name in _OF_MODULES.get(home, ()) or (is_for_platform and name in _IN_STANDARD_LIBRARY.get(home, ())):
            return True
        return home.startswith("retrograd") or home in _PURE_MODULES
    if isinstance(owner, ContextVar):
        return bool(function.__name__ == "get")
    if function.__name__ in _OF_ANY_OBJECT and _is_of_object(owner, function.__name__):
        return True
    if isinstance(owner, type):
        return owner in _BUILTIN_TYPES or (owner is object and function.__name__ == "__new__")
    return isinstance(owner, _BUILTIN_TYPES) or type(owner).__module__.startswith("retrograd") or owner is None


def _is_of_object(owner: Any, name: str) -> bool:
    """Return whether an object has a method of `object`, which reads its attributes."""
    return is_python_class(type(owner)) and getattr(type(owner), name, None) is _OF_ANY_OBJECT[name]


def _note_signature(surroundings: Surroundings, variables: dict[str, Any]) -> str:
    return surroundings.note_signature(variables["obj" if "obj" in variables else "func"])


def _note_level(surroundings: Surroundings, variables: dict[str, Any]) -> str:
    logger, level = variables["self"], variables.get("level")
    if type(level) is int:
        surroundings.note_answer(logger.isEnabledFor, level, f"whether {logger.name} logs at level {level}")
        return ""
    return "asks for a level of logging that is no integer"


def _note_nothing(surroundings: Surroundings, variables: dict[str, Any]) -> str:
    return ""


# By the code of a function: what notes in the surroundings what it reads, and returns why that is not possible, or "".
SUMMARIES: dict[types.CodeType, Callable[[Surroundings, dict[str, Any]], str]] = {
    inspect.signature.__code__: _note_signature,
    inspect.unwrap.__code__: _note_signature,
    inspect.getfullargspec.__code__: _note_signature,
    logging.Logger.isEnabledFor.__code__: _note_level,
    re._compile.__code__: _note_nothing,  # type: ignore[attr-defined]
}
