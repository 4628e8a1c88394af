"""Base of layers: arguments stored as attributes, and parameters with deferred initial values."""

from typing import Any

from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter
from retrograd.ops.create import empty
from retrograd.ops.layout import check_device


class Settings(Module):
    """A module that stores its arguments as attributes of the same names, and shows them in `repr`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._settings = tuple(settings)
        for name, value in settings.items():
            setattr(self, name, value)

    def extra_repr(self) -> str:
        """Return the settings, except those that are False or None."""
        values = {name: getattr(self, name) for name in self._settings}
        return ", ".join(f"{name}={v!r}" for name, v in values.items() if v is not None and v is not False)


def unfilled(wanted: bool, shape: tuple[int, ...], device: Any, dtype: Any) -> Any:
    """Return an uninitialized parameter of that shape, or None if not `wanted`; the device is the CPU or None."""
    check_device(device)
    return Parameter(empty(shape, dtype=dtype)) if wanted else None
