"""Files of tensors, and the classes that they may hold, under the names of torch.serialization."""

from typing import TypeAlias

from retrograd.interop.files import load, save
from retrograd.interop.pickled_objects import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

__all__ = [
    "MAP_LOCATION", "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save",
]  # fmt: skip

MAP_LOCATION: TypeAlias = str | dict[str, str] | None  # of `load`, for annotations
