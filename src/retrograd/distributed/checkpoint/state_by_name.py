"""The state of a model and its optimizer for checkpoints, of any division of the work, pipelines included."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from retrograd.core import Tensor
from retrograd.distributed.checkpoint import layout
from retrograd.distributed.checkpoint.api import load
from retrograd.distributed.checkpoint.named_states import Part, module_of, names_of, parts_of, states_by_name
from retrograd.distributed.checkpoint.state_dict import get_model_state_dict, set_optimizer_state_dict
from retrograd.distributed.local_slice import LocalSlice
from retrograd.nn.module import Module
from retrograd.nn.parameter import is_on_meta
from retrograd.ops.functions import functions
from retrograd.optim.optimizer import Optimizer
from retrograd.pipelining.pipeline_trainer import Pipeline

MODEL, OPTIMIZER, STATE, GROUPS = "model", "optimizer", "state", "param_groups"


def training_state(model: Module | Pipeline, optimizer: Optimizer | None = None) -> dict[str, Any]:
    """Return this rank's part of the state of a model and its optimizer, for `save` and `async_save`.

    model: a module, also of `DistributedDataParallel` or with blocks of `fully_shard`, or a pipeline.  optimizer: one
    of `retrograd.optim`, or a `ZeroRedundancyOptimizer`.

    Parts have the names of parameters, so any other division loads them: other numbers of ranks, stages and replicas,
    another kind of division, one process.

    Raises TypeError for states of optimizers that cannot be divided, ValueError for parameters of the optimizer that
    the model lacks.

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
    module = module_of(model.model if isinstance(model, Pipeline) else model)
    owners = model.owners() if isinstance(model, Pipeline) else {}
    rank = model.rank if isinstance(model, Pipeline) else 0
    tensors = {name: x for name, x in get_model_state_dict(module).items() if name in names_of(module).values()}
    found: dict[str, Any] = {MODEL: _owned(tensors, owners, rank)}
    if optimizer is not None:
        state = states_by_name(module, optimizer)
        found[OPTIMIZER] = {**state, STATE: _owned(state[STATE], owners, rank)}
    return found


def load_training_state(
    model: Module | Pipeline, optimizer: Optimizer | None = None, *, checkpoint_id: str | os.PathLike[str]
) -> None:
    """Load a checkpoint of `training_state`, saved by any division of the model, into this one.

    Each rank reads only the elements that it has memory for: see `Pipeline.materialize`.

    Raises ValueError, before anything changes, if the names, shapes or groups differ, KeyError for names that the
    checkpoint lacks, and what `load` raises.
    """
    folder, module = Path(checkpoint_id), module_of(model.model if isinstance(model, Pipeline) else model)
    first = set(names_of(module).values())
    tensors = get_model_state_dict(module)
    target: dict[str, Any] = {MODEL: {n: x for n, x in tensors.items() if n in first and not is_on_meta(x)}}
    if optimizer is not None:
        manifest = layout.read_manifest(folder)
        parts = [part for part in parts_of(module, optimizer) if not is_on_meta(part.local)]
        target[OPTIMIZER] = {
            STATE: {part.name: _stored_state(part, manifest) for part in parts},
            GROUPS: _stored_groups(optimizer, names_of(module), manifest),
        }
    load(target, checkpoint_id=folder)
    if isinstance(model, Pipeline):
        model.load_state_dict(model.model.state_dict())  # its ranks compare their parameters again
    if optimizer is not None:
        set_optimizer_state_dict(module, optimizer, target[OPTIMIZER])


def _owned(entries: Mapping[str, Any], owners: Mapping[str, Sequence[int]], rank: int) -> dict[str, Any]:
    """Return the entries of the names that this rank has, as slices if only some ranks have them.

    owners: the ranks that have a name, where not all of them do.
    """
    found = {}
    for name, value in entries.items():
        ranks = list(owners.get(name, ()))
        if name not in owners:
            found[name] = value
        elif rank in ranks:
            found[name] = _with_copies(value, ranks.index(rank), len(ranks))
    return found


def _with_copies(value: Any, copy: int, copies: int) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_copies(x, copy, copies) for key, x in value.items()}
    return LocalSlice(value.detach(), tuple(value.shape), 0, copy, copies) if isinstance(value, Tensor) else value


def _stored_state(part: Part, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a parameter that the checkpoint has, with undefined values: those of this rank's elements."""
    prefix, found = layout.name_of((OPTIMIZER, STATE, part.name)) + "/", dict[str, Any]()
    for name, entry in manifest["tensors"].items():
        if name.startswith(prefix):
            shape, own = tuple(entry["shape"]), part.elements
            if shape == own.shape:
                mine = functions["empty"](own.tensor.shape, dtype=entry["dtype"])
                found[name[len(prefix) :]] = LocalSlice(mine, shape, own.low, dim=own.dim, box=own.box)
            else:
                found[name[len(prefix) :]] = LocalSlice(functions["empty"](shape, dtype=entry["dtype"]), shape, 0)
    found.update({name[len(prefix) :]: value for name, value in manifest["values"].items() if name.startswith(prefix)})
    return found


def _stored_groups(optimizer: Any, names: Mapping[int, str], manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the groups that the checkpoint has; ValueError if their parameters differ from those of the optimizer."""
    stored: dict[str, Any] = {}
    for name, value in manifest["values"].items():
        if name.startswith(f"{OPTIMIZER}/{GROUPS}/"):
            layout.put(stored, layout.path_of(manifest, name), value)
    groups: list[dict[str, Any]] = stored.get(OPTIMIZER, {}).get(GROUPS, [])
    for number, group in enumerate(optimizer.param_groups):
        own = {names[id(p)] for p in group["params"]}
        given = set(groups[number]["params"]) if number < len(groups) else set()
        if own != given:
            differing = ", ".join(sorted(own ^ given))
            raise ValueError(f"load: group {number} of the optimizer has other parameters: {differing} differ")
    return groups
