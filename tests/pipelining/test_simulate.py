"""Simulated times agree with theory and with published figures."""

import math

import pytest

from retrograd.pipelining.actions import Kind, parse_schedule
from retrograd.pipelining.lowering import chain, lower
from retrograd.pipelining.schedules import make_schedule
from retrograd.pipelining.simulate import peak_activations, simulate


def costs(**seconds):
    return lambda action: seconds.get(action.kind.value, 0.0)


def times(timeline):
    return {str(event.action): (event.start, event.end) for event in timeline.events}


@pytest.mark.parametrize("name", ["gpipe", "1f1b"])
@pytest.mark.parametrize("stages", range(1, 9))
def test_the_bubble_is_that_of_theory_when_stages_take_equally_long(name, stages):
    for micro_batches in range(1, 17):
        for cost in (costs(F=1.0, B=2.0), costs(F=3.0, B=1.0)):
            timeline = simulate(make_schedule(name, stages, micro_batches), chain(stages), cost)
            theory = (stages - 1) / (micro_batches + stages - 1)
            assert timeline.bubble() == pytest.approx(theory, abs=1e-12)
            assert timeline.ideal_bubble() == pytest.approx(theory)
            assert timeline.busy() == pytest.approx([1 - theory] * stages)


# Qi, Wan, Huang, Lin: "Zero Bubble Pipeline Parallelism", ICLR 2024. Stages, micro-batches, profiled times of
# F, B (input gradient), W (weight gradient) and communication in ms (table 9), 1F1B's bubble rate (table 5).
ZERO_BUBBLE = [
    (8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431),
    (8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240),
    (8, 24, 29.718, 29.444, 19.927, 0.527, 0.2347),
    (16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552),
    (32, 96, 10.419, 10.207, 7.715, 0.408, 0.2646),
]


@pytest.mark.parametrize(("stages", "micro_batches", "f", "b", "w", "comm", "rate"), ZERO_BUBBLE)
def test_1f1b_has_the_bubble_rate_of_the_zero_bubble_paper(stages, micro_batches, f, b, w, comm, rate):
    cost = costs(F=f * 1e-3, B=(b + w) * 1e-3, SEND_F=comm * 1e-3, SEND_B=comm * 1e-3)
    timeline = simulate(make_schedule("1f1b", stages, micro_batches), chain(stages), cost)
    assert round(timeline.bubble(), 4) == rate


def test_a_message_arrives_its_cost_later_while_the_sender_goes_on():
    timeline = simulate(make_schedule("gpipe", 2, 2), chain(2), costs(F=1.0, B=2.0, SEND_F=0.5, SEND_B=0.25))
    assert times(timeline) == {
        "F0.0": (0, 1), "SEND_F0.0>1": (1, 1), "F0.1": (1, 2), "SEND_F0.1>1": (2, 2),
        "RECV_F1.0<0": (0, 1.5), "F1.0": (1.5, 2.5), "RECV_F1.1<0": (2.5, 2.5), "F1.1": (2.5, 3.5),
        "B1.0": (3.5, 5.5), "SEND_B1.0>0": (5.5, 5.5), "B1.1": (5.5, 7.5), "SEND_B1.1>0": (7.5, 7.5),
        "RECV_B0.0<1": (2, 5.75), "B0.0": (5.75, 7.75), "RECV_B0.1<1": (7.75, 7.75), "B0.1": (7.75, 9.75),
    }  # fmt: skip


def test_a_skip_connection_does_not_wait_for_the_stages_between():
    edges = {(0, 1), (0, 2)}
    schedule = parse_schedule("0: F0.0\n1: F1.0\n2: F2.0")
    assert times(simulate(schedule, edges, costs(F=1.0)))["F2.0"] == (1, 2)
    assert times(simulate(schedule, chain(3), costs(F=1.0)))["F2.0"] == (2, 3)


def test_the_cost_may_depend_on_stage_and_micro_batch():
    timeline = simulate(make_schedule("gpipe", 1, 3), [], lambda action: 1.0 + action.micro_batch)
    assert timeline.span == 12
    slow = simulate(make_schedule("1f1b", 3, 4), chain(3), lambda a: (a.stage + 1.0) * a.kind.is_compute)
    assert slow.busy()[2] == max(slow.busy())


def test_a_lowered_schedule_is_simulated_as_it_is():
    schedule, cost = make_schedule("1f1b", 3, 5), costs(F=1.0, B=2.0, SEND_F=0.25)
    assert simulate(lower(schedule, chain(3)), chain(3), cost).events == simulate(schedule, chain(3), cost).events
    early = parse_schedule("0: F0.0 SEND_F0.0>1\n1: RECV_F1.0<0 F2.0 F1.0")
    assert times(simulate(early, {(0, 1)}, costs(F=1.0)))["F2.0"] == (1, 2)


def test_activations_are_freed_by_the_weight_half_not_by_the_input_half():
    assert peak_activations(*parse_schedule("0: F0.0 I0.0 F0.1 I0.1 W0.0 W0.1")) == 2
    assert peak_activations(*parse_schedule("0: F0.0 I0.0 W0.0 F0.1 I0.1 W0.1")) == 1
    assert peak_activations([]) == 0


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_a_cost_that_is_no_duration_is_refused_by_action(wrong):
    with pytest.raises(ValueError, match=r"the cost of B1\.0 is "):
        simulate(make_schedule("gpipe", 2, 1), chain(2), costs(F=1.0, B=wrong))


def test_a_schedule_that_cannot_run_is_refused():
    stuck = parse_schedule("0: F0.0 B0.0 F0.1 B0.1\n1: F1.1 B1.1 F1.0 B1.0")
    with pytest.raises(ValueError, match="deadlock"):
        simulate(stuck, chain(2), costs(F=1.0))


def test_the_cost_of_every_action_but_a_receive_is_asked_once():
    asked = []
    simulate(make_schedule("1f1b", 4, 8), chain(4), lambda action: asked.append(action) or 1.0)
    program = lower(make_schedule("1f1b", 4, 8), chain(4))
    wanted = [action for actions in program for action in actions if not action.kind.is_receive]
    assert sorted(asked) == sorted(wanted)
    assert Kind.SEND_F in {action.kind for action in asked}
