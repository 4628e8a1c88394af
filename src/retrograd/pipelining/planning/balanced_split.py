"""Contiguous stages with the shortest slowest one, in so much memory per rank."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from retrograd.pipelining.planning.operator_cost import Operator
from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.split.partition import smallest_largest

Limits = Sequence[float]  # per stage, the bytes that it may take


class Memory:
    """The bytes of stages: parameters `copies` times, saved values once per micro-batch in flight.

    copies: the parameters themselves, their gradients, and what the optimizer keeps.
    """

    def __init__(self, operators: Sequence[Operator], copies: float) -> None:
        self.operators = operators
        self.copies = copies

    def fixed(self, start: int, end: int) -> float:
        """The bytes of the parameters of operators start to end, those included, with gradients and optimizer."""
        return self.copies * sum(self._union("parameters", start, end).values())

    def saved(self, start: int, end: int) -> int:
        """The bytes that these operators keep for the backward of one micro-batch."""
        return sum(self._union("saved", start, end).values())

    def _union(self, what: str, start: int, end: int) -> dict[int, int]:
        return {key: size for op in self.operators[start : end + 1] for key, size in getattr(op, what).items()}

    def earliest(self, in_flight: int, limit: float) -> list[int]:
        """Per last operator, the first with which a stage keeps within the limit; the one after the last: none."""
        window = _Window(self.copies, in_flight)
        start, found = 0, []
        for operator in self.operators:
            window.add(operator)
            while window.bytes > limit:
                window.drop(self.operators[start])
                start += 1
            found.append(start)
        return found

    def smallest_limit(self, in_flight: Sequence[int]) -> int:
        """The least bytes per stage that some split into stages keeps to, each with so many micro-batches in flight."""
        least, most = 0, int(self.fixed(0, len(self.operators) - 1) + 1)
        most += max(in_flight) * self.saved(0, len(self.operators) - 1)
        while least < most:
            middle = (least + most) // 2
            if self._some_split(in_flight, middle):
                most = middle
            else:
                least = middle + 1
        return least

    def _some_split(self, in_flight: Sequence[int], limit: float) -> bool:
        """Whether stages fit, found stage by stage from where the one before may end."""
        earliest = {held: self.earliest(held, limit) for held in set(in_flight)}
        starts = {0}
        for held in in_flight:
            ends, latest = set(), -1
            for end, first in enumerate(earliest[held]):
                latest = end if end in starts else latest  # the shortest stage that ends here
                if latest >= first:
                    ends.add(end + 1)
            starts = ends
        return len(self.operators) in starts


class _Window:
    """The bytes of a run of operators, as it grows at one end and shrinks at the other."""

    def __init__(self, copies: float, in_flight: int) -> None:
        self.factors = {"parameters": copies, "saved": float(in_flight)}
        self.users: Counter[tuple[str, int]] = Counter()
        self.bytes = 0.0

    def add(self, operator: Operator) -> None:
        for key, size in self._holds(operator).items():
            self.bytes += size * (not self.users[key])
            self.users[key] += 1

    def drop(self, operator: Operator) -> None:
        for key, size in self._holds(operator).items():
            self.users[key] -= 1
            self.bytes -= size * (not self.users[key])

    def _holds(self, operator: Operator) -> Mapping[tuple[str, int], float]:
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
    """The last operator of each stage, such that the slowest stage is as quick as can be.

    in_flight: per stage, the micro-batches whose values it holds at a time.
    message: seconds of a message of so many bytes; values go one way, gradients of theirs the other, so each of the
        stages at a cut counts one.
    copies: how often the bytes of a parameter count, see `Memory`.
    limit: bytes that a stage may take.

    Exact, by dynamic programming.  Raises ValueError where there are fewer operators than stages, and where nothing
    fits, with the smallest limit that would do.

    >>> layer = Operator(0.5, 0.5, {}, {}, 8)
    >>> split([layer] * 6, [1, 1, 1], lambda size: 0.0)
    [1, 3, 5]
    """
    count = len(operators)
    if not 1 <= len(in_flight) <= count:
        raise ValueError(f"plan: a model of {count} operators can't make {len(in_flight)} stages")
    costs = [operator.forward + operator.backward for operator in operators]
    cuts = [message(operator.carried) for operator in operators]
    earliest = None
    if limit is not None:
        memory = Memory(operators, copies)
        known = {held: memory.earliest(held, limit) for held in set(in_flight)}
        earliest = [known[held] for held in in_flight]
    try:
        return smallest_largest(costs, cuts, len(in_flight), earliest)
    except ValueError:
        least = Memory(operators, copies).smallest_limit(in_flight)
        raise NothingFits(least) from None


class NothingFits(ValueError):  # noqa: N818 (what it says)
    """No split keeps to the limit; `least` is the smallest that would do, in bytes per stage."""

    def __init__(self, least: int) -> None:
        super().__init__(f"plan: no split fits; the smallest limit that would do is {least} bytes per stage")
        self.least = least


def in_flight(actions: Sequence[Action]) -> dict[int, int]:
    """Per stage of a rank, the most micro-batches that are between forward and the end of their backward.

    >>> from retrograd.pipelining.schedules import make_schedule
    >>> [in_flight(actions) for actions in make_schedule("1f1b", 2, 4)]
    [{0: 2}, {1: 1}]
    """
    held: Counter[int] = Counter()
    most: dict[int, int] = {}
    for action in actions:
        held[action.stage] += CHANGE[action.kind]
        most[action.stage] = max(most.get(action.stage, 0), held[action.stage])
    return most


CHANGE = {Kind.F: 1, Kind.B: -1, Kind.I: 0, Kind.W: -1}
