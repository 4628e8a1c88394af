"""The activations that actions of a rank create and free, and schedules that recompute them."""

from collections.abc import Collection, Sequence

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.pipelining.schedules.actions import Action, Kind, Schedule

Run = tuple[int, int]
"""A forward pass: its stage and its microbatch."""

_CHANGES = {Kind.F: 1, Kind.R: 1, Kind.B: -1, Kind.W: -1, Kind.OFFLOAD: -1, Kind.FETCH: 1}


def activation_changes(actions: Sequence[Action]) -> list[int]:
    """Return for each action of a rank 1 if it brings a microbatch's activations into memory, -1 if it frees them.

    It is 0 for the others.  F creates activations, or R if the forward pass is repeated, since F keeps only the stage's
    inputs then.

    >>> from retrograd.pipelining.schedules.actions import parse
    >>> activation_changes([parse(text) for text in ("F0.0", "F0.1", "I0.0", "W0.0", "R0.1", "B0.1")])
    [1, 0, 0, -1, 1, -1]
    """
    repeated = runs_of(actions, Kind.R)
    return [
        0 if action.kind is Kind.F and (action.stage, action.micro_batch) in repeated else _CHANGES.get(action.kind, 0)
        for action in actions
    ]


def runs_of(actions: Sequence[Action], kind: Kind) -> set[Run]:
    """Return the forward passes that these actions repeat (R), or whose activations they offload (OFFLOAD)."""
    return {(action.stage, action.micro_batch) for action in actions if action.kind is kind}


def with_offload(
    schedule: Schedule, stages: Collection[int] | Collection[Run] | None = None, ahead: int = 0
) -> list[list[Action]]:
    """Return a schedule in which stages move activations to a file after each forward, and back before the backward.

    schedule: computations only, as from `make_schedule`.  stages: which of them offload, or pairs of a stage and a
     microbatch; None: all.
    ahead: by how many computations a `FETCH` comes before the backward pass, so that it runs meanwhile.  A microbatch
     is offloaded only if the rank computes something else between the two moves.

    Moves run in the background, one after the other on each rank.  With `ahead=0`, a stage that offloads has the
    activations of one microbatch in memory at a time, and those that are being written.  Its parameters, inputs and
    outputs stay.  The file is in the directory of temporary files, which `TMPDIR` changes.

    Source: X. Wan, P. Qi, G. Huang, M. Lin and J. Li, "PipeOffload: Improving Scalability of Pipeline Parallelism with
    Memory Optimization" (2025).

    >>> from retrograd.pipelining.schedules import make_schedule
    >>> from retrograd.pipelining.schedules.actions import format_schedule
    >>> print(format_schedule(with_offload(make_schedule("1f1b", stages=2, micro_batches=2), stages=[0])))
    0: F0.0 OFFLOAD0.0 F0.1 OFFLOAD0.1 FETCH0.0 B0.0 FETCH0.1 B0.1
    1: F1.0 B1.0       F1.1 B1.1
    >>> print(*with_offload(make_schedule("gpipe", stages=2, micro_batches=3), [0], ahead=1)[0])
    F0.0 OFFLOAD0.0 F0.1 OFFLOAD0.1 FETCH0.0 F0.2 OFFLOAD0.2 FETCH0.1 B0.0 FETCH0.2 B0.1 B0.2
    """
    if not isinstance(ahead, int) or ahead < 0:
        raise ValueError(f"with_offload: ahead must be an integer of at least 0, got {ahead!r}")
    return [_with_moves(list(actions), stages, ahead) for actions in schedule]


def _is_chosen(action: Action, stages: Collection[int] | Collection[Run] | None) -> bool:
    return stages is None or action.stage in stages or (action.stage, action.micro_batch) in stages


def _with_moves(
    actions: Sequence[Action], stages: Collection[int] | Collection[Run] | None, ahead: int
) -> list[Action]:
    forwards = {(a.stage, a.micro_batch): index for index, a in enumerate(actions) if a.kind is Kind.F}
    fetches: dict[int, list[Action]] = {}
    moved: set[tuple[int, int]] = set()
    for index, action in enumerate(actions):
        run = action.stage, action.micro_batch
        is_backward = action.kind in (Kind.B, Kind.I)
        if is_backward and _is_chosen(action, stages) and index - ahead > forwards[run] + 1:
            fetches.setdefault(index - ahead, []).append(action._replace(kind=Kind.FETCH))
            moved.add(run)
    found: list[Action] = []
    for index, action in enumerate(actions):
        found += [*fetches.get(index, ()), action]
        if action.kind is Kind.F and (action.stage, action.micro_batch) in moved:
            found.append(action._replace(kind=Kind.OFFLOAD))
    return found


def with_recomputation(
    schedule: Schedule, stages: Collection[int] | Collection[Run] | None = None
) -> list[list[Action]]:
    """Return a schedule in which stages keep only their inputs, and repeat their forward before the backward pass.

    schedule: computations only, as from `make_schedule`.  stages: which of them recompute, or pairs of a stage and a
     microbatch; None: all.

    A stage that recomputes has the activations of a microbatch only during its backward pass, or from the input half
    to the weight half.  Its forward takes its time twice.  `R` is before the gradient is received, so a rank that
    would wait for the gradient recomputes instead.

    Source: T. Chen, B. Xu, C. Zhang and C. Guestrin, "Training Deep Nets with Sublinear Memory Cost" (2016), applied to
    the stages of a pipeline by Y. Huang et al., "GPipe" (2019).

    >>> from retrograd.pipelining.schedules import make_schedule
    >>> from retrograd.pipelining.schedules.actions import format_schedule
    >>> schedule = make_schedule("1f1b", stages=2, micro_batches=2)
    >>> print(format_schedule(with_recomputation(schedule, stages=[0])))
    0: F0.0 F0.1 R0.0 B0.0 R0.1 B0.1
    1: F1.0 B1.0 F1.1 B1.1
    """
    return [[step for action in actions for step in _with_repetition(action, stages)] for actions in schedule]


def _with_repetition(action: Action, stages: Collection[int] | Collection[Run] | None) -> list[Action]:
    if action.kind in (Kind.B, Kind.I) and _is_chosen(action, stages):
        return [action._replace(kind=Kind.R), action]
    return [action]


suggest_in_module(globals())
