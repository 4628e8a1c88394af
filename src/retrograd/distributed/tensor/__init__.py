"""Tensors of which each rank has a part, as in `torch.distributed.tensor`."""

from retrograd.distributed.device_mesh import DeviceMesh, init_device_mesh
from retrograd.distributed.tensor.dtensor import DTensor, Replicate, Shard, distribute_tensor

__all__ = ["DTensor", "DeviceMesh", "Replicate", "Shard", "distribute_tensor", "init_device_mesh"]
