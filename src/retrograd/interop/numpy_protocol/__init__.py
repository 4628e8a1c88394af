"""NumPy's functions, and Python's operators between arrays and tensors: `np.sin(t)`, `np.stack([t, a])`, `a * t`.

Importing this package installs NumPy's two protocols on tensors. The functions are in the other modules of this
package, which are imported on first use.
"""

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from numpy import ndarray

from retrograd.core import Tensor
from retrograd.foundation.lazy_imports import lazy_module
from retrograd.interop.numpy_protocol import array_methods as array_methods


@cache
def _load_tables() -> ModuleType:
    """Return the module with the tables of functions and ufuncs, filled."""
    return lazy_module("retrograd.interop.numpy_protocol.all_functions")


def functions() -> dict[str, Callable]:
    """Return the implementations of NumPy's functions on tensors, by dotted name."""
    return _load_tables().functions


ufunc_cache: dict[Callable, Callable] = {}  # ufuncs by NumPy's object, for fast look-up


def _array_ufunc(x: Tensor, ufunc: Callable, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Run `ufunc(...)`, or its method of that name, if an operand is a tensor."""
    function = ufunc_cache.get(ufunc)
    if function is None or kwargs or method != "__call__":
        return _load_tables().apply(ufunc, method, inputs, kwargs)
    return function(*inputs)


def _array_function(x: Tensor, function: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
    """Run a NumPy function, if an argument is a tensor or a list of tensors."""
    if not all(issubclass(t, (Tensor, ndarray)) for t in types):
        return NotImplemented  # another library's class may implement it
    table = _load_tables()
    name = table.dotted_name(function)
    if name not in table.functions:
        raise TypeError(f"np.{name} has no counterpart for tensors; x.detach().numpy() leaves the graph for it")
    return table.functions[name](*args, **kwargs)


_PROTOCOLS = {"__array_ufunc__": _array_ufunc, "__array_function__": _array_function}

for _name, _function in _PROTOCOLS.items():
    setattr(Tensor, _name, _function)
