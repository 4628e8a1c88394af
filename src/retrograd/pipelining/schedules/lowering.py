"""Lower computations to a program for every rank: insert sends and receives, check for gaps and deadlock."""

import math
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterator, Sequence
from functools import partial

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.pipelining.schedules.actions import Action, Kind, Message, Schedule
from retrograd.pipelining.schedules.stage_placement import Directions

__all__ = ["buffer_depth", "chain", "lower", "validate"]

Edges = Collection[tuple[int, int]]


def chain(stages: int) -> set[tuple[int, int]]:
    """Return the edges of a model whose stages each feed only the next.

    >>> sorted(chain(3))
    [(0, 1), (1, 2)]
    """
    return {(stage, stage + 1) for stage in range(stages - 1)}


def lower(schedule: Schedule, edges: Edges) -> list[list[Action]]:
    """Return the schedule with its sends and receives: the program that each rank runs.

    schedule: computations only, as from `make_schedule`; a stage belongs to the rank that computes it, or to two
     ranks, one for the even and one for the odd microbatches.
    edges: (from_stage, to_stage) of the stage graph, any acyclic graph: a skip connection goes directly from
    the stage that produces the value to the one that uses it, and its gradient directly back.

    A value is sent right after the computation that produced it, to the nearest stage first, and received right
    before the computation that uses it. Stages on one rank send each other nothing. Receiving as late as
    possible never delays a computation for a value that it does not need, but requires buffering by the transport:
    1F1B, where neighbours both send before they receive, needs room for one message per channel (one
    direction of one edge), and for (n + 1) // 2 if an edge skips to the n-th next stage; GPipe needs none.
    `buffer_depth(lowered)` returns the requirement of a schedule.

    Raises ValueError if the schedule has sends or receives already, if two ranks compute one stage, or
    if an edge names a stage that no rank computes.

    >>> from retrograd.pipelining.schedules import make_schedule
    >>> [str(action) for action in lower(make_schedule("gpipe", 2, 1), chain(2))[0]]
    ['F0.0', 'SEND_F0.0>1', 'RECV_B0.0<1', 'B0.0']
    """
    _check_not_lowered(schedule)
    graph = StageGraph.of_schedule(schedule, edges)
    return [[step for action in actions for step in graph.add_transfers(action)] for actions in schedule]


def is_lowered(schedule: Schedule) -> bool:
    """Return whether a schedule has sends, receives or reductions."""
    return any(action.peer is not None or action.kind.is_reduction for actions in schedule for action in actions)


def _check_not_lowered(schedule: Schedule) -> None:
    """Raise ValueError, with the position, if a schedule has sends, receives or reductions."""
    for rank, actions in enumerate(schedule):
        for position, action in enumerate(actions):
            if action.peer is not None or action.kind.is_reduction:
                raise ValueError(f"{_format_position(rank, position, action)}: this schedule is lowered already")


def validate(schedule: Schedule, edges: Edges, *, buffer: int | None = None) -> None:
    """Check that a lowered schedule computes everything once, in a possible order, and never deadlocks.

    Every stage runs every microbatch forward once and backward once (B, or I and W), or never backward
    (inference), and repeats its forward at most once, before the backward pass (R). Activations that are
    offloaded are fetched before the backward pass. Everything that an action needs
    comes before it on its rank; every send has its receive.
    buffer: how many messages a channel (one direction of one edge) holds before a send blocks;
    None: any number; 0: rendezvous, every send waits for its receive.

    Raises ValueError that names rank, position and action; for a deadlock, the cycle of waiting ranks.

    >>> from retrograd.pipelining.schedules import make_schedule
    >>> program = lower(make_schedule("1f1b", 2, 4), chain(2))
    >>> validate(program, chain(2), buffer=1)
    >>> validate(program, chain(2), buffer=0)
    Traceback (most recent call last):
        ...
    ValueError: deadlock with a buffer of 0 per channel:
      rank 0, position 3, SEND_F0.1>1 waits for rank 1 to reach RECV_F1.1<0
      rank 1, position 3, SEND_B1.0>0 waits for rank 0 to reach RECV_B0.0<1
    """
    graph = StageGraph.of_schedule(schedule, edges)
    # Each rank by itself first, because these errors name the action. The run at the end finds deadlocks between ranks.
    done = [_check_rank(rank, actions, graph) for rank, actions in enumerate(schedule)]
    micro_batches = sorted({a.micro_batch for actions in schedule for a in actions if not a.kind.is_reduction})
    _check_complete(set().union(*done), graph, micro_batches)
    _check_received(schedule)
    for _ in execution_order(schedule, buffer=buffer):
        pass


def buffer_depth(schedule: Schedule) -> int:
    """Return the smallest channel capacity with which a lowered schedule finishes.

    Raises ValueError for a schedule that deadlocks with any capacity.

    >>> from retrograd.pipelining.schedules import make_schedule
    >>> [buffer_depth(lower(make_schedule(name, 8, 8), chain(8))) for name in ("gpipe", "1f1b", "loopedbfs")]
    [0, 1, 2]
    """
    # Raises for a schedule that deadlocks with any capacity.
    deque(execution_order(schedule), maxlen=0)
    most = max((action.micro_batch + 1 for actions in schedule for action in actions), default=0)
    # A larger capacity never blocks a schedule that a smaller one lets run, so a binary search finds the smallest. A
    # channel carries at most one message per microbatch.
    return bisect_left(range(most), True, key=partial(_finishes, schedule))


def _finishes(schedule: Schedule, buffer: int) -> bool:
    try:
        deque(execution_order(schedule, buffer=buffer), maxlen=0)
    except ValueError:
        return False
    return True


def execution_order(schedule: Schedule, *, buffer: int | None = None) -> Iterator[tuple[int, Action]]:
    """Yield every (rank, action) of a lowered schedule, each after the actions that it waits for.

    Takes time linear in the number of actions. buffer: as in `validate`. Raises ValueError at a
    deadlock.

    >>> from retrograd.pipelining.schedules import make_schedule
    >>> [f"{rank} {action}" for rank, action in execution_order(make_schedule("gpipe", 2, 1))]
    ['0 F0.0', '0 B0.0', '1 F1.0', '1 B1.0']
    """
    if buffer is not None and buffer < 0:
        raise ValueError(f"buffer is {buffer}; a channel holds 0 or more messages, or any number (None)")
    positions, channels = [0] * len(schedule), _Channels(len(schedule), buffer)
    # A rank runs until it must wait. `can_run` records what it waits for, and the transfer that unblocks it makes it
    # runnable again. No rank is polled, so the time is linear in the number of actions.
    while channels.runnable:
        rank = channels.runnable.popleft()
        actions = schedule[rank]
        while positions[rank] < len(actions) and channels.can_run(rank, actions[positions[rank]]):
            yield rank, actions[positions[rank]]
            positions[rank] += 1
    if any(position < len(actions) for position, actions in zip(positions, schedule, strict=True)):
        raise ValueError(_describe_deadlock(schedule, positions, buffer))


class _Channels:
    """The messages in transit, and the ranks that wait to receive or send one."""

    def __init__(self, ranks: int, buffer: int | None) -> None:
        self.runnable = deque(range(ranks))
        self.capacity = math.inf if buffer is None else buffer
        # A channel is the direction, the source and the target of a message: its first three fields.
        self.in_transit: set[Message] = set()
        self.buffered: Counter[tuple] = Counter()
        # The rank that waits for each message, and the rank that waits for room in each channel.
        self.receivers: dict[Message, int] = {}
        self.senders: dict[tuple, int] = {}

    def can_run(self, rank: int, action: Action) -> bool:
        """Run the action if possible, else record its rank as waiting; wake the ranks that this unblocks."""
        if action.peer is None:
            return True
        return (self._send if action.kind.is_send else self._receive)(rank, action.message)

    def _send(self, rank: int, message: Message) -> bool:
        channel = message[:3]
        # A message whose receiver waits needs no buffer. With a capacity of 0 this is the only way to send.
        if self.buffered[channel] >= self.capacity and message not in self.receivers:
            self.senders[channel] = rank
            return False
        self.in_transit.add(message)
        self.buffered[channel] += 1
        self._wake(self.receivers, message)
        return True

    def _receive(self, rank: int, message: Message) -> bool:
        channel = message[:3]
        arrived = message in self.in_transit
        if arrived:
            self.in_transit.remove(message)
            self.buffered[channel] -= 1
        else:
            self.receivers[message] = rank
        self._wake(self.senders, channel)  # there is room now, or a receiver for this very message
        return arrived

    def _wake(self, waiting: dict, key: tuple) -> None:
        if key in waiting:
            self.runnable.append(waiting.pop(key))


# The kind of action that a stage runs before one of another kind, for the same microbatch.
_BEFORE = {
    Kind.B: Kind.F,
    Kind.I: Kind.F,
    Kind.R: Kind.F,
    Kind.OFFLOAD: Kind.F,
    Kind.FETCH: Kind.OFFLOAD,
    Kind.W: Kind.I,
}


class StageGraph:
    """The rank of each stage, in one direction or two, and the edges between stages."""

    def __init__(self, directions: Directions, edges: Edges) -> None:
        self.directions = directions
        self.edges = set(edges)
        self.sources: dict[int, list[int]] = defaultdict(list)
        self.targets: dict[int, list[int]] = defaultdict(list)
        for source, target in sorted(self.edges):
            self._check_edge(source, target)
            self.targets[source].append(target)
            self.sources[target].insert(0, source)  # nearest first in both

    @classmethod
    def of_schedule(cls, schedule: Schedule, edges: Edges) -> "StageGraph":
        """Return the graph of a schedule's stages. Raises ValueError if two ranks compute one stage."""
        return cls(directions_of(schedule), edges)

    def _check_edge(self, source: int, target: int) -> None:
        if source == target:
            raise ValueError(f"edge {source} -> {target} joins a stage to itself")
        for stage in (source, target):
            if stage not in self.directions.placements[0]:
                raise ValueError(f"edge {source} -> {target}: no rank computes stage {stage}")

    def remote(self, stage: int, others: list[int], micro_batch: int) -> list[int]:
        """Return those of the other stages that are on another rank for a microbatch."""
        rank = self.directions.rank
        return [other for other in others if rank(other, micro_batch) != rank(stage, micro_batch)]

    def inputs(self, action: Action) -> tuple[Kind, list[int]]:
        """Return the kind of receive, and the source stages, of a computation."""
        if action.kind not in (Kind.F, Kind.B, Kind.I):
            return Kind.RECV_B, []  # I has stored all inputs of W, and F those of the others
        return (
            (Kind.RECV_F, self.sources[action.stage])
            if action.kind is Kind.F
            else (Kind.RECV_B, self.targets[action.stage])
        )

    def outputs(self, action: Action) -> tuple[Kind, list[int]]:
        """Return the kind of send, and the target stages, of a computation."""
        if action.kind not in (Kind.F, Kind.B, Kind.I):
            return Kind.SEND_B, []
        return (
            (Kind.SEND_F, self.targets[action.stage])
            if action.kind is Kind.F
            else (Kind.SEND_B, self.sources[action.stage])
        )

    def add_transfers(self, action: Action) -> list[Action]:
        """Return a computation with the receives before it and the sends after it."""
        _, stage, micro_batch, _ = action
        receive, sources = self.inputs(action)
        send, targets = self.outputs(action)
        return [
            *(Action(receive, stage, micro_batch, peer) for peer in self.remote(stage, sources, micro_batch)),
            action,
            *(Action(send, stage, micro_batch, peer) for peer in self.remote(stage, targets, micro_batch)),
        ]

    def dependencies(self, action: Action) -> list[Action]:
        """Return the actions that must come before this one on its rank; B means I as well."""
        kind, stage, micro_batch, _ = action
        if kind.is_receive:
            return []
        if kind.is_send:
            return [Action(Kind(kind[-1]), stage, micro_batch)]
        if kind.is_reduction:
            return [Action(Kind.REDUCE_GRAD, stage, 0)] if kind is Kind.WAIT_GRAD else []
        # The forward saves the values for B and I; I saves the values for W.
        own = [Action(_BEFORE[kind], stage, micro_batch)] if kind in _BEFORE else []
        receive, sources = self.inputs(action)
        return own + [self._delivery(receive, stage, micro_batch, source) for source in sources]

    def _delivery(self, receive: Kind, stage: int, micro_batch: int, source: int) -> Action:
        """Return the action that delivers a value: its receive, or its computation if on the same rank."""
        if self.remote(stage, [source], micro_batch):
            return Action(receive, stage, micro_batch, source)
        return Action(Kind(receive[-1]), source, micro_batch)


def _iter_positions(schedule: Schedule) -> Iterator[tuple[int, int, Action]]:
    for rank, actions in enumerate(schedule):
        for position, action in enumerate(actions):
            yield rank, position, action


def _format_position(rank: int, position: int, action: Action) -> str:
    return f"rank {rank}, position {position}, {action}"


def directions_of(schedule: Schedule) -> Directions:
    """Return the rank that computes each stage; two of them if they differ for even and odd microbatches.

    Raises ValueError if several ranks compute a stage for other reasons.

    >>> from retrograd.pipelining.schedules import make_schedule
    >>> one, two = (directions_of(make_schedule(name, 2, 4)) for name in ("1f1b", "chimera"))
    >>> one.ranks(0), two.ranks(0), two.ranks(1)
    ([0], [0, 1], [1, 0])
    """
    even, odd = placements = [dict[int, int](), dict[int, int]()]
    for rank, actions in enumerate(schedule):
        for stage, direction in {(a.stage, a.micro_batch % 2) for a in actions if a.peer is None}:
            if placements[direction].setdefault(stage, rank) != rank:
                position, action = next(
                    (index, action)
                    for index, action in enumerate(actions)
                    if (action.stage, action.micro_batch % 2) == (stage, direction) and action.peer is None
                )
                other = placements[direction][stage]
                raise ValueError(f"{_format_position(rank, position, action)}: rank {other} computes stage {stage} too")
    if all(even.get(stage, rank) == rank for stage, rank in odd.items()):
        return Directions([even | odd])
    return Directions([odd | even, even | odd])  # a stage without even microbatches is where the odd ones are


def _as_backward(action: Action) -> Action:
    """Replace I by B, since both compute the gradients of the stage's inputs."""
    return action._replace(kind=Kind.B) if action.kind is Kind.I else action


def _check_rank(rank: int, actions: Sequence[Action], graph: StageGraph) -> set[Action]:
    """Check one rank's order, and return its actions, each I also as B."""
    done: set[Action] = set()
    for position, action in enumerate(actions):
        # An action that needs B may also run after I, because both compute the input gradients.
        backward = _as_backward(action)
        wrong = "this has been done before" if backward in done else _wrong(rank, action, graph, done)
        if wrong:
            raise ValueError(f"{_format_position(rank, position, action)}: {wrong}")
        done.add(action)
        done.add(backward)
    return done


def _wrong(rank: int, action: Action, graph: StageGraph, done: set[Action]) -> str:
    """Return what is wrong with an action of a rank that has done others; "" if it is right."""
    wrong = _wrong_activations(action, done) if action.peer is None else _wrong_transfer(rank, action, graph)
    if wrong:
        return wrong
    if action.kind.is_compute and (reduction := Action(Kind.REDUCE_GRAD, action.stage, 0)) in done:
        return f"{reduction} before it sums gradients that are not final"
    for dependency in graph.dependencies(action):
        if dependency not in done:
            return f"needs {dependency} before it on this rank"
    return ""


def _wrong_activations(action: Action, done: set[Action]) -> str:
    """Return why a pass has no activations that it could use or move; "" if it has, or needs none."""
    if action.kind in (Kind.OFFLOAD, Kind.R):
        if action._replace(kind=Kind.B) in done:
            return "the backward pass that needs this has been done before"
        if action._replace(kind=Kind.R if action.kind is Kind.OFFLOAD else Kind.OFFLOAD) in done:
            return "a forward pass that is repeated has no activations to offload"
    elif action.kind in (Kind.B, Kind.I) and action._replace(kind=Kind.OFFLOAD) in done:
        fetch = action._replace(kind=Kind.FETCH)
        return "" if fetch in done else f"needs {fetch} before it on this rank"
    return ""


def _wrong_transfer(rank: int, action: Action, graph: StageGraph) -> str:
    """Return why a send or receive is not of this rank and between two ranks; "" if it is."""
    _, source, target, _ = action.message
    ends = (source, target) if action.kind[-1] == "F" else (target, source)
    if ends not in graph.edges:
        return f"the stage graph has no edge {ends[0]} -> {ends[1]}"
    home = graph.directions.rank(action.stage, action.micro_batch)
    if not graph.remote(source, [target], action.micro_batch):
        return f"stages {source} and {target} are both on rank {home}"
    return "" if home == rank else f"stage {action.stage} is on rank {home}"


def _check_complete(done: set[Action], graph: StageGraph, micro_batches: list[int]) -> None:
    training = any(action.kind in (Kind.B, Kind.W) for action in done)
    reductions = [
        kind for kind in (Kind.REDUCE_GRAD, Kind.WAIT_GRAD) if any(action.kind.is_reduction for action in done)
    ]
    for stage in sorted(graph.directions.placements[0]):
        for kind in reductions:
            if Action(kind, stage, 0) not in done:
                raise ValueError(f"rank {graph.directions.rank(stage, 0)} never runs {Action(kind, stage, 0)}")
        for micro_batch in micro_batches:
            rank = graph.directions.rank(stage, micro_batch)
            kinds = [Kind.F, Kind.B] if training else [Kind.F]
            if Action(Kind.I, stage, micro_batch) in done:
                kinds.append(Kind.W)
            for kind in kinds:
                if Action(kind, stage, micro_batch) not in done:
                    raise ValueError(f"rank {rank} never runs {Action(kind, stage, micro_batch)}")


def _check_received(schedule: Schedule) -> None:
    """Check that every receive has its send; a missing receive is found where the value is used."""
    sent = {action.message for _, _, action in _iter_positions(schedule) if action.kind.is_send}
    for rank, position, action in _iter_positions(schedule):
        if action.kind.is_receive and action.message not in sent:
            raise ValueError(f"{_format_position(rank, position, action)}: no rank sends this")


def _describe_deadlock(schedule: Schedule, positions: list[int], buffer: int | None) -> str:
    """Return the cycle of waiting ranks as text, followed from a blocked rank."""
    placements = directions_of(schedule).placements
    blocked = {rank: schedule[rank][at] for rank, at in enumerate(positions) if at < len(schedule[rank])}
    awaited_rank = {
        rank: placements[action.micro_batch % len(placements)].get(_matching_action(action).stage)
        for rank, action in blocked.items()
    }
    visited: list[int] = []
    rank: int | None = min(blocked)
    # A blocked rank waits for one other rank. Following these edges either repeats a rank, which closes a cycle, or
    # ends at a rank that has finished.
    while rank in blocked and rank not in visited:
        visited.append(rank)
        rank = awaited_rank[rank]
    cycle = visited[visited.index(rank) :] if rank in visited else visited
    suffix = "" if buffer is None else f" with a buffer of {buffer} per channel"
    lines = (
        f"  {_format_position(rank, positions[rank], blocked[rank])} waits for rank {awaited_rank[rank]} to reach "
        f"{_matching_action(blocked[rank])}"
        for rank in cycle
    )
    return "\n".join([f"deadlock{suffix}:", *lines])


def _matching_action(action: Action) -> Action:
    assert action.peer is not None, f"{action} has no other end"
    kind = Kind(("RECV_" if action.kind.is_send else "SEND_") + action.kind[-1])
    return Action(kind, action.peer, action.micro_batch, action.stage)


suggest_in_module(globals())
