"""The names of `torch._C._functorch`: the levels of transforms, and tensors at them."""

from retrograd.core import Tensor
from retrograd.core.tensor import unwrap_all
from retrograd.levels.batch import VmapLevel
from retrograd.torch_alias.functorch_vmap import _add_batch_dim as _add_batch_dim
from retrograd.torch_alias.functorch_vmap import _remove_batch_dim as _remove_batch_dim


def is_batchedtensor(x: Tensor) -> bool:
    """Return whether `vmap` maps over a tensor."""
    return isinstance(x.level, VmapLevel)


is_legacy_batchedtensor = is_batchedtensor


def get_unwrapped(x: Tensor) -> Tensor:
    """Return the value of a tensor below all transforms."""
    return unwrap_all(x)
