"""Keep a schedule within a memory limit: choose the microbatches whose activations are recomputed or offloaded."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from retrograd.pipelining.planning.simulate import Cost
from retrograd.pipelining.schedules.actions import Action, Kind, Schedule
from retrograd.pipelining.schedules.activations import Run, runs_of, with_offload, with_recomputation

SLOWER = 2.0  # how many times as long as measured a write may take, since other programs use the disk, too
MOST_RUNS = 512  # of stages and microbatches that are chosen one by one; beyond that, stages are chosen as a whole


class StageBytes(NamedTuple):
    """The bytes that each stage holds for a microbatch, and the seconds of its actions.

    saved: from the forward to the backward pass; inputs: the part of it that stays in memory.  cost: seconds of a
    computation or a move.  kept: bytes from the input half to the weight half; None: those of `saved`.  outputs: the
    part of `saved` that an OFFLOAD leaves in memory, too, and a recomputed forward pass does not; None: 0.
    """

    saved: Mapping[int, float]
    inputs: Mapping[int, float]
    cost: Cost
    kept: Mapping[int, float] | None = None
    outputs: Mapping[int, float] | None = None


def fit_memory(
    schedule: Schedule,
    limits: Sequence[float],
    stages: StageBytes,
    seconds: Callable[[list[list[Action]]], float],
    kinds: Collection[Kind] = (Kind.OFFLOAD, Kind.R),
) -> list[list[Action]] | None:
    """Return the fastest schedule found in which each rank stays within its limit; None if there is none.

    One by one, the microbatch of a stage that a rank needs last among those it holds at its peak is offloaded or
    recomputed, whichever makes the step shorter.  The result is compared with schedules in which one quarter, half,
    three quarters or all of the stages offload, or recompute, the first ones first, since theirs return last.  So it
    is never slower than one of these.

    schedule: computations only, without R and moves.  limits: bytes per rank.  seconds: of the step of a schedule.
    kinds: what is allowed, OFFLOAD or R or both.

    Source of the microbatch that is chosen: L. A. Belady, "A study of replacement algorithms for a virtual-storage
    computer" (1966).

    >>> from retrograd.pipelining.schedules import make_schedule
    >>> from retrograd.pipelining.schedules.actions import format_schedule
    >>> stages = StageBytes({0: 1.0, 1: 1.0}, {0: 0.0, 1: 0.0}, lambda action: 1.0)
    >>> gpipe = make_schedule("gpipe", stages=2, micro_batches=3)
    >>> def moves(schedule):  # recomputing is expensive
    ...     return sum({"R": 5.0, "OFFLOAD": 1.0}.get(action.kind.value, 0.0) for row in schedule for action in row)
    >>> print(format_schedule(fit_memory(gpipe, [3.0, 2.0], stages, moves)))
    0: F0.0 F0.1 F0.2 B0.0 B0.1 B0.2
    1: F1.0 F1.1 F1.2 B1.0 B1.1 R1.2 B1.2
    """
    plain = [list(actions) for actions in schedule]
    candidates: list[list[list[Action]] | None] = [*_uniform(plain, len(stages.saved), kinds)]
    if sum(map(len, plain)) <= 3 * MOST_RUNS:
        # The choice that is best for the next microbatch may leave no choice for later ones.
        for allowed in dict.fromkeys([tuple(kinds), *((kind,) for kind in kinds)]):
            candidates.append(_one_by_one(plain, limits, stages, seconds, allowed))
    fitting = [found for found in candidates if found is not None and not any(_excesses(found, limits, stages))]
    return min(fitting, key=seconds, default=None)


def _uniform(schedule: list[list[Action]], stages: int, kinds: Collection[Kind]) -> Iterator[list[list[Action]]]:
    for count in sorted({-(-stages // 4), -(-stages // 2), -(-3 * stages // 4), stages}):
        if Kind.OFFLOAD in kinds:
            yield with_offload(schedule, range(count), ahead=1)
        if Kind.R in kinds:
            yield with_recomputation(schedule, range(count))


def _one_by_one(
    schedule: list[list[Action]],
    limits: Sequence[float],
    stages: StageBytes,
    seconds: Callable[[list[list[Action]]], float],
    kinds: Sequence[Kind],
) -> list[list[Action]] | None:
    chosen: dict[Kind, set[Run]] = {kind: set() for kind in kinds}
    found = schedule
    while True:
        excess = _excesses(found, limits, stages)
        if not any(excess):
            return found
        rank = excess.index(max(excess))
        for run in _last_needed_first(found[rank], stages):
            trials = [{**chosen, kind: runs | {run}} for kind, runs in chosen.items()]
            made = [(trial, _with_runs(schedule, trial)) for trial in trials]
            better = [one for one in made if _excess(one[1][rank], limits[rank], stages) < excess[rank]]
            if better:
                chosen, found = min(better, key=lambda one: seconds(one[1]))
                break
        else:
            return None


def _excesses(schedule: Schedule, limits: Sequence[float], stages: StageBytes) -> list[float]:
    return [_excess(row, limit, stages) for row, limit in zip(schedule, limits, strict=True)]


def _excess(actions: Sequence[Action], limit: float, stages: StageBytes) -> float:
    """Return by how many bytes a rank exceeds its limit, summed over its actions."""
    return sum(max(held - limit * (1 + 1e-9), 0.0) for held in _held(actions, stages))


def _with_runs(schedule: Schedule, chosen: Mapping[Kind, set[Run]]) -> list[list[Action]]:
    moved = with_offload(schedule, chosen.get(Kind.OFFLOAD, ()), ahead=1)
    return with_recomputation(moved, chosen.get(Kind.R, ()))


def peak_bytes(actions: Sequence[Action], stages: StageBytes) -> float:
    """Return the most bytes that a rank holds for backward passes, with those that may still be being written.

    >>> from retrograd.pipelining.planning.simulate import unit_cost
    >>> from retrograd.pipelining.schedules.actions import parse
    >>> row = [parse(text) for text in ("F0.0", "OFFLOAD0.0", "F0.1", "B0.1", "FETCH0.0", "B0.0")]
    >>> [peak_bytes(row, StageBytes({0: 1.0}, {0: 0.25}, lambda action: seconds)) for seconds in (0.0, 1.0)]
    [1.25, 2.0]
    """
    return max(_held(actions, stages), default=0.0)


def _held(actions: Sequence[Action], stages: StageBytes) -> Iterator[float]:
    """Yield the bytes that a rank holds at most after the beginning of each action.

    Moves run one after the other.  So a write has ended at the next write, which waits for it, and at a backward pass
    that has waited for a later read, however long it takes.  Otherwise it has ended when the rank has computed for
    `SLOWER` times its seconds.
    """
    recomputed = runs_of(actions, Kind.R)
    held = now = written = 0.0
    writing = 0.0  # bytes of the write that may not have ended, less those of reads, which begin when it has
    later_reads: set[Run] = set()
    for action in actions:
        kind, stage, run = action.kind, action.stage, (action.stage, action.micro_batch)
        everything = stages.saved[stage]
        dropped = max(everything - stages.inputs[stage], 0.0)
        moved = max(dropped - (stages.outputs[stage] if stages.outputs else 0.0), 0.0)
        growth = (everything if stages.kept is None else stages.kept[stage]) - everything
        if now >= written or (kind in (Kind.B, Kind.I) and run in later_reads):
            writing = 0.0
        if kind is Kind.F:
            held += everything - dropped if run in recomputed else everything
        elif kind is Kind.OFFLOAD:
            held, writing, later_reads = held - moved, moved, set()
            written = now + SLOWER * stages.cost(action)
        elif kind is Kind.FETCH:
            held, writing = held + moved, max(writing - moved, 0.0)
            later_reads.add(run)
        elif kind is Kind.R:
            held += dropped
        elif kind is Kind.I:
            held += max(growth, 0.0)
        elif kind is Kind.B:
            held -= everything
        elif kind is Kind.W:
            held -= everything + growth
        yield held + (writing if now < written else 0.0)
        held += min(growth, 0.0) if kind is Kind.I else 0.0
        now += stages.cost(action) if kind.is_compute else 0.0


def _last_needed_first(actions: Sequence[Action], stages: StageBytes) -> Iterator[Run]:
    """Yield the runs that a rank holds at its peak, of those that it neither recomputes nor offloads."""
    held = list(_held(actions, stages))
    peak = held.index(max(held))
    stored = runs_of(actions, Kind.R) | runs_of(actions, Kind.OFFLOAD)
    before = {(action.stage, action.micro_batch) for action in actions[: peak + 1] if action.kind is Kind.F}
    later = [(a.stage, a.micro_batch) for a in actions[peak + 1 :] if a.kind in (Kind.B, Kind.I)]
    return (run for run in reversed(later) if run in before and run not in stored)
