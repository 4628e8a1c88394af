"""The one device, under the names of torch.cpu: the CPU, whose work is done when a call returns."""

from typing import Any


def is_available() -> bool:
    """Return True: there is a CPU."""
    return True


def is_initialized() -> bool:
    """Return True: the CPU needs no start."""
    return True


def device_count() -> int:
    """Return the number of CPU devices, 1."""
    return 1


def current_device() -> str:
    """Return the name of the device, "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Accept a choice of the device, of which there is one."""


def synchronize(device: Any = None) -> None:
    """Do nothing: the work of a call is done when it returns."""
