"""States of models and optimizers by parameter name, for any division of the work, as in PyTorch's module."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.distributed.checkpoint import layout
from retrograd.distributed.checkpoint.named_states import module_of, names_of, parts_of, settings_of, states_by_name
from retrograd.distributed.collectives import broadcast_all
from retrograd.distributed.fsdp.fully_shard import full_state_dict
from retrograd.distributed.groups import initialized_group
from retrograd.distributed.local_slice import LocalSlice
from retrograd.distributed.objects import broadcast_object_list
from retrograd.distributed.optim.zero_redundancy import ZeroRedundancyOptimizer
from retrograd.distributed.tensor.dtensor import DTensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn.module import Module
from retrograd.nn.parameter import give_memory, is_on_meta
from retrograd.nn.state_loading import IncompatibleKeys
from retrograd.ops.functions import functions
from retrograd.optim.optimizer import Optimizer
from retrograd.pipelining.transports.process_group import default_group

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip


@dataclass
class StateDictOptions:
    """How states are returned and set.

    - full_state_dict: with whole tensors instead of parts, on every rank.
    - cpu_offload: in host memory; with full_state_dict, on rank 0 only, and empty on the others.
    - ignore_frozen_params: without parameters that do not require grad.
    - strict: names that are missing or unexpected in a model's state are an error.
    - broadcast_from_rank0: set the state that rank 0 passes, whole, on all ranks; needs full_state_dict.
    - flatten_optimizer_state_dict: one level of names, "state.NAME.exp_avg" and "param_groups.NAME.lr" by parameter.
      States that the first step would make are in it as if it had been taken.

    The others are accepted with their defaults only.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def get_model_state_dict(
    model: Module, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Return the state dict of a model, without the prefix of `DistributedDataParallel`; its parts are `DTensor`s.

    With whole tensors, all ranks must call it.  Raises NotImplementedError for `submodules`.
    """
    options, module = _checked("get_model_state_dict", options, submodules), module_of(model)
    found: dict[str, Any] = full_state_dict(module) if options.full_state_dict else dict(module.state_dict())
    if options.ignore_frozen_params:
        frozen = {name for name, p in module.named_parameters(remove_duplicate=False) if not p.requires_grad}
        found = {name: value for name, value in found.items() if name not in frozen}
    return _offloaded(found, options)


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: Any = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """Return the states and groups of optimizers with the names of the model's parameters.

    {"state": {"layer.weight": {"exp_avg": ...}}, "param_groups": [{"params": ["layer.weight"], "lr": ...}]}

    The states of divided parameters are `DTensor`s, those of a `ZeroRedundancyOptimizer` slices of what this rank has.
    A parameter for which the optimizer has taken no step has the names that `load` needs, which are not saved.

    Raises TypeError for states that cannot be divided as their parameter is, ValueError for parameters that the model
    lacks, NotImplementedError for `submodules`, and for flat names of states that are no tensors or numbers.
    """
    options, module = _checked("get_optimizer_state_dict", options, submodules), module_of(model)
    found: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _listed(optimizers):
        own = states_by_name(module, optimizer, whole=options.full_state_dict, template=True)
        found["state"].update(own["state"])
        found["param_groups"] += own["param_groups"]
    if options.ignore_frozen_params:
        frozen = {name for name, p in module.named_parameters(remove_duplicate=False) if not p.requires_grad}
        found["state"] = {name: state for name, state in found["state"].items() if name not in frozen}
        for group in found["param_groups"]:
            group["params"] = [name for name in group["params"] if name not in frozen]
    return _offloaded(_flattened(found) if options.flatten_optimizer_state_dict else found, options)


def get_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: Any = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the states of a model and of its optimizers, as `get_model_state_dict` and `get_optimizer_state_dict`.

    >>> import retrograd as rg
    >>> from retrograd.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    >>> model = rg.nn.Linear(2, 1, bias=False)
    >>> optimizer = rg.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    >>> of_model, of_optimizer = get_state_dict(model, optimizer)
    >>> of_optimizer["state"], of_optimizer["param_groups"][0]["params"]
    ({'weight': {'momentum_buffer': tensor([[0., 0.]])}}, ['weight'])
    >>> set_state_dict(model, optimizer, model_state_dict=of_model, optim_state_dict=of_optimizer)
    <All keys matched successfully>
    """
    of_model = get_model_state_dict(model, submodules=submodules, options=options)
    return of_model, get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options)


def set_model_state_dict(
    model: Module, model_state_dict: Mapping[str, Any], *, options: StateDictOptions | None = None
) -> IncompatibleKeys:
    """Write a state into a model, whose tensors on the device "meta" get memory; return names that do not match.

    Whole tensors and parts may be given, whatever the options.  Raises what `Module.load_state_dict` raises, ValueError
    for another shape.
    """
    options, module = _checked("set_model_state_dict", options, None), module_of(model)
    own = module.state_dict(keep_vars=True)

    def keep(path: layout.Keys, value: Any) -> Any:
        target = own.get(path[0])
        if isinstance(target, DTensor) and _is_whole(target, value):
            return target.as_part(target.part_of(value))
        return value

    given = {name: keep((name,), x) for name, x in _received(model_state_dict, options, keep).items()}
    for name in given:
        if isinstance(own.get(name), Tensor) and is_on_meta(own[name]):
            give_memory(own[name])
    return module.load_state_dict(given, strict=options.strict)


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: Mapping[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Load states and groups with the names of the model's parameters; each rank takes its elements of whole tensors.

    Flat names are taken too, whatever the options.

    Raises what `Optimizer.load_state_dict` raises, ValueError for a group with other parameters or another part, and
    RuntimeError for flat names with different settings in one group.
    """
    options, module = _checked("set_optimizer_state_dict", options, None), module_of(model)
    each = [(optimizer, {part.name: part for part in parts_of(module, optimizer)}) for optimizer in _listed(optimizers)]
    parts = {name: part for _, own in each for name, part in own.items()}

    def keep(path: layout.Keys, value: Any) -> Any:
        return parts[path[1]].localized(path[-1], value) if path[0] == "state" and path[1] in parts else value

    names = names_of(module)
    groups_of_names = [
        [names[id(p)] for p in group["params"]] for optimizer, _ in each for group in optimizer.param_groups
    ]
    nested = optim_state_dict if "state" in optim_state_dict else _unflattened(optim_state_dict, groups_of_names)
    given = _received(nested, options, keep)
    for optimizer, own in each:
        groups = [_group_for(group, names, given["param_groups"]) for group in optimizer.param_groups]
        target: Any = optimizer.optim if isinstance(optimizer, ZeroRedundancyOptimizer) else optimizer
        number = {id(p): index for index, p in enumerate(target._params())}
        states = {
            number[id(part.local)]: {key: part.localized(key, x) for key, x in given["state"][name].items()}
            for name, part in own.items()
            if not isinstance(given["state"].get(name, layout.FirstState()), layout.FirstState)
        }
        loaded = [
            {**settings, "params": [number[id(p)] for p in group["params"]]}
            for settings, group in zip(groups, target.param_groups, strict=True)
        ]
        target.load_state_dict({"state": states, "param_groups": loaded})
        for group, settings in zip(optimizer.param_groups, groups, strict=True):
            group.update(settings)
        if isinstance(optimizer, ZeroRedundancyOptimizer):
            optimizer.consolidated = None


def set_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: Mapping[str, Any],
    optim_state_dict: Mapping[str, Any],
    options: StateDictOptions | None = None,
) -> IncompatibleKeys:
    """Set the states of a model and of its optimizers; return names of the model's that do not match."""
    if optim_state_dict or (options is not None and options.broadcast_from_rank0):
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


def _flattened(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of an optimizer with one level of names."""
    found: dict[str, Any] = {}
    for name, state in tree["state"].items():
        for key, value in state.items():
            if not isinstance(value, Tensor | LocalSlice | int | float):
                raise NotImplementedError(
                    f"flatten_optimizer_state_dict: expected tensors and numbers in the state of {name}, got "
                    f"{type(value).__name__} for {key}"
                )
            found[f"state.{name}.{key}"] = value
    for group in tree["param_groups"]:
        for name in group["params"]:
            found |= {f"param_groups.{name}.{key}": value for key, value in settings_of(group).items()}
    return found


def _unflattened(flat: Mapping[str, Any], groups_of_names: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return the state of optimizers, given one level of names, and the names of the parameters in each group."""

    def entries(kind: str, name: str) -> dict[str, Any]:
        prefix = f"{kind}.{name}."
        return {key[len(prefix) :]: value for key, value in flat.items() if key.startswith(prefix)}

    found: dict[str, Any] = {"state": {}, "param_groups": []}
    for names in groups_of_names:
        known = [name for name in names if entries("param_groups", name)]
        found["state"].update({name: state for name in known if (state := entries("state", name))})
        settings = [entries("param_groups", name) for name in known]
        for name, other in zip(known, settings, strict=True):
            if other != settings[0]:
                raise RuntimeError(f"set_optimizer_state_dict: {known[0]} and {name} of one group have other settings")
        found["param_groups"].append({"params": known, **(settings[0] if settings else {})})
    return found


def _group_for(group: Mapping[str, Any], names: Mapping[int, str], given: Iterable[Any]) -> dict[str, Any]:
    """Return the settings of the given group that has the parameters of this group."""
    own = {names[id(p)] for p in group["params"]}
    for other in given:
        if own == set(other["params"]):  # JSON has no tuples
            return {
                key: tuple(value) if isinstance(group.get(key), tuple) else value
                for key, value in settings_of(other).items()
            }
    nearest: Any = max(given, key=lambda other: len(own & set(other["params"])), default={"params": []})
    differing = ", ".join(sorted(own ^ set(nearest["params"])))
    raise ValueError(f"a group of the optimizer has other parameters in the state: {differing} differ")


class _Kind(NamedTuple):
    """The shape and dtype of a tensor that rank 0 sends."""

    shape: tuple[int, ...]
    dtype: Any


def _received(tree: Any, options: StateDictOptions, keep: Callable[[layout.Keys, Any], Any]) -> Any:
    """Return the state of rank 0, of which each rank keeps what it needs, if it is to be sent; else the given one."""
    if not options.broadcast_from_rank0:
        return tree
    group = initialized_group()
    sent = dict(layout.leaves(tree)) if group.rank() == 0 else {}
    rows = [[(path, _Kind(tuple(x.shape), x.dtype) if isinstance(x, Tensor) else x) for path, x in sent.items()]]
    broadcast_object_list(rows, src=0)
    found: dict[Any, Any] = {}
    for path, value in rows[0]:
        if isinstance(value, _Kind):
            whole = sent[path].detach() if sent else functions["empty"](value.shape, dtype=value.dtype)
            with no_grad():
                broadcast_all([whole], group)
            value = keep(path, whole)
        layout.put(found, path, value)
    return found


def _is_whole(target: DTensor, value: Any) -> bool:
    return not isinstance(value, DTensor) and tuple(value.shape) == target.whole_shape


def _offloaded(tree: Any, options: StateDictOptions) -> Any:
    """Return a state in host memory, if the options ask for it."""
    if not options.cpu_offload:
        return tree
    group = default_group()
    return {} if options.full_state_dict and group is not None and group.rank() else _in_host_memory(tree)


def _in_host_memory(tree: Any) -> Any:
    if isinstance(tree, dict):
        copied = {key: _in_host_memory(value) for key, value in tree.items()}
        return layout.FirstState(copied) if isinstance(tree, layout.FirstState) else copied
    if isinstance(tree, DTensor):
        return tree.as_part(tree.local_tensor().cpu())
    return tree.cpu() if isinstance(tree, Tensor) else tree


def _listed(optimizers: Any) -> list[Any]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def _checked(call: str, options: StateDictOptions | None, submodules: Any) -> StateDictOptions:
    """Return the options, or the defaults; raise for those that have no meaning here."""
    found = StateDictOptions() if options is None else options
    if submodules is not None:
        raise NotImplementedError(f"{call}: submodules is not supported; pass the submodule as the model")
    if found.broadcast_from_rank0 and not found.full_state_dict:
        raise ValueError(f"{call}: broadcast_from_rank0 needs full_state_dict=True")
    return found


suggest_in_module(globals())
