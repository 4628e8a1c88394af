"""Devices whose arrays are those of a library with CuPy's functions."""

from typing import Any

from retrograd.backend.array_library import load_namespace
from retrograd.core.device import ArrayDevice, add_device_type, device


class LibraryDevice(ArrayDevice):
    """A device whose arrays are those of a library with CuPy's functions.

    name: the type of the device, as "cuda".
    library: the module with the functions; it has at least CuPy's `ndarray`, `asarray` and `asnumpy`.
    modules: what the library has in other modules, by the names of `LibraryNames`, as `special` for scipy.special.

    Its namespace is that of NumPy's arrays, with the functions of the library in place of NumPy's. C++ kernels are
    replaced by their references.
    """

    def __init__(self, name: str, library: Any, **modules: Any) -> None:
        add_device_type(name)
        self.device = device(name)
        self.array_type = library.ndarray
        self._library = library
        self.namespace, self.kernels = load_namespace(library, modules)

    def from_host(self, array: Any) -> Any:
        """Return a copy of a NumPy array on the device; a single number is an argument of a kernel, without a copy."""
        if array.ndim == 0:
            return self._library.full((), array.item(), array.dtype)
        return self._library.asarray(array)

    def to_host(self, array: Any) -> Any:
        """Return a copy of an array of the device as a NumPy array."""
        return self._library.asnumpy(array)

    def share_memory(self, a: Any, b: Any) -> bool:
        """Return whether two arrays of the device are in one allocation."""
        return a.data.mem is b.data.mem
