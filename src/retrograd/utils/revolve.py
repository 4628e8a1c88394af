"""The binomial plan: which states of a chain to save so that it is reversed with the fewest repeated steps.

A chain of l steps goes from state 0 to state l; step i leads from state i to state i + 1.  The backward pass
needs the states in reverse order, and there is room for `snapshots` of them.  With s snapshots and no step
repeated more than r times, chains of up to beta(s, r) = C(s + r, s) steps can be reversed; from this the fewest
repeated steps and the positions of the snapshots follow.  Griewank & Walther, "Algorithm 799: Revolve", ACM
Transactions on Mathematical Software 26 (2000) 19-45.

Here the forward sweep runs the whole chain, since its result is needed before the backward pass starts; the last
step is not repeated.
"""

from collections.abc import Iterator
from math import comb
from typing import NamedTuple

from retrograd.foundation.suggestions import suggest_in_module


class Action(NamedTuple):
    """One action: `keep` or `drop` state `at`, `run` the steps from `at` up to `to`, or `reverse` step `at`.

    To reverse a step is to run it recorded, from the current state, and propagate the gradient back through it.
    """

    kind: str
    at: int
    to: int

    def __str__(self) -> str:
        return f"run {self.at}-{self.to}" if self.kind == "run" else f"{self.kind} {self.at}"


def cost(steps: int, snapshots: int) -> int:
    """Return the minimal number of repeated steps to reverse a chain of `steps` steps with `snapshots` saved states.

    The closed form r l - beta(s + 1, r - 1), where r is the smallest integer with beta(s, r) >= l.  Raises ValueError
    for less than one step or one snapshot.

    >>> [cost(10, snapshots) for snapshots in (1, 2, 3, 9)]
    [45, 20, 15, 9]
    """
    _check(steps, snapshots)
    r = _min_repetitions(steps, snapshots)
    return r * steps - _max_steps(snapshots + 1, r - 1)


def snapshot_indices(steps: int, snapshots: int) -> tuple[int, ...]:
    """Return the states to save on the way from state 0 to the last step of a chain; the first is state 0.

    >>> snapshot_indices(10, 3)
    (0, 4, 7)
    """
    _check(steps, snapshots)
    indices = [0]
    while snapshots > 1 and steps - indices[-1] > 2:
        indices.append(indices[-1] + _steps_to_next_snapshot(steps - indices[-1], snapshots))
        snapshots -= 1
    return tuple(indices)


def plan(steps: int, snapshots: int) -> list[Action]:
    """Return the actions in order: the forward sweep, then the reversal of every step, the last one first.

    No more than `snapshots` states are saved at a time.  The steps of all `run` and `reverse` actions together are
    `steps + cost(steps, snapshots)`.  Raises ValueError for less than one step or one snapshot.

    >>> print(*plan(3, 1), sep=", ")
    keep 0, run 0-2, reverse 2, run 0-1, reverse 1, reverse 0, drop 0
    """
    _check(steps, snapshots)
    actions, snapshots_taken = [Action("keep", 0, 0)], [0]
    for step in reversed(range(steps)):
        while snapshots_taken[-1] > step:
            state = snapshots_taken.pop()
            actions.append(Action("drop", state, state))
        actions.extend(_advance_to(step, snapshots_taken, snapshots))
        actions.append(Action("reverse", step, step + 1))
    return [*actions, Action("drop", 0, 0)]


def _advance_to(step: int, snapshots_taken: list[int], snapshots: int) -> Iterator[Action]:
    """Run from the latest saved state to `step`, and save more states on the way if there is room."""
    at = start = snapshots_taken[-1]
    for stop in snapshot_indices(step - start + 1, snapshots - len(snapshots_taken) + 1)[1:]:
        yield Action("run", at, start + stop)
        at = start + stop
        yield Action("keep", at, at)
        snapshots_taken.append(at)
    if step > at:
        yield Action("run", at, step)


def _steps_to_next_snapshot(steps: int, snapshots: int) -> int:
    """Return how many steps to run before the second snapshot: the fewest that keep the rest reversible."""
    r = _min_repetitions(steps, snapshots)
    return max(1, _max_steps(snapshots, r - 2), steps - _max_steps(snapshots - 1, r))


def _min_repetitions(steps: int, snapshots: int) -> int:
    """Return the smallest r with beta(snapshots, r) >= steps."""
    r = 0
    while _max_steps(snapshots, r) < steps:
        r += 1
    return r


def _max_steps(snapshots: int, repetitions: int) -> int:
    """Return beta(s, r): the longest chain that s snapshots and r repetitions of each step can reverse."""
    return comb(snapshots + repetitions, snapshots) if repetitions >= 0 else 0


def _check(steps: int, snapshots: int) -> None:
    if steps < 1 or snapshots < 1:
        raise ValueError(
            f"revolve: a chain has at least 1 step and 1 snapshot, its first state; got {steps} steps and "
            f"{snapshots} snapshots"
        )


suggest_in_module(globals())
