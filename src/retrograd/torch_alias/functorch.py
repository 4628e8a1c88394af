"""The names of `torch._C._functorch` by which libraries ask for levels of `vmap`."""

from retrograd.core import Tensor
from retrograd.levels.batch import VmapLevel


def is_batchedtensor(x: Tensor) -> bool:
    """Return whether `vmap` maps over a tensor."""
    return isinstance(x.level, VmapLevel)


is_legacy_batchedtensor = is_batchedtensor
