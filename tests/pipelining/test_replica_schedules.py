"""The actions that sum gradients over replicas: where they are inserted, what is refused, how long they take."""

import re

import pytest

from retrograd.pipelining.planning.simulate import simulate
from retrograd.pipelining.schedules import one_directional
from retrograd.pipelining.schedules.actions import Kind, parse_schedule
from retrograd.pipelining.schedules.lowering import chain, validate
from retrograd.pipelining.schedules.program import make_program
from retrograd.pipelining.schedules.replicas import replicate
from retrograd.pipelining.schedules.tables import read_csv, write_csv

NAMES = sorted(kind.name for kind in one_directional())


@pytest.mark.parametrize("schedule", NAMES)
def test_each_stage_is_reduced_once_after_its_last_backward_and_the_program_is_valid(schedule):
    one = make_program(schedule, 4, 3, chain(4), ranks=2)
    program = replicate([one, one], reduce_gradients=True)
    for half in (program.actions[:2], program.actions[2:]):
        validate(half, chain(4))
        for row in half:
            starts = {a.stage: i for i, a in enumerate(row) if a.kind is Kind.REDUCE_GRAD}
            last = {a.stage: i for i, a in enumerate(row) if a.kind in (Kind.B, Kind.W, Kind.SEND_B)}
            assert starts == {stage: at + 1 for stage, at in last.items()}
            waits = [a.stage for a in row if a.kind is Kind.WAIT_GRAD]
            assert waits == sorted(starts, reverse=True) == [a.stage for a in row[-len(waits) :]]
    plain = [[a for a in row if not a.kind.is_reduction] for row in program.actions[:2]]
    assert plain == one.actions


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("F0.0 REDUCE_GRAD0 B0.0 WAIT_GRAD0", "position 2, B0.0: REDUCE_GRAD0 before it sums gradients that are not"),
        ("F0.0 B0.0 WAIT_GRAD0 REDUCE_GRAD0", "position 2, WAIT_GRAD0: needs REDUCE_GRAD0 before it"),
        ("F0.0 B0.0 REDUCE_GRAD0", "rank 0 never runs WAIT_GRAD0"),
        ("F0.0 B0.0 F1.0 B1.0 REDUCE_GRAD0 WAIT_GRAD0", "rank 0 never runs REDUCE_GRAD1"),
        ("F0.0 B0.0 REDUCE_GRAD0 WAIT_GRAD0 WAIT_GRAD0", "WAIT_GRAD0: this has been done before"),
    ],
)
def test_a_reduction_out_of_order_is_refused(text, problem):
    with pytest.raises(ValueError, match=re.escape(problem)):
        validate(parse_schedule(f"0: {text}"), ())


def test_the_simulation_overlaps_a_reduction_with_the_backward_of_other_stages():
    schedule = parse_schedule("0: F0.0 F1.0 B1.0 REDUCE_GRAD1 B0.0 REDUCE_GRAD0 WAIT_GRAD1 WAIT_GRAD0")
    seconds = {Kind.F: 1.0, Kind.B: 2.0, Kind.REDUCE_GRAD: 3.0}

    def end(program, replicas, slow=-1):
        costs = lambda a: seconds.get(a.kind, 0.0) * (5 if a.micro_batch == slow else 1)  # noqa: E731
        return simulate(program, {(0, 1)}, costs, replicas=replicas).span

    assert end(schedule, 1) == 1 + 1 + 2 + 2 + 3  # when the sum of stage 0 arrives, that of stage 1 has arrived
    both = [schedule[0], [a._replace(micro_batch=0 if a.kind.is_reduction else 1) for a in schedule[0]]]
    assert end(both, 2) == end(schedule, 1)
    assert end(both, 2, slow=1) == 5 * 6 + 3  # both wait for the slower one
    overhead = simulate(schedule, {(0, 1)}, lambda a: 0.0, lambda a: 0.5 * a.kind.is_reduction).span
    assert overhead == 4 * 0.5


def test_reductions_are_written_as_pytorch_names_them_and_skipped_when_read(tmp_path):
    one = make_program("1f1b", 2, 2, chain(2))
    write_csv(replicate([one], reduce_gradients=True).actions, tmp_path / "order.csv")
    assert "1B1,1SEND_B1,1REDUCE_GRAD" in (tmp_path / "order.csv").read_text()
    assert read_csv(tmp_path / "order.csv") == one.actions
