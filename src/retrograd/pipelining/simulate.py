"""What a schedule costs before it runs: times and memory, from the program that the ranks would run."""

import math
from collections.abc import Callable, Sequence

from retrograd.pipelining.actions import Action, Kind, Message, Schedule
from retrograd.pipelining.lowering import Edges, execution_order, lower
from retrograd.pipelining.timeline import Event, Timeline


def simulate(schedule: Schedule, edges: Edges, cost: Callable[[Action], float]) -> Timeline:
    """When each rank would do what, if every action took as long as `cost` says.

    schedule: as `lower` returns it, or computations only, which are then lowered along `edges`.
    cost: seconds of an action. A computation keeps its rank busy that long. A send takes its rank no time:
    the message arrives so much later while the rank goes on. A receive lasts until its message is there; it
    is not asked for a cost. Channels hold any number of messages.

    Takes time linear in the number of actions. Raises ValueError for a cost that is negative or not finite,
    and for a schedule that cannot run.

    >>> from retrograd.pipelining.lowering import chain
    >>> from retrograd.pipelining.schedules import make_schedule
    >>> cost = lambda action: 1.0 if action.kind.is_compute else 0.0
    >>> simulate(make_schedule("1f1b", stages=2, micro_batches=3), chain(2), cost).bubble()
    0.25
    """
    lowered = any(not action.kind.is_compute for actions in schedule for action in actions)
    program = schedule if lowered else lower(schedule, edges)
    clocks = _Clocks(len(program), cost)
    return Timeline([clocks.run(rank, action) for rank, action in execution_order(program)], len(program))


def peak_activations(actions: Sequence[Action]) -> int:
    """The most micro-batches whose activations one rank keeps at a time, counted once per stage.

    F makes them; B or W, which needs them last, frees them.

    >>> from retrograd.pipelining.schedules import make_schedule
    >>> [peak_activations(actions) for actions in make_schedule("1f1b", stages=3, micro_batches=8)]
    [3, 2, 1]
    """
    change = {Kind.F: 1, Kind.B: -1, Kind.W: -1}
    alive = peak = 0
    for action in actions:
        alive += change.get(action.kind, 0)
        peak = max(peak, alive)
    return peak


class _Clocks:
    """The time on every rank, and when each message arrives."""

    def __init__(self, ranks: int, cost: Callable[[Action], float]) -> None:
        self.now = [0.0] * ranks
        self.arrivals: dict[Message, float] = {}
        self.cost = cost

    def run(self, rank: int, action: Action) -> Event:
        start = self.now[rank]
        if action.kind.is_receive:
            self.now[rank] = max(start, self.arrivals.pop(action.message))
        elif action.kind.is_send:
            self.arrivals[action.message] = start + self._seconds(action)
        else:
            self.now[rank] = start + self._seconds(action)
        return Event(rank, action, start, self.now[rank])

    def _seconds(self, action: Action) -> float:
        seconds = self.cost(action)
        if not 0 <= seconds < math.inf:
            raise ValueError(f"the cost of {action} is {seconds!r}; it must be finite, in seconds, at least 0")
        return seconds
