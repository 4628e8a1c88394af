"""The binomial plan: the fewest recomputed steps, and never more saved states than allowed."""

from functools import cache
from math import comb

import pytest

from retrograd.utils.revolve import Action, cost, plan, snapshot_indices

SIZES = [(steps, snapshots) for steps in range(1, 41) for snapshots in range(1, 12)]


@cache
def fewest(steps, snapshots):
    """Solve the dynamic program: run to the best next snapshot, reverse the rest from there, then the part before."""
    if steps == 1:
        return 0
    if snapshots == 1:
        return steps * (steps - 1) // 2
    return min(m + fewest(m, snapshots) + fewest(steps - m, snapshots - 1) for m in range(1, steps))


def runs(actions):
    """Return the total number of steps that a plan runs."""
    return sum(action.to - action.at for action in actions if action.kind in ("run", "reverse"))


@pytest.mark.parametrize("snapshots", range(1, 12))
def test_the_closed_form_is_the_optimum_of_the_dynamic_program(snapshots):
    assert [cost(n, snapshots) for n in range(1, 61)] == [fewest(n, snapshots) for n in range(1, 61)]


def test_the_closed_form_is_griewank_and_walthers():
    for snapshots in range(1, 8):
        for r in range(1, 6):
            longest = comb(snapshots + r, r)
            assert cost(longest, snapshots) == r * longest - comb(snapshots + r, r - 1)


def test_a_plan_repeats_as_many_steps_as_the_closed_form_says():
    assert [runs(plan(*size)) - size[0] for size in SIZES] == [cost(*size) for size in SIZES]
    assert runs(plan(2000, 7)) == 2000 + cost(2000, 7)


def test_a_plan_keeps_no_more_states_than_there_is_room_for():
    for steps, snapshots in SIZES:
        alive, most = set(), 0
        for action in plan(steps, snapshots):
            if action.kind == "keep":
                alive.add(action.at)
            elif action.kind == "drop":
                alive.remove(action.at)
            most = max(most, len(alive))
        assert most <= snapshots
        assert not alive


def test_a_plan_uses_only_states_that_it_has_and_reverses_every_step_once_from_the_last():
    for steps, snapshots in SIZES:
        alive, at, reversed_steps = set(), 0, []
        for action in plan(steps, snapshots):
            if action.kind == "run":
                assert action.at == at or action.at in alive
                at = action.to
            elif action.kind == "keep":
                assert action.at == at
                alive.add(at)
            elif action.kind == "drop":
                alive.remove(action.at)
            else:
                assert action.at == at or action.at in alive
                reversed_steps.append(action.at)
                at = None
        assert reversed_steps == list(range(steps))[::-1]


def test_a_plan_reads_as_text():
    assert ", ".join(map(str, plan(4, 2))) == (
        "keep 0, run 0-1, keep 1, run 1-3, reverse 3, run 1-2, reverse 2, reverse 1, drop 1, reverse 0, drop 0"
    )
    assert plan(1, 1) == [Action("keep", 0, 0), Action("reverse", 0, 1), Action("drop", 0, 0)]


def test_with_room_for_every_state_each_step_is_repeated_once():
    assert snapshot_indices(5, 9) == (0, 1, 2, 3)
    assert cost(5, 9) == 4


@pytest.mark.parametrize("function", [cost, plan, snapshot_indices])
@pytest.mark.parametrize(("steps", "snapshots"), [(0, 1), (3, 0), (3, -1)])
def test_chains_without_steps_or_room_are_refused(function, steps, snapshots):
    with pytest.raises(ValueError, match=f"got {steps} steps and {snapshots} snapshots"):
        function(steps, snapshots)
