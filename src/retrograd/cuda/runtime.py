"""CuPy's module, if there is a device, and the indices of devices."""

from typing import Any

from retrograd.backend.devices import cupy_device
from retrograd.core.device import device as Device


def find_library() -> Any:
    """Return CuPy's module; None if it is not installed or there is no device."""
    return cupy_device().find_cupy()


def imported_library() -> Any:
    """Return CuPy's module if a program has asked for a device and there is one; None otherwise."""
    return cupy_device().imported_cupy()


def require_library(name: str) -> Any:
    """Return CuPy's module; raise a RuntimeError for the function `name` if there is no device."""
    found = find_library()
    if found is None:
        raise RuntimeError(
            f"cuda.{name}: there is no CUDA device, tensors are NumPy arrays on the CPU; ask cuda.is_available() first"
        )
    return found


def device_index(device: Any) -> int | None:
    """Return the index of a device, given as that, by its name or as a `device`; None for none.

    Raises ValueError for a device of another type.
    """
    if device is None or isinstance(device, int):
        return device
    found = device if isinstance(device, Device) else Device(device)
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {found}")
    return found.index


def check_index(library: Any, index: int | None) -> None:
    """Raise a RuntimeError for an index that no device has."""
    count = library.cuda.runtime.getDeviceCount()
    if index is not None and not 0 <= index < count:
        raise RuntimeError(f"CUDA error: invalid device ordinal; there are {count} devices, got {index}")
