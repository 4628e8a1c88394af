"""The levels of the function transforms: each processes operators on its tensors without knowing them by name."""

from typing import TYPE_CHECKING

from retrograd.foundation.lazy_imports import lazy_names
from retrograd.levels.unwrap import outputs, value_at

if TYPE_CHECKING:  # imported on first use: a backward pass needs none of them
    from retrograd.levels.batch import VmapLevel
    from retrograd.levels.dual import DualLevel
    from retrograd.levels.grad import GradLevel

__all__ = ["DualLevel", "GradLevel", "VmapLevel", "outputs", "value_at"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "DualLevel": "retrograd.levels.dual",
        "GradLevel": "retrograd.levels.grad",
        "VmapLevel": "retrograd.levels.batch",
    },
)
