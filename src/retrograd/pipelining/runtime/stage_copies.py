"""Copies of stages, for replicas and directions that are threads of one process."""

from collections.abc import Sequence
from copy import copy
from typing import Any

from retrograd.foundation.own_attributes import stored_attributes
from retrograd.nn import Module
from retrograd.pipelining.runtime.stage import PipelineStageBase


class StageCopies:
    """The stages of each replica, or of each direction, in one step.

    The first one has the given stages.  The others have copies with the same parameters, and with copies of the
    buffers, to which they may write at the same time; these copies are made for each step, and are not compiled.
    """

    def __init__(self, stages: Sequence[PipelineStageBase], replicas: int) -> None:
        stages = list(dict.fromkeys(stages))
        self._by_replica = [dict(zip(stages, stages, strict=True))]
        for _ in range(1, replicas):
            copies: dict[int, Any] = {}  # by the id of a module or buffer, shared by the stages of a replica
            self._by_replica.append({stage: _copy_stage(stage, copies) for stage in stages})

    def of(self, replica: int, stages: Sequence[PipelineStageBase]) -> list[PipelineStageBase]:
        """Return the stages that a replica runs instead of these."""
        return [self._by_replica[replica][stage] for stage in stages]

    def by_replica(self) -> list[list[PipelineStageBase]]:
        """Return all stages of each replica."""
        return [list(copies.values()) for copies in self._by_replica]


def _copy_stage(stage: PipelineStageBase, copies: dict[int, Any]) -> PipelineStageBase:
    copied = copy(stage)
    copied.replace_submodule(_copy_module(stage.submod, copies))
    copied.forget_step()
    return copied


def _copy_module(module: Module, copies: dict[int, Any]) -> Module:
    """Return a module with copies of the submodules and buffers, and otherwise the same attributes."""
    if id(module) not in copies:
        copied = copies[id(module)] = object.__new__(type(module))
        copied.__setstate__(stored_attributes(module))
        for name, child in module.named_children():
            stored_attributes(copied)[name] = _copy_module(child, copies)
        for name, buffer in module.named_buffers(recurse=False):
            if id(buffer) not in copies:
                copies[id(buffer)] = buffer.detach().clone()
            stored_attributes(copied)[name] = copies[id(buffer)]
    found: Module = copies[id(module)]
    return found
