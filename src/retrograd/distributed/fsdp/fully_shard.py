"""`fully_shard`: divide the parameters of a model among the ranks, and gather those of a block while it runs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from retrograd.autograd import no_grad
from retrograd.autograd.graph import saved_tensors_hooks
from retrograd.core import Tensor
from retrograd.distributed.collectives import broadcast_all
from retrograd.distributed.device_mesh import DeviceMesh
from retrograd.distributed.fsdp.parameter_block import ParameterBlock, ShardedParameter
from retrograd.distributed.groups import initialized_group
from retrograd.distributed.local_slice import LocalSlice
from retrograd.nn.module import Module
from retrograd.nn.parameter import is_on_meta


def fully_shard(
    module: Module,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | None = None,
    ignored_params: Iterable[Tensor] = (),
) -> Module:
    """Return a module whose parameters are divided among the ranks along dimension 0, changed in place.

    Call it on blocks of a model, such as layers, then on the model, which takes the remaining parameters.  Before a
    block runs, its whole parameters are gathered; after it they are freed, and gathered again in the backward pass.
    Then gradients are averaged over the ranks, and each has those of its part.  Make the optimizer afterwards: it gets
    the parts, so its state is divided too.  The numbers are those of `DistributedDataParallel`, if the optimizer
    updates each element by itself.

    - mesh: a mesh of one dimension, by default all ranks.
    - reshard_after_forward: free the whole parameters after the forward pass; None: True.
    - ignored_params: parameters that stay whole on every rank; their gradients are not averaged.

    A model that is larger than a rank's memory is made on the device "meta". Either divide it there, then call
    `model.to_empty(device="cpu")` and load the values; or give each block values by `nn.utils.materialize` just before
    it is divided.

    All ranks begin with the parameters of rank 0, and must run the same blocks in the same order, also in the backward
    pass.  A parameter without a gradient in a pass counts as zero.

    Raises ValueError before `init_process_group`, and if there is nothing to divide.

    Source: S. Rajbhandari et al., ZeRO, SC 2020; Y. Zhao et al., PyTorch FSDP, VLDB 2023.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> from retrograd.distributed.fsdp import fully_shard
    >>> def script():
    ...     model = rg.nn.Sequential(rg.nn.Linear(4, 6), rg.nn.Linear(6, 2))
    ...     for layer in model:
    ...         fully_shard(layer)
    ...     model(rg.ones(3, 4)).sum().backward()
    ...     return [p.shape for p in model.parameters()], model[1].bias.grad
    >>> dist.run_threads(script, 2)[0]
    ([(3, 4), (3,), (1, 6), (1,)], tensor([3.]))
    """
    group = initialized_group(None) if mesh is None else mesh.get_group()
    ignored = {id(p) for p in ignored_params} | {id(p.shard) for block in _blocks(module) for p in block.parameters}
    homes: dict[int, list[tuple[Module, str]]] = {}
    whole: dict[int, Tensor] = {}
    for owner in module.modules():
        for name, p in owner._parameters.items():
            if p is not None and id(p) not in ignored:
                homes.setdefault(id(p), []).append((owner, name))
                whole[id(p)] = p
    if not whole:
        raise ValueError("fully_shard: the module has no parameters that are not divided already")
    broadcast_all([p for p in whole.values() if not is_on_meta(p)], group)
    with no_grad():
        parameters = [ShardedParameter(p, homes[key], group) for key, p in whole.items()]
    block = ParameterBlock(parameters, group, reshard_after_forward is False)
    module.__dict__["_sharded_block"] = block
    module.__dict__["forward"] = _with_whole_parameters(block, module.forward)
    return module


def full_state_dict(module: Module) -> dict[str, Tensor]:
    """Return the state dict of a module with whole parameters, on every rank; all ranks must call it.

    `full_state_dict(model)` has the names and shapes of the model before `fully_shard`.
    """
    found = {name: x.detach() for name, x in module.state_dict().items()}
    for names, p, block in _sharded_with_names(module):
        whole = block.gathered()[block.parameters.index(p)].clone()
        found.update(dict.fromkeys(names, whole))
    for block in _blocks(module):
        block.free()
    return found


def sharded_state_dict(module: Module) -> dict[str, Any]:
    """Return the state dict of a module, with a `LocalSlice` for each divided parameter.

    `retrograd.distributed.checkpoint` saves it, and loads into it.
    """
    found: dict[str, Any] = {name: x.detach() for name, x in module.state_dict().items()}
    for names, p, _ in _sharded_with_names(module):
        found.update(dict.fromkeys(names, LocalSlice(p.shard.detach(), p.shape, p.low)))
    return found


def load_full_state_dict(module: Module, state: Mapping[str, Tensor]) -> None:
    """Write this rank's part of whole parameters, and buffers, into a module.

    Raises KeyError for a name that the state lacks, ValueError for another shape.
    """
    with no_grad():
        for name, target in sharded_state_dict(module).items():
            value = state[name]
            shape = target.shape if isinstance(target, LocalSlice) else tuple(target.shape)
            if tuple(value.shape) != tuple(shape):
                raise ValueError(f"load_full_state_dict: {name} has shape {tuple(value.shape)}, expected {shape}")
            if isinstance(target, LocalSlice):
                target.tensor.copy_(value.reshape(-1)[target.low : target.high].reshape(target.tensor.shape))
            else:
                target.copy_(value)


def _with_whole_parameters(block: ParameterBlock, forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a forward method that runs with the whole parameters, and saves handles instead of them."""

    def run(*args: Any, **keywords: Any) -> Any:
        block.enter()
        try:
            with saved_tensors_hooks(block.pack, block.unpack):
                return forward(*args, **keywords)
        finally:
            block.leave()

    return run


def _blocks(module: Module) -> list[ParameterBlock]:
    return [owner.__dict__["_sharded_block"] for owner in module.modules() if "_sharded_block" in owner.__dict__]


def _sharded_with_names(module: Module) -> Iterator[tuple[list[str], ShardedParameter, ParameterBlock]]:
    """Yield each sharded parameter with its names in the state dict, and its block."""
    prefix = {id(owner): f"{name}." if name else "" for name, owner in module.named_modules()}
    for block in _blocks(module):
        for p in block.parameters:
            yield [prefix[id(owner)] + name for owner, name in p.homes if id(owner) in prefix], p, block
