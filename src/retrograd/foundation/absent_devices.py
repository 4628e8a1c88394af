"""Devices that PyTorch has and this package does not: questions are answered as there, the rest is refused."""

from collections.abc import Callable
from typing import Any

# The functions of each such device; `refuse_device` adds those that raise.
__all__ = ["device_count", "is_available", "is_initialized", "manual_seed", "manual_seed_all"]

NEEDS_DEVICE = {
    "current_device", "current_stream", "empty_cache", "get_device_name", "get_device_properties", "mem_get_info",
    "memory_allocated", "set_device", "stream", "synchronize",
}  # fmt: skip


def is_available() -> bool:
    """Whether the device can be used: never."""
    return False


def is_initialized() -> bool:
    """Whether the device has been used: never."""
    return False


def device_count() -> int:
    """Return the number of devices, 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Do nothing: scripts seed all kinds of devices, and this one has no generator."""


def manual_seed_all(seed: int) -> None:
    """Do nothing, as `manual_seed`."""


def refuse_device(module: str) -> Callable[[str], Callable[..., Any]]:
    """Return a `__getattr__` for the module of a device that is not there: functions that raise RuntimeError."""

    def member(name: str) -> Callable[..., Any]:
        if name not in NEEDS_DEVICE:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")

        def refused(*args: Any, **kwargs: Any) -> Any:
            raise RuntimeError(f"{module}.{name}: there is no such device; ask {module}.is_available() first")

        return refused

    return member
