"""Mirror NumPy's modules: functions with a counterpart on tensors dispatch to it."""

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np

from retrograd.core import current
from retrograd.foundation.lazy_imports import lazy_names
from retrograd.interop.numpy_protocol import functions
from retrograd.interop.numpy_protocol.table import O, dotted_name, holds_tensor, tensor, values

_MODULES = ("fft", "linalg", "random")
_module, _ = lazy_names(
    "retrograd.numpy",
    {"fft": "retrograd.numpy.fft", "linalg": "retrograd.numpy.linalg", "random": "retrograd.numpy.random"},
)
# Functions without a protocol in NumPy, or whose result is written to.
_WRITTEN_TO = ("zeros", "ones", "empty", "full")


def names(module: ModuleType) -> list[str]:
    """Return the public names of a NumPy module."""
    return list(module.__all__)


def mirror(module: ModuleType, namespace: dict) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a module with that namespace, which mirrors a NumPy module."""

    def member(name: str) -> Any:
        namespace[name] = found = mirror_member(module, name)  # looked up once
        return found

    def names() -> list[str]:
        return sorted({*namespace, *dir(module)})

    return member, names


def mirror_member(module: ModuleType, name: str) -> Any:
    """Return a member of a NumPy module, which accepts tensors if there is a counterpart."""
    if module is np and name in _MODULES:
        return _module(name)
    if module is np and name in _OF_HIPS:
        return _OF_HIPS[name]
    member = getattr(module, name)
    if not callable(member) or isinstance(member, (type, np.ufunc)):
        return member  # ufuncs dispatch on their operands themselves
    on_tensors = functions().get(dotted_name(member))
    if on_tensors is None:
        return member
    return (_for_writable_tensors if name in _WRITTEN_TO else _for_tensors)(member, on_tensors)


def _for_tensors(member: Callable, on_tensors: Callable) -> Callable:
    """Return a function that calls NumPy's, or ours if an argument is or contains a tensor."""

    @wraps(member)
    def function(*args: Any, **kwargs: Any) -> Any:
        if holds_tensor(args) or (kwargs and holds_tensor(tuple(kwargs.values()))):
            return on_tensors(*args, **kwargs)
        return member(*args, **kwargs)

    return function


def _for_writable_tensors(member: Callable, on_tensors: Callable) -> Callable:
    """Do the same, but inside a transform always call ours, so that the program may write tensors into the result."""

    @wraps(member)
    def function(*args: Any, **kwargs: Any) -> Any:
        if current().level is not None or holds_tensor((*args, *kwargs.values())):
            return on_tensors(*args, **kwargs)
        return member(*args, **kwargs)

    return function


class _Concatenator:
    """`r_[...]` and `c_[...]`: NumPy's, or `concatenate` for numbers, vectors and matrices that include tensors."""

    def __init__(self, concatenator: Any, join: Callable) -> None:
        self._concatenator = concatenator
        self._join = join

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not holds_tensor(parts):
            return self._concatenator[key]
        return self._join([self._concatenator[part] if isinstance(part, slice) else part for part in parts])


def _join_row(parts: list) -> Any:
    known = functions()
    return known["concatenate"](known["atleast_1d"](*parts) if len(parts) > 1 else parts)


def _join_columns(parts: list) -> Any:
    return functions()["column_stack"](parts)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Return `numpy.where`; its arguments may also be given by name."""
    chosen = () if x is None and y is None else (x, y)
    return (functions()["where"] if holds_tensor((condition, x, y)) else np.where)(condition, *chosen)


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return matrices with the elements along the last axis of D on a diagonal, and zeros elsewhere.

    The matrices are in `axis1` and `axis2` of the result, as `numpy.diagonal` reads them.

    >>> make_diagonal(np.array([1.0, 2.0]), offset=1)
    array([[0., 1., 0.],
           [0., 0., 2.],
           [0., 0., 0.]])
    """
    made = O.diag_embed(tensor(D), offset, axis1, axis2)
    return made if holds_tensor(D) else made.numpy()


class _IntegerMeta(type):
    """The class of NumPy's integers that take tensors: their instances are NumPy's own."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__bases__)


def _integer_type(member: type) -> type:
    """Return a dtype's class that converts tensors to integers, without derivative."""

    def new(cls: type, x: Any = 0, *args: Any) -> Any:
        return member(values(x), *args)

    return _IntegerMeta(member.__name__, (member,), {"__new__": new, "__module__": "retrograd.numpy"})


# Names of HIPS autograd's NumPy that are missing from NumPy or differ.
_OF_HIPS = {
    "r_": _Concatenator(np.r_, _join_row),
    "c_": _Concatenator(np.c_, _join_columns),
    "make_diagonal": make_diagonal,
    "where": where,
    **{name: _integer_type(getattr(np, name)) for name in ("int8", "int16", "int32", "int64")},
}
