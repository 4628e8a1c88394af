"""`fully_shard`: divide the parameters of a model among the ranks, and gather those of a block while it runs."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import optree

from retrograd.autograd import no_grad
from retrograd.autograd.graph import saved_tensors_hooks
from retrograd.core import Tensor
from retrograd.core.dtype import is_floating
from retrograd.distributed.device_mesh import DeviceMesh
from retrograd.distributed.exchange import agree_on_parameters
from retrograd.distributed.fsdp.fsdp_module import BLOCK, FSDPModule, blocks_of
from retrograd.distributed.fsdp.parameter_block import ParameterBlock, ShardedParameter
from retrograd.distributed.fsdp.policies import MixedPrecisionPolicy, OffloadPolicy
from retrograd.distributed.groups import initialized_group
from retrograd.distributed.tensor.dtensor import DTensor, broadcast_over, local_of
from retrograd.distributed.tensor.placements import Shard
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.levels.tangent_table import WeakIdDict
from retrograd.nn.module import Module
from retrograd.nn.parameter import is_on_meta
from retrograd.nn.tensor_part import local_tensor

PRECISION_OF_PARAMETERS = MixedPrecisionPolicy()
_divided = WeakIdDict()  # "whole" for parameters of which a module has a part, and "part" for these parts


def fully_shard(
    module: Module | list[Module] | tuple[Module, ...],
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Any], Any] | None = None,
    mp_policy: MixedPrecisionPolicy = PRECISION_OF_PARAMETERS,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: Iterable[Tensor] | None = None,
    dp_mesh_dims: Any = None,
) -> Any:
    """Return a module whose parameters are divided among the ranks, changed in place.

    Call it on blocks of a model, such as layers, then on the model, which takes the remaining parameters.  Before a
    block runs, its whole parameters are gathered; after it they are freed, and gathered again in the backward pass.
    Then gradients are averaged over the ranks, and each has those of its part.  Make the optimizer afterwards: it gets
    the parts, so its state is divided too.  The numbers are those of `DistributedDataParallel`, if the optimizer
    updates each element by itself.  Parameters are `DTensor`s; the module gets the methods of `FSDPModule`.

    - module: a module, or a list of modules, each of which becomes a block.
    - mesh: a mesh of one dimension, by default all ranks.  If it has two, parameters are divided along the
      second, and ranks along the first have copies of the parts, whose gradients are averaged too.  If parameters
      are `DTensor`s, as after `parallelize_module` on `mesh["tp"]`, pass other dimensions of the same mesh, such as
      `mesh["dp"]`: each rank has a part of its part, and the parameters are `DTensor`s over both.
    - reshard_after_forward: free the whole parameters after the forward pass; None or a number: True.
    - shard_placement_fn: returns for a parameter `Shard(dim)`, the dimension along which it is divided, or None for
      dimension 0.  Sizes need not be multiples of the number of ranks.
    - mp_policy: in which dtypes the block computes and sums gradients.
    - offload_policy: without effect, since parameters are in host memory.
    - ignored_params: parameters that stay whole on every rank; their gradients are not averaged.

    A model that is larger than a rank's memory is made on the device "meta". Either divide it there, then call
    `model.to_empty(device="cpu")` and load or initialize the values; or give each block values by
    `nn.utils.materialize` just before it is divided.

    All ranks begin with the parameters of rank 0, and must run the same blocks in the same order, also in the backward
    pass.  A parameter without a gradient in a pass counts as zero.

    Raises ValueError before `init_process_group`, for a module without parameters, for one that shares a parameter with
    a module divided before, for a mesh of more dimensions, for one that is no part of the mesh of which parameters have
    other dimensions, and for another result of shard_placement_fn; RankMismatchError, on every rank, if the ranks'
    parameters or options differ; NotImplementedError for dp_mesh_dims.

    Source: S. Rajbhandari et al., ZeRO, SC 2020; Y. Zhao et al., PyTorch FSDP, VLDB 2023.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> from retrograd.distributed.fsdp import fully_shard
    >>> def script():
    ...     model = rg.nn.Sequential(rg.nn.Linear(4, 6), rg.nn.Linear(6, 2))
    ...     for layer in model:
    ...         fully_shard(layer)
    ...     model(rg.ones(3, 4)).sum().backward()
    ...     return [p.to_local().shape for p in model.parameters()], model[1].bias.grad.to_local()
    >>> dist.run_threads(script, 2)[0]
    ([(3, 4), (3,), (1, 6), (1,)], tensor([3.]))
    """
    if dp_mesh_dims is not None:
        raise NotImplementedError("fully_shard: dp_mesh_dims is not supported; pass a mesh with these dimensions only")
    over = DeviceMesh.from_group(initialized_group(None), "cpu") if mesh is None else mesh
    if over.ndim > 2:
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {over}")
    ignored = {id(p) for p in ignored_params or ()}
    for each in module if isinstance(module, list | tuple) else [module]:
        _divide(each, over, reshard_after_forward is False, mp_policy, ignored, shard_placement_fn)
    return module


def _divide(
    module: Module,
    mesh: DeviceMesh,
    keeps: bool,
    policy: MixedPrecisionPolicy,
    ignored: set[int],
    placement_of: Callable[[Any], Any] | None,
) -> None:
    """Make a module a block."""
    homes: dict[int, list[tuple[Module, str]]] = {}
    whole: dict[int, Tensor] = {}
    of_blocks = {(id(owner), name) for block in blocks_of(module) for p in block.parameters for owner, name in p.homes}
    names: dict[int, str] = {}
    for prefix, owner in module.named_modules():
        for name, p in owner._parameters.items():
            is_part = (id(owner), name) in of_blocks or _divided.get(p) == "part"
            if p is not None and id(p) not in ignored and not is_part:
                homes.setdefault(id(p), []).append((owner, name))
                whole[id(p)] = p
                names.setdefault(id(p), f"{prefix}.{name}" if prefix else name)
    if not whole and not any(blocks_of(module)):
        raise ValueError("fully_shard: the module has no parameters")
    _check_not_divided(homes, whole)
    placements = {key: _placement(p, placement_of) for key, p in whole.items()}
    options = {
        "shard_placement_fn": list(placements.values()),
        "placements": [p.placements if isinstance(p, DTensor) else None for p in whole.values()],
        "reshard_after_forward": not keeps,
        "mp_policy": policy,
    }
    for dim in range(mesh.ndim):
        named = [(names[key], p) for key, p in whole.items()]
        agree_on_parameters(mesh.get_group(dim), "fully_shard", named, options)
    # The operations of a group are numbered alike on all its ranks, so this tells blocks of one shape apart.
    number = mesh.get_group(mesh.ndim - 1).calls
    label = f"{type(module).__name__}({', '.join(names.values())}) of call {number}"
    broadcast_over(mesh, [local_of(p).detach() for p in whole.values() if not is_on_meta(p)])
    with no_grad():
        parameters = [ShardedParameter(p, homes[key], mesh, placements[key]) for key, p in whole.items()]
    for p in whole.values():
        _divided.set(p, "whole")
    for each in parameters:
        each.show(each.shard)
        _divided.set(each.shard, "part")
    block = ParameterBlock(parameters, mesh, keeps, policy, label)
    module.__dict__[BLOCK] = block
    module.__dict__["forward"] = _with_whole_parameters(block, module.forward)
    if not isinstance(module, FSDPModule):
        kind: Any = type(module)
        module.__class__ = _class_of_blocks(kind)


def _check_not_divided(homes: Mapping[int, list[tuple[Module, str]]], whole: Mapping[int, Tensor]) -> None:
    """Raise ValueError if a module outside has a part of a parameter already: it would be another parameter then."""
    for key, p in whole.items():
        if _divided.get(p):
            owner, name = homes[key][0]
            raise ValueError(
                f"fully_shard: {name} of {type(owner).__name__} is shared with a module that was divided before; "
                f"divide modules that share a parameter in one call, for a module that contains them"
            )


def _placement(p: Tensor, placement_of: Callable[[Any], Any] | None) -> Shard:
    """Return how a parameter is divided."""
    found = Shard(0) if placement_of is None else placement_of(p) or Shard(0)
    if not isinstance(found, Shard) or not -max(p.ndim, 1) <= found.dim < max(p.ndim, 1):
        raise ValueError(
            f"fully_shard: shard_placement_fn returned {found!r} for a parameter of shape {tuple(p.shape)}; expected "
            f"None or Shard(dim) with one of its dimensions"
        )
    return found


@functools.cache
def _class_of_blocks(kind: Any) -> Any:
    """Return the class of modules of a class that are blocks."""
    return type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__module__": kind.__module__})


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Let another method of a block, such as `generate`, run with the whole parameters, as `forward` does.

    It has no effect on other modules.
    """
    if isinstance(module, FSDPModule):
        method = getattr(module, method_name)
        module.__dict__[method_name] = _with_whole_parameters(module.__dict__[BLOCK], method)


def full_state_dict(module: Module) -> dict[str, Tensor]:
    """Return the state dict of a module with whole parameters, on every rank; all ranks must call it.

    `full_state_dict(model)` has the names and shapes of the model before `fully_shard`.
    """
    found, whole = {}, dict[int, Tensor]()
    for name, x in module.state_dict(keep_vars=True).items():
        if isinstance(x, DTensor) and id(x) not in whole:
            whole[id(x)] = x.full_tensor().detach()
        found[name] = whole[id(x)] if isinstance(x, DTensor) else x.detach() if isinstance(x, Tensor) else x
    return found


def load_full_state_dict(module: Module, state: Mapping[str, Tensor]) -> None:
    """Write this rank's part of whole parameters, and buffers, into a module.

    Raises KeyError for a name that the state lacks, ValueError for another shape.
    """
    with no_grad():
        for name, target in module.state_dict().items():
            value = state[name]
            shape = target.division.shape if isinstance(target, DTensor) else tuple(target.shape)
            if tuple(value.shape) != shape:
                raise ValueError(f"load_full_state_dict: {name} has shape {tuple(value.shape)}, expected {shape}")
            local_tensor(target).copy_(target.part_of(value) if isinstance(target, DTensor) else value)


def _with_whole_parameters(block: ParameterBlock, forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that runs with the whole parameters, and saves handles instead of them."""
    policy = block.policy

    def run(*args: Any, **keywords: Any) -> Any:
        if policy.cast_forward_inputs:
            args, keywords = _converted((args, keywords), policy.param_dtype)
        block.enter()
        try:
            with saved_tensors_hooks(block.pack, block.unpack):
                return _converted(forward(*args, **keywords), policy.output_dtype)
        finally:
            block.leave()

    return run


def _converted(values: Any, dtype: Any) -> Any:
    """Return nested values with floating tensors converted to a dtype; None: as they are."""
    if dtype is None:
        return values
    return optree.tree_map(
        lambda x: x.to(dtype) if isinstance(x, Tensor) and is_floating(x.dtype) else x, values, none_is_leaf=True
    )


suggest_in_module(globals())
