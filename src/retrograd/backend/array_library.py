"""The backend's functions over another library than NumPy: its modules are loaded again, with that library as `np`.

A function of the backend is written once, in NumPy's names. It runs on the arrays of any library that has these names.
Loading its module again binds `np` to that library, so the functions on NumPy's arrays are what they were, at no cost.
"""

import builtins
import importlib.util
import types
from typing import Any

from retrograd.backend.library_names import LibraryNames
from retrograd.foundation.lazy_imports import lazy_module

# Modules that are not loaded again: they know host memory, threads, or stand-ins for NumPy's arrays only.
SHARED = {
    "retrograd.backend",
    "retrograd.backend.resample_tables",
    "retrograd.backend.traced_array",
    "retrograd.backend.array_library",
    "retrograd.backend.library_names",
    "retrograd.kernels.allocator",
    "retrograd.kernels.processors",
}
REPLACED = ("retrograd.backend.", "retrograd.kernels.")
KERNELS = "retrograd.kernels"  # C++ kernels are replaced by their references, which are written in NumPy's names
REFERENCE = "retrograd.kernels.reference"
LAZY = "retrograd.foundation.lazy_imports"
PACKAGES = ("retrograd", "retrograd.backend", KERNELS)


def load_namespace(library: Any, modules: dict[str, Any]) -> tuple[types.ModuleType, types.ModuleType]:
    """Return the namespace of a library's arrays, `backend/numpy.py` and all that it imports, and that of its kernels.

    modules: what the library has in other modules, by the names of `LibraryNames`, as `special` for scipy.special, and
    `kernels`: functions by names of reference functions, each from the reference to what replaces it; `functions`:
    the same by names of the library's own functions.
    """
    loader = Loader(LibraryNames(library, modules))
    return loader.module("retrograd.backend.numpy"), loader.module(KERNELS)


class Loader:
    """The modules of the backend over one library."""

    def __init__(self, names: LibraryNames) -> None:
        self._names = names
        self._modules: dict[str, types.ModuleType] = {}

    def module(self, name: str) -> types.ModuleType:
        """Return a module of the backend over the library, loaded at the first call."""
        if name == KERNELS:
            return self.module(REFERENCE)
        if name not in self._modules:
            spec = importlib.util.find_spec(name)
            assert spec is not None
            assert spec.loader is not None
            made = types.ModuleType(f"{name} over {self._names.library_name}")
            vars(made)["__builtins__"] = {**vars(builtins), "__import__": self._import}
            self._modules[name] = made
            if name == REFERENCE:
                made.reference = made  # type: ignore[attr-defined]  # as `kernels.reference` is written
            exec(spec.loader.get_code(name), vars(made))  # type: ignore[attr-defined]
            self._names.adapt(name, vars(made))
        return self._modules[name]

    def _import(self, name: str, scope: Any = None, local: Any = None, members: Any = (), level: int = 0) -> Any:
        """Import for a module that is loaded again: the library for NumPy, and other such modules for the backend's."""
        if name == "numpy":
            return self._names
        if name == LAZY:
            return types.SimpleNamespace(lazy_module=self._lazy_module)
        if name in PACKAGES and members:
            return types.SimpleNamespace(**{member: self._member(name, member) for member in members})
        if self._is_replaced(name) and members:
            return self.module(name)
        return importlib.__import__(name, scope, local, members or (), level)

    def _lazy_module(self, name: str) -> Any:
        return self.module(name) if self._is_replaced(name) else lazy_module(name)

    def _member(self, package: str, member: str) -> Any:
        full = f"{package}.{member}"
        if self._is_replaced(full) and importlib.util.find_spec(full) is not None:
            return self.module(full)
        return getattr(self.module(KERNELS) if package == KERNELS else importlib.import_module(package), member)

    def _is_replaced(self, name: str) -> bool:
        return (name == KERNELS or name.startswith(REPLACED)) and name not in SHARED
