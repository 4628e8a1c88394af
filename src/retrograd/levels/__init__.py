"""The levels of the function transforms: each processes operators on its tensors without knowing them by name."""

from retrograd.levels.batch import VmapLevel
from retrograd.levels.dual import DualLevel
from retrograd.levels.grad import GradLevel
from retrograd.levels.unwrap import outputs, value_at

__all__ = ["DualLevel", "GradLevel", "VmapLevel", "outputs", "value_at"]
