"""Sum gradients of parameters in a fixed order, or over several stages."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from retrograd import autograd
from retrograd.core import Tensor
from retrograd.core.blocks import Block
from retrograd.nn import Parameter
from retrograd.pipelining.runtime.replica_sums import ReplicaSums
from retrograd.pipelining.runtime.stage import PipelineStageBase
from retrograd.pipelining.schedules.actions import Message
from retrograd.pipelining.schedules.replicas import ReplicaMesh
from retrograd.pipelining.schedules.stage_placement import Directions
from retrograd.pipelining.transports import Link

Parts = dict[tuple[int, int], Tensor]  # by microbatch or, if all are summed, replica or direction; and by stage


class _Use(NamedTuple):
    """A parameter in a stage of a rank, and its alias there during a step; no number: see `ReplicaSums`."""

    number: int | None
    parameter: Parameter
    rank: int
    stage: PipelineStageBase
    name: str
    alias: Parameter


class Gradients(Block):
    """Collects the gradient parts of shared parameters per stage, and sums them in the order of an unsplit step.

    During a step, each stage has an alias of a shared parameter: the same memory with its own `.grad`.  So stages
    on several threads do not write to one `.grad` at once, and copies in several processes get the same sum.
    The order is that of the unsplit model: microbatch by microbatch, the last stage first.

    Replicas of a pipeline have aliases, too.  `replica_sums` sums the gradients of the parameters that only one stage
    uses, unless microbatches are summed one by one.

    stages: all stages that run, for all shapes.  directions: the ranks of the stages, in the first replica.  A stage of
    two ranks is a copy on each, whose gradients are summed as those of a parameter that two stages share.
    local: the ranks of this process; None: all.
    unordered: stages whose backward passes are not in the order of the microbatches, so that their gradients may not be
    accumulated directly.  by_micro_batch: store the part of every microbatch until the end; else one part per stage.
    mesh: the replicas; None: there is one.  copies: if the ranks are threads, the stages of the other replicas, or of
    the second direction.
    """

    def __init__(
        self,
        stages: Iterable[PipelineStageBase],
        directions: Directions,
        local: Sequence[int] | None,
        *,
        unordered: Iterable[int] = (),
        by_micro_batch: bool = False,
        mesh: ReplicaMesh | None = None,
        copies: Sequence[Sequence[PipelineStageBase]] = (),
    ) -> None:
        ranks = 1 + max(max(placement.values()) for placement in directions.placements)
        self._mesh = mesh = mesh or ReplicaMesh(1, ranks)
        self._directions = directions
        self._local = local
        self._by_micro_batch = by_micro_batch
        self.replica_sums = ReplicaSums(mesh, shared_memory=local is None)
        first = 0 if local is None else mesh.first_rank(local[0])
        found = [
            (rank, stage, name, parameter)
            for number, own_stages in enumerate([stages, *copies])
            for stage in dict.fromkeys(own_stages)
            for rank in [first + self._rank_of(stage, number)]
            for name, parameter in stage.submod.named_parameters()
        ]
        users: dict[int, set[int]] = defaultdict(set)
        for _, stage, _, parameter in found:
            users[id(parameter)].add(stage.stage_index)
        homes = {key: {r for index in indices for r in directions.ranks(index)} for key, indices in users.items()}
        unordered_stages = set(unordered) if by_micro_batch else set()
        self._parameters: list[Parameter] = []
        self._uses: list[_Use] = []
        self._users: list[list[int]] = []  # the ranks that have each parameter
        numbers: dict[int, int] = {}
        for rank, stage, name, parameter in found:
            shared = len(users[id(parameter)]) > 1 or len(homes[id(parameter)]) > 1
            # The other parameters accumulate in their `.grad`: one stage adds to it, in the order of the microbatches.
            if not shared and stage.stage_index not in unordered_stages and mesh.replicas == 1:
                continue
            alias, number = stage.alias_of(name, parameter), None
            if mesh.replicas > 1 and not shared and not by_micro_batch:
                self.replica_sums.add(rank, stage.stage_index, parameter, alias)
            else:
                number = numbers.setdefault(id(parameter), len(self._parameters))
                if number == len(self._parameters):
                    self._parameters.append(parameter)
                    self._users.append(sorted(peer for home in homes[id(parameter)] for peer in mesh.peers(home)))
            self._uses.append(_Use(number, parameter, rank, stage, name, alias))
        # By rank and parameter.
        self._parts: dict[int, dict[int, Parts]] = {rank: defaultdict(dict) for rank in range(mesh.world)}

    def _rank_of(self, stage: PipelineStageBase, number: int) -> int:
        """Return the rank that runs a stage; number: of its copy, for ranks that are threads."""
        index, count = stage.stage_index, len(self._directions.placements)
        if count == 1:
            return number * self._mesh.ranks + self._directions.rank(index, 0)
        if self._local is None:
            return self._directions.rank(index, number)
        ranks = self._directions.ranks(index)
        return next((rank for rank in ranks if rank in self._local), ranks[0])

    def _part_of(self, use: _Use) -> int:
        """Return the number of the part of a gradient: its replica or its direction."""
        ranks = self._directions.ranks(use.stage.stage_index)
        return ranks.index(use.rank) if len(ranks) > 1 else self._mesh.replica(use.rank)

    def _enter(self) -> "Gradients":
        """Install the aliases in the stages."""
        for use in self._uses:
            _set_parameter(use, use.alias)
        return self

    def _leave(self, *_: object) -> None:
        """Restore the parameters in the stages."""
        for use in self._uses:
            _set_parameter(use, use.parameter)

    def collect(self, stage: PipelineStageBase, micro_batch: int) -> None:
        """After a backward pass, store the gradients of the stage's shared parameters."""
        if self._by_micro_batch:
            for use in self._uses:
                if use.stage is stage and use.number is not None:
                    self._collect_use(use, micro_batch)

    def _collect_use(self, use: _Use, micro_batch: int) -> None:
        if use.alias.grad is not None:
            self._parts_of(use)[micro_batch, use.stage.stage_index] = use.alias.grad
            use.alias.grad = None

    def finish(self, link: Link) -> None:
        """After the last action of a rank, exchange the parts, and add the sums to the parameters."""
        for use in self._uses:
            if use.rank == link.rank and use.number is not None:
                self._collect_summed(use)
        for number, users in enumerate(self._users):
            if link.rank in users:
                self._exchange_and_add(link, number, users)
        self._parts.get(link.rank, {}).clear()  # a rank without stages has none

    def _collect_summed(self, use: _Use) -> None:
        """Store a stage's gradient summed over microbatches; stages captured for other shapes may have added
        theirs."""
        grad = use.alias.grad
        if grad is not None:
            key, parts = (self._part_of(use), use.stage.stage_index), self._parts_of(use)
            parts[key] = parts[key] + grad if key in parts else grad
            use.alias.grad = None

    def _parts_of(self, use: _Use) -> Parts:
        assert use.number is not None, "the others are parts of replica sums"
        return self._parts[use.rank][use.number]

    def _exchange_and_add(self, link: Link, number: int, users: list[int]) -> None:
        owner, own_parts = users[0], self._parts[link.rank][number]
        if link.rank != owner:
            link.send(owner, Message("G", link.rank, owner, number), own_parts)
            # Ranks of one process share the parameter, and its owner adds the sum.
            if self._local is not None:
                self._add(number, link.receive(owner, Message("G", owner, link.rank, number)))
            return
        for other in users[1:]:
            own_parts |= link.receive(other, Message("G", other, owner, number))
        total = _sum_in_order(own_parts)
        if not self._by_micro_batch and len(total) > 1:  # one of each replica or direction
            total = [sum(total[1:], start=total[0])]
        if self._local is not None:
            for other in users[1:]:
                link.send(other, Message("G", owner, other, number), total)
        self._add(number, total)

    def _add(self, number: int, sums: Sequence[Tensor]) -> None:
        """Add one sum after the other, as backward passes add to `.grad`."""
        parameter = self._parameters[number]
        with autograd.no_grad():
            for part in sums:
                parameter.grad = part if parameter.grad is None else parameter.grad + part


def _sum_in_order(parts: Mapping[tuple[int, int], Tensor]) -> list[Tensor]:
    """Return the sum over the stages for each microbatch, the last stage first."""
    sums: list[Tensor] = []
    for micro_batch in sorted({key[0] for key in parts}):
        stages = sorted((stage for number, stage in parts if number == micro_batch), reverse=True)
        total = parts[micro_batch, stages[0]]
        for stage in stages[1:]:
            total = total + parts[micro_batch, stage]
        sums.append(total)
    return sums


def _set_parameter(use: _Use, parameter: Parameter) -> None:
    path, _, name = use.name.rpartition(".")
    setattr(use.stage.submod.get_submodule(path), name, parameter)
