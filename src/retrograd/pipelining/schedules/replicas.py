"""Replicas of a pipeline: each runs a part of the microbatches, and gradients are summed over all of them."""

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.program import Program


class ReplicaMesh(NamedTuple):
    """The numbers of replicas, and of the ranks of each.

    The ranks are numbered as in `init_device_mesh("cpu", (replicas, ranks))` of `rg.distributed`.

    >>> mesh = ReplicaMesh(replicas=2, ranks=3)
    >>> mesh.replica(4), mesh.first_rank(4), list(mesh.peers(4)), mesh.world
    (1, 3, [1, 4], 6)
    """

    replicas: int
    ranks: int

    @property
    def world(self) -> int:
        """Return the number of all ranks."""
        return self.replicas * self.ranks

    def replica(self, rank: int) -> int:
        """Return the replica that a rank belongs to."""
        return rank // self.ranks

    def first_rank(self, rank: int) -> int:
        """Return the first rank of the replica that a rank belongs to."""
        return rank - rank % self.ranks

    def peers(self, rank: int) -> range:
        """Return the ranks of all replicas that run the same stages as a rank."""
        return range(rank % self.ranks, self.world, self.ranks)


def share_sizes(micro_batches: int, replicas: int) -> list[int]:
    """Return how many microbatches each replica runs; the first ones may run one more.

    >>> share_sizes(5, 3), share_sizes(1, 2)
    ([2, 2, 1], [1, 0])
    """
    size, more = divmod(micro_batches, replicas)
    return [size + (replica < more) for replica in range(replicas)]


def replicate(programs: Sequence[Program | None], reduce_gradients: bool) -> Program:
    """Return the program of all replicas from those of each, whose microbatches are numbered one after the other.

    programs: None for a replica without microbatches; the first one has some.

    reduce_gradients: insert REDUCE_GRAD after the last backward of each stage, and WAIT_GRAD at the end.

    Raises ValueError for programs in two directions.

    >>> from retrograd.pipelining.schedules.actions import format_schedule
    >>> from retrograd.pipelining.schedules.program import make_program
    >>> print(format_schedule(replicate([make_program("gpipe", 1, 1, {})] * 2, reduce_gradients=True).actions))
    0: F0.0         B0.0         REDUCE_GRAD0 WAIT_GRAD0
    1: F0.1         B0.1         REDUCE_GRAD0 WAIT_GRAD0
    """
    actions: list[list[Action]] = []
    assert programs[0] is not None, "the first replica has microbatches"
    first, start = programs[0], 0
    if len(first.directions.placements) > 1:
        raise ValueError("a schedule that runs two copies of each stage in two directions has no replicas")
    for program in programs:
        rows = [[]] * len(first.actions) if program is None else program.actions
        for rank, row in enumerate(rows):
            moved = [Action(kind, stage, number + start, peer) for kind, stage, number, peer in row]
            own_stages = first.directions.stages(rank)
            actions.append(_with_reductions(moved, own_stages) if reduce_gradients else moved)
        start += 1 + max((action.micro_batch for row in rows for action in row), default=-1)
    digest = crc32(repr(([program and program.digest for program in programs], reduce_gradients)).encode())
    return Program(actions, first.directions, f"{digest:08x}")


def add_reductions(schedule: Sequence[Sequence[Action]]) -> list[list[Action]]:
    """Return the computations of one replica of several, with the sums of gradients over all of them, for a simulation.

    >>> from retrograd.pipelining.schedules import make_schedule
    >>> from retrograd.pipelining.schedules.actions import format_schedule
    >>> print(format_schedule(add_reductions(make_schedule("gpipe", 1, 1))))
    0: F0.0         B0.0         REDUCE_GRAD0 WAIT_GRAD0
    """
    return [_with_reductions(row, sorted({action.stage for action in row})) for row in schedule]


def _with_reductions(row: Sequence[Action], stages: Sequence[int]) -> list[Action]:
    """Return a rank's actions with those that sum the gradients of its stages over the replicas.

    All replicas wait in the same order, in which the last stage, whose gradients are usually final first, comes first.
    """
    # After the send of the last gradients, because another rank waits for these.
    last = {a.stage: index for index, a in enumerate(row) if a.kind in (Kind.B, Kind.W, Kind.SEND_B)}
    found = [Action(Kind.REDUCE_GRAD, stage, 0) for stage in stages if stage not in last]  # no microbatch is run
    for index, action in enumerate(row):
        found.append(action)
        if last.get(action.stage) == index:
            found.append(Action(Kind.REDUCE_GRAD, action.stage, 0))
    return found + [Action(Kind.WAIT_GRAD, stage, 0) for stage in sorted(stages, reverse=True)]
