"""Split operators into contiguous stages that minimize the slowest stage under a memory limit."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from retrograd.pipelining.planning.operator_cost import Operator
from retrograd.pipelining.schedules.actions import Action
from retrograd.pipelining.schedules.activations import activation_changes
from retrograd.pipelining.split.partition import minimize_largest

Limits = Sequence[float]  # per stage, the bytes that it may use


class Memory:
    """The memory of stages: parameters count `copies` times, saved tensors once per microbatch in flight.

    copies: counts the parameters, their gradients, and the optimizer state.
    """

    def __init__(self, operators: Sequence[Operator], copies: float) -> None:
        self.operators = operators
        self.copies = copies

    def fixed(self, start: int, end: int) -> float:
        """Return the bytes for parameters, gradients and optimizer state of operators start to end, inclusive."""
        return self.copies * sum(self._union("parameters", start, end).values())

    def saved(self, start: int, end: int) -> int:
        """Return the bytes that these operators save for the backward pass of one microbatch."""
        return sum(self._union("saved", start, end).values())

    def _union(self, what: str, start: int, end: int) -> dict[int, int]:
        return {key: size for op in self.operators[start : end + 1] for key, size in getattr(op, what).items()}

    def earliest(self, in_flight: int, limit: float) -> list[int]:
        """Return for each last operator the first one of a stage within the limit, or the one after the last if
        none."""
        window = _Window(self.copies, in_flight)
        start, found = 0, []
        for operator in self.operators:
            window.add(operator)
            while window.bytes > limit:
                window.remove(self.operators[start])
                start += 1
            found.append(start)
        return found

    def smallest_limit(self, in_flight: Sequence[int]) -> int:
        """Return the smallest bytes per stage for which a split exists; `in_flight` gives microbatches per stage."""
        least, most = 0, int(self.fixed(0, len(self.operators) - 1) + 1)
        most += max(in_flight) * self.saved(0, len(self.operators) - 1)
        while least < most:
            middle = (least + most) // 2
            if self._is_feasible(in_flight, middle):
                most = middle
            else:
                least = middle + 1
        return least

    def _is_feasible(self, in_flight: Sequence[int], limit: float) -> bool:
        """Return whether some split fits, found by extending the possible ends of stages one by one."""
        earliest = {count_in_flight: self.earliest(count_in_flight, limit) for count_in_flight in set(in_flight)}
        starts = {0}
        for count_in_flight in in_flight:
            ends, latest = set(), -1
            for end, first in enumerate(earliest[count_in_flight]):
                latest = end if end in starts else latest  # the shortest stage that ends here
                if latest >= first:
                    ends.add(end + 1)
            starts = ends
        return len(self.operators) in starts


class _Window:
    """The memory of a range of operators, which grows at one end and shrinks at the other."""

    def __init__(self, copies: float, in_flight: int) -> None:
        self.factors = {"parameters": copies, "saved": float(in_flight)}
        self.users: Counter[tuple[str, int]] = Counter()
        self.bytes = 0.0

    def add(self, operator: Operator) -> None:
        for key, size in self._bytes(operator).items():
            self.bytes += size * (not self.users[key])
            self.users[key] += 1

    def remove(self, operator: Operator) -> None:
        for key, size in self._bytes(operator).items():
            self.users[key] -= 1
            self.bytes -= size * (not self.users[key])

    def _bytes(self, operator: Operator) -> Mapping[tuple[str, int], float]:
        return {
            (what, key): factor * size
            for what, factor in self.factors.items()
            for key, size in getattr(operator, what).items()
        }


def split(
    operators: Sequence[Operator],
    in_flight: Sequence[int],
    message: Callable[[float], float],
    copies: float = 4.0,
    limit: float | None = None,
) -> list[int]:
    """Return the last operator of each stage, so that the slowest stage is as fast as possible.

    in_flight: per stage, the number of microbatches whose values it holds at a time.
    message: maps a number of bytes to the seconds of a message; values go one way and their gradients the other, so
    each stage at a cut counts one message.
    copies: how often the bytes of a parameter count, see `Memory`.
    limit: bytes that a stage may use.

    Exact, by dynamic programming.  Raises ValueError for fewer operators than stages, and if nothing
    fits, with the smallest sufficient limit.

    >>> layer = Operator(0.5, 0.5, {}, {}, 8)
    >>> split([layer] * 6, [1, 1, 1], lambda size: 0.0)
    [1, 3, 5]
    """
    count = len(operators)
    if not 1 <= len(in_flight) <= count:
        raise ValueError(f"plan: a model of {count} operators can't make {len(in_flight)} stages")
    costs = [operator.forward + operator.backward for operator in operators]
    cuts = [message(operator.sent_bytes) for operator in operators]
    earliest = None
    if limit is not None:
        memory = Memory(operators, copies)
        known = {count_in_flight: memory.earliest(count_in_flight, limit) for count_in_flight in set(in_flight)}
        earliest = [known[count_in_flight] for count_in_flight in in_flight]
    try:
        return minimize_largest(costs, cuts, len(in_flight), earliest)
    except ValueError:
        least = Memory(operators, copies).smallest_limit(in_flight)
        raise NoFeasibleSplit(least) from None


class NoFeasibleSplit(ValueError):  # noqa: N818 (what it says)
    """No split is within the limit; `least` is the smallest sufficient one, in bytes per stage."""

    def __init__(self, least: int) -> None:
        super().__init__(f"plan: no split fits; the smallest limit that would do is {least} bytes per stage")
        self.least = least


def in_flight(actions: Sequence[Action]) -> dict[int, int]:
    """Return per stage of a rank the most microbatches between forward and the end of backward.

    >>> from retrograd.pipelining.schedules import make_schedule
    >>> [in_flight(actions) for actions in make_schedule("1f1b", 2, 4)]
    [{0: 2}, {1: 1}]
    """
    count_in_flight: Counter[int] = Counter()
    most: dict[int, int] = {}
    for action, change in zip(actions, activation_changes(actions), strict=True):
        count_in_flight[action.stage] += change
        most[action.stage] = max(most.get(action.stage, 0), count_in_flight[action.stage])
    return most
