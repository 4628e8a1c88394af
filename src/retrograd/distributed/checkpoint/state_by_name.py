"""The state of a model and its optimizer as slices by parameter name, which do not depend on how ranks divide them."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from retrograd.core import Tensor
from retrograd.distributed.checkpoint import layout
from retrograd.distributed.checkpoint.api import load, read_into
from retrograd.distributed.data_parallel import DistributedDataParallel
from retrograd.distributed.fsdp.fully_shard import sharded_state_dict
from retrograd.distributed.local_slice import LocalSlice
from retrograd.distributed.optim.zero_redundancy import ZeroRedundancyOptimizer
from retrograd.nn.module import Module
from retrograd.nn.parameter import is_on_meta
from retrograd.ops.functions import functions
from retrograd.optim.optimizer import Optimizer
from retrograd.pipelining.pipeline_trainer import Pipeline
from retrograd.pipelining.transports.process_group import default_group

MODEL, STATE, NUMBER, GROUPS = "model", "optimizer_state", "optimizer_numbers", "optimizer_groups"


def training_state(model: Module | Pipeline, optimizer: Optimizer | None = None) -> dict[str, Any]:
    """Return this rank's part of the state of a model and its optimizer, for `save` and `async_save`.

    model: a module, also of `DistributedDataParallel` or with blocks of `fully_shard`, or a pipeline.  optimizer: one
    of `retrograd.optim`, or a `ZeroRedundancyOptimizer`.

    Parts have the names of parameters, so any other division loads them: other numbers of ranks, stages and replicas,
    another kind of division, one process.

    Raises TypeError for states of optimizers that are neither tensors nor numbers, ValueError for parameters of the
    optimizer that the model lacks.

    >>> import retrograd as rg, tempfile
    >>> import retrograd.distributed.checkpoint as checkpoint
    >>> model = rg.nn.Linear(3, 2)
    >>> optimizer = rg.optim.Adam(model.parameters())
    >>> model(rg.ones(1, 3)).sum().backward()
    >>> optimizer.step()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint.save({"step": 1, **checkpoint.training_state(model, optimizer)}, checkpoint_id=folder)
    ...     other = rg.nn.Linear(3, 2)
    ...     checkpoint.load_training_state(other, rg.optim.Adam(other.parameters()), checkpoint_id=folder)
    >>> rg.equal(model.weight, other.weight)
    True
    """
    module, slices = _module(model), _slices(model, *_ranks(model))
    found: dict[str, Any] = {MODEL: slices}
    if optimizer is not None:
        names = _names(module)
        found |= {STATE: {}, NUMBER: {}, GROUPS: _groups(optimizer, names)}
        for part in _optimizer_parts(optimizer, names, slices):
            tensors, numbers = _divided(part)
            if tensors:
                found[STATE].setdefault(part.name, {}).update(tensors)
            if numbers:
                found[NUMBER].setdefault(part.name, {}).update(numbers)
    return found


def load_training_state(
    model: Module | Pipeline, optimizer: Optimizer | None = None, *, checkpoint_id: str | os.PathLike[str]
) -> None:
    """Load a checkpoint of `training_state`, saved by any division of the model, into this one.

    Each rank reads only the elements that it has memory for: see `Pipeline.materialize`.

    Raises ValueError, before anything changes, if the names, shapes or groups differ, KeyError for names that the
    checkpoint lacks, and what `load` raises.
    """
    folder, module = Path(checkpoint_id), _module(model)
    slices = {name: x for name, x in _slices(model, {}, 0, 1).items() if not is_on_meta(x.tensor)}
    loading = None if optimizer is None else _read_optimizer(optimizer, _names(module), slices, folder)
    load({MODEL: slices}, checkpoint_id=folder)
    if isinstance(model, Pipeline):
        model.load_state_dict(model.model.state_dict())  # its ranks compare their parameters again
    if loading is not None:
        loading()


class Part(NamedTuple):
    """The optimizer's state of the elements of a parameter that this rank updates.

    parameter: those elements.  local: the tensor that the optimizer updates for them.
    """

    name: str
    parameter: LocalSlice
    local: Tensor
    state: Mapping[str, Any]


def _module(model: Any) -> Module:
    found = model.model if isinstance(model, Pipeline) else model
    if not isinstance(found, Module):
        raise TypeError(f"checkpoint: expected a Module or a Pipeline, got {type(model).__name__}")
    return found.module if isinstance(found, DistributedDataParallel) else found


def _names(module: Module) -> dict[int, str]:
    """Return the first name of each parameter, by id; of divided ones, that of this rank's part."""
    found: dict[int, str] = {}
    for name, p in module.state_dict(keep_vars=True).items():
        found.setdefault(id(p), name)
    return found


def _slices(model: Any, owners: Mapping[str, Sequence[int]], rank: int, count: int) -> dict[str, LocalSlice]:
    """Return what this rank has of each parameter and buffer, by its first name.

    owners: the ranks that have a tensor, where not all of them do.  rank, count: of this process, and of all.
    """
    module = _module(model)
    first = set(_names(module).values())
    found = {}
    for name, x in sharded_state_dict(module).items():
        if name not in first:
            continue
        ranks = owners.get(name, range(count))
        if isinstance(x, LocalSlice):
            found[name] = x
        elif rank in ranks:
            found[name] = LocalSlice(x, tuple(x.shape), 0, list(ranks).index(rank), len(ranks))
    return found


def _ranks(model: Any) -> tuple[Mapping[str, Sequence[int]], int, int]:
    """Return the owners of tensors that not all ranks have, the rank of this process, and the number of ranks."""
    if isinstance(model, Pipeline):
        return model.owners(), model.rank, model.processes
    group = default_group()
    return ({}, 0, 1) if group is None else ({}, group.rank(), group.size())


def _optimizer_parts(optimizer: Any, names: Mapping[int, str], slices: Mapping[str, LocalSlice]) -> Iterator[Part]:
    """Yield the parts of the parameters that this rank updates."""
    if isinstance(optimizer, ZeroRedundancyOptimizer):
        for piece in optimizer.pieces:
            own = LocalSlice(piece.tensor.detach(), tuple(piece.param.shape), piece.low)
            yield Part(names[id(piece.param)], own, piece.tensor, optimizer.optim.state.get(piece.tensor, {}))
        return
    for p in optimizer._params():
        if names[id(p)] in slices:
            yield Part(names[id(p)], slices[names[id(p)]], p, optimizer.state.get(p, {}))


def _divided(part: Part) -> tuple[dict[str, LocalSlice], dict[str, LocalSlice]]:
    """Return the tensors of a part's state, and its numbers, which the first owner of the parameter saves."""
    tensors, numbers = {}, {}
    own = part.parameter
    is_first = own.low == 0 and own.copy == 0
    for key, value in part.state.items():
        if isinstance(value, Tensor) and tuple(value.shape) == tuple(part.local.shape):
            tensors[key] = LocalSlice(value.detach(), own.shape, own.low, own.copy, own.copies)
        elif isinstance(value, Tensor) and own.tensor.numel() == _count(own.shape):
            tensors[key] = LocalSlice(value.detach(), tuple(value.shape), 0, own.copy, own.copies)
        elif isinstance(value, bool | int | float):
            if is_first:
                kind = "float64" if isinstance(value, float) else "int64"
                numbers[key] = LocalSlice(functions["full"]((), value, dtype=kind), (), 0)
        else:
            raise TypeError(
                f"checkpoint: {key} of {part.name} is a {type(value).__name__} in the optimizer's state, which cannot "
                f"be divided by the elements of the parameter"
            )
    return tensors, numbers


def _count(shape: tuple[int, ...]) -> int:
    found = 1
    for size in shape:
        found *= size
    return found


def _groups(optimizer: Optimizer, names: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return the settings of the groups, with names of parameters."""
    unknown = [p.aval for group in optimizer.param_groups for p in group["params"] if id(p) not in names]
    if unknown:
        raise ValueError(f"checkpoint: the optimizer has parameters that the model lacks: {unknown}")
    return [
        {
            "params": [names[id(p)] for p in group["params"]],
            "settings": {key: value for key, value in group.items() if key not in ("params", "param_names")},
        }
        for group in optimizer.param_groups
    ]


def _read_optimizer(
    optimizer: Optimizer, names: Mapping[int, str], slices: Mapping[str, LocalSlice], folder: Path
) -> Callable[[], None]:
    """Read the states of this rank's parameters; return the function that loads them, and the settings."""
    manifest = layout.read_manifest(folder)
    settings = [_read_settings(number, own, manifest["values"]) for number, own in enumerate(_groups(optimizer, names))]
    states: dict[int, dict[str, Any]] = {}  # by the id of the tensor that the optimizer updates
    for part in _optimizer_parts(optimizer, names, slices):
        state = {key: _read_tensor(part, name, folder, manifest) for key, name in _stored(STATE, part, manifest)}
        numbers = _stored(NUMBER, part, manifest)
        state |= {key: _read_whole(name, folder, manifest).item() for key, name in numbers}
        if state:
            states[id(part.local)] = state
    target: Any = optimizer.optim if isinstance(optimizer, ZeroRedundancyOptimizer) else optimizer
    number = {id(p): index for index, p in enumerate(target._params())}
    loaded = {
        "state": {number[key]: state for key, state in states.items()},
        "param_groups": [
            {**own, "params": [number[id(p)] for p in group["params"]]}
            for own, group in zip(settings, target.param_groups, strict=True)
        ],
    }
    return lambda: _load(optimizer, target, loaded, settings)


def _load(optimizer: Optimizer, target: Optimizer, loaded: dict[str, Any], settings: list[dict[str, Any]]) -> None:
    target.load_state_dict(loaded)
    for group, own in zip(optimizer.param_groups, settings, strict=True):
        group.update(own)


def _read_settings(number: int, own: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored settings of a group; ValueError if its parameters differ."""

    def stored(*keys: Any) -> Any:
        return values[layout.name_of((GROUPS, number, *keys))]

    prefix = layout.name_of((GROUPS, number, "params")) + "/"
    names = {value for name, value in values.items() if name.startswith(prefix)}
    if names != set(own["params"]):
        differing = sorted(names ^ set(own["params"]))
        raise ValueError(f"load: group {number} of the optimizer has other parameters: {', '.join(differing)} differ")
    return {
        key: type(value)(stored("settings", key, index) for index in range(len(value)))
        if isinstance(value, tuple | list)
        else stored("settings", key)
        for key, value in own["settings"].items()
    }


def _stored(kind: str, part: Part, manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the entries of a parameter's state that the checkpoint has: the key, and the name of the tensor."""
    prefix = layout.name_of((kind, part.name)) + "/"
    return [(name[len(prefix) :], name) for name in manifest["tensors"] if name.startswith(prefix)]


def _read_tensor(part: Part, name: str, folder: Path, manifest: Mapping[str, Any]) -> Tensor:
    """Return this rank's elements of a state like the parameter, and the whole of another one."""
    entry = manifest["tensors"][name]
    if tuple(entry["shape"]) != part.parameter.shape:
        return _read_whole(name, folder, manifest)
    found: Tensor = functions["zeros"](tuple(part.local.shape), dtype=entry["dtype"])
    read_into(LocalSlice(found, part.parameter.shape, part.parameter.low), folder, name, entry)
    return found


def _read_whole(name: str, folder: Path, manifest: Mapping[str, Any]) -> Tensor:
    entry = manifest["tensors"][name]
    found: Tensor = functions["zeros"](tuple(entry["shape"]), dtype=entry["dtype"])
    read_into(LocalSlice(found, tuple(entry["shape"]), 0), folder, name, entry)
    return found
