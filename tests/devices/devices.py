"""The strict device as a device of the library, and moves of values to it."""

import importlib.util
from typing import Any

from tests.devices import strict
from tests.devices.laws import Move

from retrograd.backend.devices import register_device
from retrograd.backend.library_device import LibraryDevice
from retrograd.core import Tensor
from retrograd.core.tensor import unwrap_all


def load_again(name: str) -> Any:
    """Return the strict device's module, loaded a second time: with arrays of another type, and counts of its own."""
    spec = importlib.util.spec_from_file_location(f"tests.devices.{name}", strict.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


STRICT = register_device(LibraryDevice("strict", strict.library, special=strict.special))
to_strict = Move(STRICT)


def is_on_strict(tensor: Tensor) -> bool:
    """Return whether a tensor's array is one of the strict device."""
    return type(unwrap_all(tensor)) is strict.ndarray
