"""Calling conventions of traced code: ordinary arguments, or one value for each local name."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

# The kinds of parameters in the order of a function's local names, and their prefixes.
LOCAL_ORDER = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
)
STARS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class Callee:
    """A function that is traced, and its parameters in the order of its local names.

    A Python function gets one proxy for all of `*args` and one for `**kwargs`.  A wrapper has the signature of the
    wrapped function, and a partial a part of it, so these are called with ordinary arguments.

    >>> Callee(lambda x, *rest: (x, rest)).call([1, 2], {})
    (1, 2)
    """

    def __init__(self, function: Callable, signature: inspect.Signature | None = None) -> None:
        self.function = _python_method(function)
        code = getattr(inspect.unwrap(getattr(self.function, "__func__", function)), "__code__", None)
        if isinstance(self.function, MethodType) and code is not None and not code.co_argcount:
            raise RuntimeError("``self`` argument cannot be part of *args expansion! Name it as the first parameter")
        inspected = signature or inspect.signature(self.function)
        self.parameters = sorted(inspected.parameters.values(), key=lambda p: LOCAL_ORDER.index(p.kind))
        self.returns = annotation_or_none(inspected.return_annotation)

    def call(self, args: list, concrete: Mapping[str, Any]) -> Any:
        """Return the function's result for proxies and values in the order of `parameters`."""
        plain = None if _overrides_signature(self.function) else _with_positional_parameters(self.function)
        if plain is not None:
            return plain(*args)
        positional: list = []
        keywords: dict[str, Any] = {}
        for parameter, value in zip(self.parameters, args, strict=True):
            self._add_argument(parameter, value, positional, keywords, parameter.name in concrete)
        return self.function(*positional, **keywords)

    def _add_argument(
        self, parameter: inspect.Parameter, value: Any, positional: list, keywords: dict, concrete: bool
    ) -> None:
        """Add a value to the arguments, by position or by name."""
        if parameter.kind in STARS and not concrete:
            raise ValueError(
                f"symbolic_trace: {STARS[parameter.kind]}{parameter.name} reaches the code by way of a wrapper or "
                f"partial, so its members are not known; give it in concrete_args, or trace the wrapped function"
            )
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            positional.extend(value)
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            keywords.update(value)
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            keywords[parameter.name] = value
        else:
            positional.append(value)


def annotation_or_none(annotation: Any) -> Any:
    """Return an annotation; None if there is none, or it is Any."""
    return None if annotation in (inspect.Signature.empty, Any) else annotation


def _python_method(function: Callable) -> Callable:
    """Return the Python method of a callable object; return other callables unchanged."""
    own = inspect.getattr_static(type(function), "__call__", None)
    return MethodType(own, function) if isinstance(own, FunctionType) else function


def _overrides_signature(function: Callable) -> bool:
    """Return whether a function has an explicit signature, or wraps another function."""
    inner = function.__func__ if isinstance(function, MethodType) else function
    return hasattr(inner, "__wrapped__") or hasattr(inner, "__signature__")


def _with_positional_parameters(function: Callable) -> Callable | None:
    """Return the function with all parameters positional, so that *args and **kwargs get one proxy each.

    Return None for a function without Python code.
    """
    if isinstance(function, MethodType):
        inner = _with_positional_parameters(function.__func__)
        return None if inner is None else partial(inner, function.__self__)
    code: CodeType | None = getattr(function, "__code__", None)
    if code is None:
        return None
    starred = [flag for flag in (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS) if code.co_flags & flag]
    if not starred and not code.co_kwonlyargcount:
        return function
    plain = code.replace(
        co_argcount=code.co_argcount + code.co_kwonlyargcount + len(starred),
        co_kwonlyargcount=0,
        co_flags=code.co_flags - sum(starred),
    )
    closure = function.__closure__
    return FunctionType(plain, function.__globals__, function.__name__, None, closure)
