"""Orders of actions with PyTorch's names: as a table, checked, and with the actions that its runtime adds."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest

from retrograd.pipelining.schedules.action_names import ComputationType as Type
from retrograd.pipelining.schedules.action_names import NamedAction

Row = Sequence[NamedAction | None]
BACKWARD = (Type.FULL_BACKWARD, Type.BACKWARD_INPUT)
REQUIRED = {  # what must come before a computation of the same stage and microbatch, and PyTorch's words for both
    Type.FULL_BACKWARD: (Type.FORWARD, "Full Backward", "Forward"),
    Type.BACKWARD_INPUT: (Type.FORWARD, "Backward Input", "Forward"),
    Type.BACKWARD_WEIGHT: (Type.BACKWARD_INPUT, "Backward Weight", "Backward Input"),
}


def format_pipeline_order(pipeline_order: Mapping[int, Row], error_step_number: int | None = None) -> str:
    """Return an order as a table, a column for each rank and a line for each step; one step may be marked as wrong.

    >>> read = NamedAction.from_str
    >>> print(format_pipeline_order({0: [read("0F0"), read("0B0")], 1: [None, read("1F0")]}, 1))
            Rank 0 Rank 1
    Step 0: 0F0
    Step 1: 0B0    1F0    <-- ERROR HERE
    <BLANKLINE>
    """
    steps = [["" if action is None else str(action) for action in row] for row in pipeline_order.values()]
    count = max(map(len, steps), default=0)
    labels = [f"Step {number:0{len(str(count - 1))}}" for number in range(count)]
    heads = [f"Rank {number}" for number in range(len(steps))]
    least = len(labels[0]) if labels else 0
    widths = [max(least, len(head), *map(len, row), 0) for head, row in zip(heads, steps, strict=True)]
    lines = [" " * (least + 2) + _aligned(heads, widths)]
    for number, (label, cells) in enumerate(zip(labels, zip_longest(*steps, fillvalue=""), strict=True)):
        lines.append(f"{label}: {_aligned(cells, widths)}{' <-- ERROR HERE' if number == error_step_number else ''}")
    return "\n".join(lines) + "\n"


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))


def validate_schedule(
    actions: Mapping[int, Row], pp_group_size: int, num_stages: int, num_microbatches: int
) -> dict[int, int]:
    """Return the rank of each stage, after checking that every stage runs each microbatch forward and backward.

    Raises AssertionError for another number of ranks, a computation before the one that it needs, a stage on two ranks,
    and wrong numbers of computations.  `lowering.validate` checks orders with sends and receives, for deadlocks too.

    >>> read = NamedAction.from_str
    >>> validate_schedule({0: [read("0F0"), read("0I0"), read("0W0")]}, 1, 1, 1)
    {0: 0}
    """
    if len(actions) != pp_group_size:
        raise AssertionError(
            f"Schedule has incorrect number of ranks - expected {pp_group_size}, actual {len(actions)}"
        )
    done: set[tuple] = set()
    rank_of: dict[int, int] = {}
    for rank in range(pp_group_size):
        if rank not in actions:
            raise AssertionError(f"Schedule is missing actions for rank {rank}")
        for step, action in _computations(actions[rank]):
            problem = _problem(action, rank, step, done, rank_of, num_stages)
            if problem:
                table = format_pipeline_order(actions, error_step_number=step)
                raise AssertionError(f"{problem}\n\nFull pipeline schedule:\n{table}")
            done.add((action.computation_type, action.stage_index, action.microbatch_index))
    for stage in range(num_stages):
        _check_counts(stage, done, num_microbatches)
    return rank_of


def _computations(row: Row) -> Iterator[tuple[int, NamedAction]]:
    """Yield the computations with their steps; of pairs that overlap, each part."""
    for step, action in enumerate(row):
        if action is not None:
            for part in action.sub_actions or (action,):
                if part.computation_type is Type.FORWARD or part.computation_type in REQUIRED:
                    yield step, part


def _problem(
    action: NamedAction, rank: int, step: int, done: set[tuple], rank_of: dict[int, int], num_stages: int
) -> str | None:
    """Return what is wrong with a computation after those that are done, and note its stage's rank."""
    stage, kind, microbatch, _ = action
    where = f"Rank {rank}, step {step}"
    if not 0 <= stage < num_stages:
        return f"{where}: Stage {stage} is none of the {num_stages} stages"
    if kind in REQUIRED:
        needed, name, other = REQUIRED[kind]
        if (needed, stage, microbatch) not in done:
            return f"{where}: Running {name} for stage {stage}, microbatch {microbatch} without first running {other}"
    if rank_of.setdefault(stage, rank) != rank:
        return f"{where}: Stage {stage} is assigned to both rank {rank} and rank {rank_of[stage]}"
    return None


def _check_counts(stage: int, done: set[tuple], microbatches: int) -> None:
    """Raise AssertionError unless a stage has a forward and a backward pass for each microbatch."""
    counts = Counter(kind for kind, index, _ in done if index == stage)
    forward = counts[Type.FORWARD]
    if forward != microbatches:
        raise AssertionError(
            f"Got {forward} _ComputationType.FORWARD microbatches for stage {stage}, expected {microbatches}"
        )
    full, half, weights = (counts[kind] for kind in (*BACKWARD, Type.BACKWARD_WEIGHT))
    if full + half != microbatches:
        raise AssertionError(
            f"Invalid backward microbatches for stage {stage}: expected {microbatches} total backwards, "
            f"but got B={full}, I={half}, W={weights}"
        )
    if half != weights:
        raise AssertionError(
            f"Invalid backward microbatches for stage {stage}: I and W must have equal counts, "
            f"but got I={half}, W={weights}"
        )


# ------------------------------------------------------------------------------------------------ added actions


def add_unshard_reshard(compute_actions: Row, max_active_stages: int = 3) -> list[NamedAction]:
    """Return a rank's computations with those that gather a stage's parameters before its use, and free them after it.

    At most `max_active_stages` stages, those of the next computations, have their parameters at a time.

    >>> read = NamedAction.from_str
    >>> add_unshard_reshard([read("0F0"), read("1F0"), read("1B0"), read("0B0")], 1)
    [0UNSHARD, 0F0, 0RESHARD, 1UNSHARD, 1F0, 1B0, 1RESHARD, 0UNSHARD, 0B0, 0RESHARD]
    """
    rows = [action for action in compute_actions if action is not None]
    active: list[int] = []
    found: list[NamedAction] = []
    for position, action in enumerate(rows):
        wanted = _next_stages(rows[position:], max_active_stages)
        unused = [stage for stage in active if stage not in wanted]
        missing = [stage for stage in wanted if stage not in active]
        found += [NamedAction(stage, Type.RESHARD) for stage in unused]
        found += [NamedAction(stage, Type.UNSHARD) for stage in missing]
        found.append(action)
        active = [stage for stage in active if stage in wanted] + missing
    return [*found, *[NamedAction(stage, Type.RESHARD) for stage in active]]


def _next_stages(actions: Sequence[NamedAction], count: int) -> list[int]:
    """Return the stages of the next computations, at most `count`, but those of the first one in any case."""
    found: dict[int, None] = {}
    for action in actions:
        for part in action.sub_actions or (action,):
            if part.stage_index not in found:
                found[part.stage_index] = None
                if len(found) >= count:
                    return list(found)
    return list(found)


def add_reduce_grad(actions: Row, n_microbatches: int) -> list[NamedAction | None]:
    """Return a rank's actions with a sum of a stage's gradients over replicas, after its last backward pass.

    >>> read = NamedAction.from_str
    >>> add_reduce_grad([read("0F0"), read("0B0")], 1)
    [0F0, 0B0, 0REDUCE_GRAD]
    """
    passes: Counter[int] = Counter()
    found: list[NamedAction | None] = []
    for action in actions:
        if action is None:
            continue
        found.append(action)
        for part in action.sub_actions or (action,):
            if part.computation_type in (Type.FULL_BACKWARD, Type.BACKWARD_WEIGHT):
                passes[part.stage_index] += 1
                if passes[part.stage_index] == n_microbatches:
                    found.append(NamedAction(part.stage_index, Type.REDUCE_GRAD))
    return found


def merge_bw(compute_actions: Row) -> list[NamedAction]:
    """Return a rank's computations with the two halves of a backward pass as one, where they follow each other.

    >>> read = NamedAction.from_str
    >>> merge_bw([read("0F0"), read("0I0"), read("0W0"), read("0I1")])
    [0F0, 0B0, 0I1]
    """
    found: list[NamedAction] = []
    for action in compute_actions:
        if action is None:
            continue
        stage, kind, microbatch, _ = action
        first = NamedAction(stage, Type.BACKWARD_INPUT, microbatch)
        if kind is Type.BACKWARD_WEIGHT and found and found[-1] == first:
            found[-1] = NamedAction(stage, Type.FULL_BACKWARD, microbatch)
        else:
            found.append(action)
    return found


def check_format(format: str) -> None:
    """Raise ValueError for a format of files that PyTorch's schedules do not have."""
    if format not in ("compute_only", "compute_comms"):
        raise ValueError(f"format must be 'compute_only' or 'compute_comms', got {format!r}")


def overlap_pairs(rows: Sequence[Row]) -> list[list[NamedAction | None]]:
    """Return the computations under DualPipeV with each forward and the whole backward after it as one action.

    Only the last rank, whose first backward follows its own forward, begins with one that stays by itself.

    >>> read = NamedAction.from_str
    >>> overlap_pairs([[read("0F1"), read("3B0")], [read("1F1"), read("2B0"), read("2F1"), read("1B0")]])
    [[(0F1;3B0)OVERLAP_F_B], [1F1, 2B0, (2F1;1B0)OVERLAP_F_B]]
    """
    found: list[list[NamedAction | None]] = []
    for rank, row in enumerate(rows):
        alone = rank == len(rows) - 1
        merged: list[NamedAction | None] = []
        for action in row:
            before = merged[-1] if merged else None
            pair = before is not None and before.computation_type is Type.FORWARD
            if action is None or before is None or not pair or action.computation_type is not Type.FULL_BACKWARD:
                merged.append(action)
            elif alone:
                merged.append(action)
                alone = False
            else:
                merged[-1] = NamedAction(-1, Type.OVERLAP_F_B, None, (before, action))
        found.append(merged)
    return found


def rows_to_write(
    format: str, order: Mapping[int, Row], rank_of: Mapping[int, int], num_stages: int, n_microbatches: int
) -> list[Row]:
    """Return the rows of a file: of "compute_only" the order, of "compute_comms" with all that PyTorch's runtime adds.

    Raises ValueError for another format.

    >>> read = NamedAction.from_str
    >>> rows_to_write("compute_comms", {0: [read("0F0"), read("0B0")]}, {0: 0}, 1, 1)
    [[0UNSHARD, 0F0, 0B0, 0REDUCE_GRAD, 0RESHARD]]
    """
    check_format(format)
    if format == "compute_only":
        return list(order.values())
    rows = {rank: add_reduce_grad(add_unshard_reshard(row), n_microbatches) for rank, row in order.items()}
    return list(add_send_recv(rows, rank_of.__getitem__, num_stages).values())


def add_send_recv(
    compute_actions: Mapping[int, Row], stage_to_rank: Callable[[int], int], num_stages: int
) -> dict[int, list[NamedAction]]:
    """Return the computations of all ranks with the transfers between neighbouring stages on different ranks.

    The ranks take turns; a send is listed right after its computation, and its receive at the same moment on the other
    rank, so that all ranks list transfers in one order.  `lowering.lower` receives as late as possible.

    Raises AssertionError for an order in which some computation never gets its inputs.

    >>> read = NamedAction.from_str
    >>> order = {0: [read("0F0"), read("0B0")], 1: [read("1F0"), read("1B0")]}
    >>> add_send_recv(order, lambda stage: stage, 2)[0]
    [0F0, 0SEND_F0, 0RECV_B0, 0B0]
    """
    return _Transfers(compute_actions, stage_to_rank, num_stages).run()


class _Transfers:
    """The listed actions of all ranks, and the computations that are still to be listed."""

    def __init__(self, actions: Mapping[int, Row], stage_to_rank: Callable[[int], int], num_stages: int) -> None:
        self.rest = {rank: list(row) for rank, row in actions.items()}
        self.listed: dict[int, list[NamedAction]] = {rank: [] for rank in actions}
        self.known: dict[int, set[NamedAction]] = {rank: set() for rank in actions}
        self.stage_to_rank, self.num_stages = stage_to_rank, num_stages

    def run(self) -> dict[int, list[NamedAction]]:
        """List one computation of each rank that has its inputs, until none is left; an idle slot takes a turn."""
        while any(self.rest.values()):
            ready = 0
            for rank in sorted(self.rest):
                if self.rest[rank] and self._has_inputs(rank, self.rest[rank][0]):
                    self._list(rank, self.rest[rank].pop(0))
                    ready += 1
            if not ready:
                raise AssertionError("Malformed compute schedule, can't schedule sends/recvs")
        return self.listed

    def _has_inputs(self, rank: int, action: NamedAction | None) -> bool:
        return action is None or all(self._has_input(rank, part) for part in action.sub_actions or (action,))

    def _has_input(self, rank: int, part: NamedAction) -> bool:
        """Return whether the value that a computation needs from another stage was received, or computed here."""
        stage, kind, microbatch, _ = part
        known = self.known[rank]
        if kind is Type.FORWARD:
            received, sources = Type.RECV_F, [NamedAction(stage - 1, kind, microbatch)]
            needs_nothing = stage == 0
        elif kind in BACKWARD:
            received, sources = Type.RECV_B, [NamedAction(stage + 1, other, microbatch) for other in BACKWARD]
            needs_nothing = stage == self.num_stages - 1
        else:
            return True
        return needs_nothing or NamedAction(stage, received, microbatch) in known or any(s in known for s in sources)

    def _list(self, rank: int, action: NamedAction | None) -> None:
        if action is None:
            return
        self.listed[rank].append(action)
        for part in action.sub_actions or (action,):
            self.known[rank].add(part)
            for owner, transfer in self._transfers(part):
                self.listed[owner].append(transfer)
                self.known[owner].add(transfer)

    def _transfers(self, part: NamedAction) -> list[tuple[int, NamedAction]]:
        """Return the send of a computation's result and its receive, each with its rank; nothing within one rank."""
        stage, kind, microbatch, _ = part
        if kind is not Type.FORWARD and kind not in BACKWARD:
            return []
        forward = kind is Type.FORWARD
        other = stage + 1 if forward else stage - 1
        if not 0 <= other < self.num_stages or self.stage_to_rank(other) == self.stage_to_rank(stage):
            return []
        send, receive = (Type.SEND_F, Type.RECV_F) if forward else (Type.SEND_B, Type.RECV_B)
        return [
            (self.stage_to_rank(stage), NamedAction(stage, send, microbatch)),
            (self.stage_to_rank(other), NamedAction(other, receive, microbatch)),
        ]
