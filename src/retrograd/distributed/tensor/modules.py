"""`distribute_module`: a module whose parameters are divided among ranks."""

from collections.abc import Callable
from typing import Any

from retrograd.distributed.device_mesh import DeviceMesh
from retrograd.distributed.tensor.dtensor import DTensor, distribute_tensor, mesh_or_all_ranks
from retrograd.distributed.tensor.placements import Placement, Replicate
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None,
) -> Module:
    """Return a module, changed in place, whose parameters and buffers are `DTensor`s.

    - device_mesh: by default all ranks, along one dimension.
    - partition_fn: called with the name of each module in it, it and the mesh; it divides parameters.  The ranks
      have copies of those that it leaves.
    - input_fn, output_fn: called with the module, its arguments or its result, and the mesh; what they return takes the
      place of these.

    >>> import retrograd as rg
    >>> from retrograd.distributed import run_threads
    >>> def script():
    ...     model = distribute_module(rg.nn.Linear(2, 3))
    ...     return model.weight.placements
    >>> run_threads(script, 2)[0]
    (Replicate(),)
    """
    mesh = mesh_or_all_ranks(device_mesh)
    for name, owner in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, owner, mesh)
        _copy_others(owner, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda module, args: input_fn(module, args, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda module, args, output: output_fn(module, output, mesh))
    return module


def distribute_parameter(
    module: Module, name: str, mesh: DeviceMesh, placement: Placement, src_data_rank: int | None = 0
) -> None:
    """Divide a parameter of a module, if it has one of this name that is not divided yet."""
    p = module._parameters.get(name)
    if p is not None and not isinstance(p, DTensor):
        placements = [placement] * mesh.ndim
        part = distribute_tensor(p, mesh, placements, src_data_rank=src_data_rank)
        module.register_parameter(name, Parameter(part, p.requires_grad))


def _copy_others(module: Module, mesh: DeviceMesh) -> None:
    """Let the ranks have copies of the parameters and buffers of a module that are not divided."""
    for name in list(module._parameters):
        distribute_parameter(module, name, mesh, Replicate())
    for name, value in module._buffers.items():
        if value is not None and not isinstance(value, DTensor):
            module._buffers[name] = distribute_tensor(value, mesh, [Replicate()] * mesh.ndim)


suggest_in_module(globals())
