"""The names of `torch.jit` without compilation: decorators return what they get, which runs as Python code.

Libraries for PyTorch decorate functions with `torch.jit.script`, and ask `torch.jit.is_scripting()`. TorchScript and
its files do not exist here; `rg.compile` compiles whole steps.
"""

import builtins
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, Union, get_args, get_origin
from typing import Final as Final

from retrograd.nn import Module

Dict, List, Optional, Tuple = (getattr(typing, name) for name in ("Dict", "List", "Optional", "Tuple"))


class ScriptModule(Module):
    """The base class of compiled modules: no module is compiled, so only a subclass has instances."""


class RecursiveScriptModule(ScriptModule):
    """A compiled module; none is."""


class ScriptFunction:
    """A compiled function; none is."""


class _BroadcastingList:
    """An annotation of an argument, of `torch.jit.annotations`: a list, or a number for all of its members."""

    def __getitem__(self, types: Any) -> Any:
        return Any


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()


class TracerWarning(Warning):
    """The category of warnings by `trace`, which gives none."""


class Error(RuntimeError):
    """The error of a compiled function; none is."""


class Attribute(NamedTuple):
    """A value and its type."""

    value: Any
    type: Any


def is_scripting() -> bool:
    """Whether code is being compiled: False."""
    return False


def is_tracing() -> bool:
    """Whether `trace` is recording: False, because it does not record."""
    return False


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value is of a type, or of one of several: members of containers are looked at too.

    >>> isinstance([1, 2], List[int]), isinstance({"a": 1.0}, Dict[str, int]), isinstance(None, Optional[int])
    (True, False, True)
    """
    origin, arguments = get_origin(target_type), get_args(target_type)
    if builtins.isinstance(target_type, tuple) or origin in (Union, types.UnionType):
        return any(isinstance(obj, one) for one in arguments or target_type)
    if target_type is Any or not builtins.isinstance(obj, origin or target_type):
        return target_type is Any
    if origin is tuple and arguments[1:] != (...,):
        return len(obj) == len(arguments) and all(map(isinstance, obj, arguments))
    if origin is dict:
        return all(isinstance(key, arguments[0]) and isinstance(obj[key], arguments[1]) for key in obj)
    return not arguments or all(isinstance(member, arguments[0]) for member in obj)


def script(obj: Any, *args: Any, **settings: Any) -> Any:
    """Return a function, class or module unchanged.

    >>> script(len)([1, 2])
    2
    """
    return obj


trace = trace_module = freeze = optimize_for_inference = script


def export(fn: Callable) -> Callable:
    """Return a function unchanged."""
    return fn


interface = script_if_tracing = _script_if_tracing = script_method = unused = _overload = _overload_method = export


def ignore(drop: Any = False, **settings: Any) -> Callable:
    """Return a function unchanged; with `drop=` or without arguments, return a decorator that does."""
    return drop if callable(drop) else export


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the value."""
    return the_value


def save(*args: Any, **settings: Any) -> NoReturn:
    """Raise RuntimeError: there are no files of TorchScript."""
    raise RuntimeError("torch.jit.save: retrograd writes no TorchScript; use rg.export.save, or save a state_dict()")


def load(*args: Any, **settings: Any) -> NoReturn:
    """Raise RuntimeError: there are no files of TorchScript."""
    raise RuntimeError("torch.jit.load: retrograd reads no TorchScript; use rg.export.load, or load a state dict")
