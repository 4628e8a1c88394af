"""Files of tensors, and the classes that they may hold, under the names of torch.serialization."""

from typing import TypeAlias

from retrograd.interop.files import load as load
from retrograd.interop.files import save as save
from retrograd.interop.pickled_objects import add_safe_globals as add_safe_globals
from retrograd.interop.pickled_objects import clear_safe_globals as clear_safe_globals
from retrograd.interop.pickled_objects import get_safe_globals as get_safe_globals
from retrograd.interop.pickled_objects import safe_globals as safe_globals

MAP_LOCATION: TypeAlias = str | dict[str, str] | None  # of `load`, for annotations
