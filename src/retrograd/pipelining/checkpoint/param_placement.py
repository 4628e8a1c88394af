"""The rank that trains each parameter and buffer of a model, and their exchange between processes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrograd import autograd
from retrograd.nn import Module
from retrograd.pipelining.runtime.stage import PipelineStageBase
from retrograd.pipelining.schedules.stage_placement import Directions


def rank_of_tensors(model: Module, stages: Sequence[PipelineStageBase], directions: Directions) -> dict[str, int]:
    """Map each parameter and buffer name to the first rank of the first stage that has it, or 0 if none has.

    directions: the ranks of each stage.
    """
    return {name: found[0] for name, found in ranks_of_tensors(model, stages, directions).items()}


def ranks_of_tensors(
    model: Module, stages: Sequence[PipelineStageBase], directions: Directions
) -> dict[str, list[int]]:
    """Map each parameter and buffer name to the ranks of the stages that have it, the first stage first; [0] if none.

    directions: the ranks of each stage.
    """
    found: dict[int, dict[int, None]] = {}
    for stage in stages:
        for tensor in (*stage.submod.parameters(), *stage.submod.buffers()):
            found.setdefault(id(tensor), {}).update(dict.fromkeys(directions.ranks(stage.stage_index)))
    return {name: [*found.get(id(tensor), [0])] for name, tensor in model.state_dict(keep_vars=True).items()}


def sync_parameters(
    model: Module,
    rank_of_tensors: Mapping[str, int],
    rank: int,
    on_ranks: Callable[[Callable[[int], Any]], list[Any]],
) -> None:
    """Copy the values that each rank has trained into the model of every process.

    rank: the rank of this process.  on_ranks: runs a function on every rank and returns all results in every process.
    """
    state = model.state_dict(keep_vars=True)
    parts = on_ranks(
        lambda owner: {name: state[name].detach() for name in rank_of_tensors if rank_of_tensors[name] == owner}
    )
    with autograd.no_grad():
        for owner, part in enumerate(parts):
            for name, value in part.items() if owner != rank else ():
                state[name].copy_(value)
