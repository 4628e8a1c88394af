"""Tensors of which each rank has a part, as in `torch.distributed.tensor`."""

from retrograd.distributed.device_mesh import DeviceMesh, init_device_mesh
from retrograd.distributed.tensor.creation import empty, full, ones, rand, randn, zeros
from retrograd.distributed.tensor.dispatch import run as _run  # noqa: F401  # which gives DTensor its operators
from retrograd.distributed.tensor.dtensor import DTensor, distribute_tensor
from retrograd.distributed.tensor.modules import distribute_module
from retrograd.distributed.tensor.placements import Partial, Placement, Replicate, Shard
from retrograd.foundation.lazy_imports import lazy_names

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor",
    "empty", "full", "init_device_mesh", "ones", "rand", "randn", "zeros",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "experimental": "retrograd.distributed.tensor.experimental",
        "parallel": "retrograd.distributed.tensor.parallel",
    },
)
