"""Devices: plain arrays of other libraries than NumPy, as CuPy's on a GPU."""

from threading import RLock
from typing import Any

import numpy as np

from retrograd.core import namespaces, registry
from retrograd.core.device import ArrayDevice, array_devices
from retrograd.foundation.lazy_imports import lazy_module

_making = RLock()


def cupy_device() -> Any:
    """Return the module of the device "cuda", imported on first use."""
    return lazy_module("retrograd.backend.cupy")


def meta_device() -> Any:
    """Return the module of the device "meta", imported on first use."""
    return lazy_module("retrograd.backend.meta")


def register_device(found: ArrayDevice) -> ArrayDevice:
    """Let tensors be on a device: from now on its arrays are tensors' arrays, and its name can be asked for.

    Returns the device.
    """
    namespaces[found.array_type] = found.namespace
    array_devices[found.array_type] = found
    return found


def device_named(name: str) -> ArrayDevice | None:
    """Return the device of a type, such as "cuda"; None if there is none.

    Those of CuPy and "meta" are made when they are asked for.
    """
    found = _registered(name)
    if found is None and name in ("cuda", "meta"):
        with _making:  # threads that ask at once get the same device
            found = _registered(name)
            if found is None:
                made = meta_device().MetaDevice() if name == "meta" else cupy_device().make_device()
                found = None if made is None else register_device(made)
    return found


def _registered(name: str) -> ArrayDevice | None:
    """Return the device of a type that is registered; None if there is none."""
    return next((found for found in list(array_devices.values()) if found.device.type == name), None)


def forget_device(found: ArrayDevice) -> None:
    """Undo `register_device`, and unbind the operators from the device's namespace."""
    del namespaces[found.array_type], array_devices[found.array_type]
    for op in registry.values():
        for kind in (found.array_type, (found.array_type, "widened")):
            op.kernels.pop(kind, None)


def move(array: Any, target: ArrayDevice | None) -> Any:
    """Return an array on another device, or in host memory for None; the array itself if it is there."""
    source = array_devices.get(type(array))
    if source is target:
        return array
    host = array if source is None else source.to_host(array)
    return host if target is None else target.from_host(np.ascontiguousarray(host).reshape(host.shape))
