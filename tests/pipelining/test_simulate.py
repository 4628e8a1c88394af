"""Simulated times agree with theory and with published figures."""

import math
import tracemalloc

import pytest

from retrograd.pipelining.planning.simulate import peak_activations, simulate, simulate_costs, zero_cost
from retrograd.pipelining.schedules import SCHEDULES, get_schedule, make_schedule, stage_ranks, stream_schedule
from retrograd.pipelining.schedules.actions import Kind, parse_schedule
from retrograd.pipelining.schedules.lowering import chain, lower


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


def test_a_message_arrives_its_cost_later_while_the_sender_continues():
    timeline = simulate(make_schedule("gpipe", 2, 2), chain(2), costs(F=1.0, B=2.0, SEND_F=0.5, SEND_B=0.25))
    assert times(timeline) == {
        "F0.0": (0, 1), "SEND_F0.0>1": (1, 1), "F0.1": (1, 2), "SEND_F0.1>1": (2, 2),
        "RECV_F1.0<0": (0, 1.5), "F1.0": (1.5, 2.5), "RECV_F1.1<0": (2.5, 2.5), "F1.1": (2.5, 3.5),
        "B1.0": (3.5, 5.5), "SEND_B1.0>0": (5.5, 5.5), "B1.1": (5.5, 7.5), "SEND_B1.1>0": (7.5, 7.5),
        "RECV_B0.0<1": (2, 5.75), "B0.0": (5.75, 7.75), "RECV_B0.1<1": (7.75, 7.75), "B0.1": (7.75, 9.75),
    }  # fmt: skip


def test_overhead_keeps_the_ranks_of_a_message_busy_before_it_leaves_and_once_it_is_there():
    cost, overhead = costs(F=1.0, B=2.0, SEND_F=0.5, SEND_B=0.5), costs(SEND_F=0.25, RECV_F=0.125, RECV_B=1.0)
    timeline = simulate(make_schedule("gpipe", 2, 2), chain(2), cost, overhead)
    assert times(timeline) == {
        "F0.0": (0, 1), "SEND_F0.0>1": (1, 1.25), "F0.1": (1.25, 2.25), "SEND_F0.1>1": (2.25, 2.5),
        "RECV_F1.0<0": (0, 1.875), "F1.0": (1.875, 2.875), "RECV_F1.1<0": (2.875, 3.125), "F1.1": (3.125, 4.125),
        "B1.0": (4.125, 6.125), "SEND_B1.0>0": (6.125, 6.125), "B1.1": (6.125, 8.125), "SEND_B1.1>0": (8.125, 8.125),
        "RECV_B0.0<1": (2.5, 7.625), "B0.0": (7.625, 9.625), "RECV_B0.1<1": (9.625, 10.625), "B0.1": (10.625, 12.625),
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


def test_activations_of_several_stages_on_a_rank_count_by_their_weights():
    actions = parse_schedule("0: F0.0 F1.0 F0.1 B1.0 B0.0 F1.1 B1.1 B0.1")[0]
    assert peak_activations(actions) == 3
    assert peak_activations(actions, {0: 10.0, 1: 1.0}) == 21.0


SKIP = chain(4) | {(0, 2), (0, 3), (1, 3)}


def uneven(action):
    return {"F": 1.0, "B": 2.5, "I": 1.25, "W": 0.75}.get(action.kind.value, 0.125) * (1 + action.stage % 3)


@pytest.mark.parametrize("overhead", [zero_cost, costs(SEND_F=0.5, RECV_F=0.25, SEND_B=0.125, RECV_B=1.0)])
@pytest.mark.parametrize("name", SCHEDULES)
def test_the_summary_is_that_of_the_timeline(name, overhead):
    for edges in (chain(4), SKIP):
        schedule = make_schedule(name, 4, 6, ranks=2)
        timeline = simulate(schedule, edges, uneven, overhead)
        streamed = stream_schedule(name, 4, 6, ranks=2)
        placement = stage_ranks(name, 4, 2) if get_schedule(name).directions == 1 else None
        for summary in (
            simulate_costs(schedule, edges, uneven, overhead),
            simulate_costs(streamed, edges, uneven, overhead, placement=placement),
        ):
            assert summary.span == timeline.span
            assert summary.bubble == pytest.approx(timeline.bubble())
            for rank in range(2):
                assert summary.end[rank] == max(e.end for e in timeline.events if e.rank == rank)
                own = [e for e in timeline.events if e.rank == rank and e.action.kind.is_compute]
                assert summary.start[rank] == min(event.start for event in own)
                assert summary.busy[rank] == pytest.approx(sum(event.end - event.start for event in own))


def test_the_summary_s_bubble_rate_is_that_of_the_slowest_rank_from_its_own_start_to_its_own_end():
    summary = simulate_costs(make_schedule("gpipe", 2, 1), chain(2), costs(F=1.0, B=2.0))
    assert (summary.start, summary.end, summary.busy) == ([0.0, 1.0], [6.0, 4.0], [3.0, 3.0])
    assert (summary.bubbles, summary.bubble_rate, summary.bubble) == ([3.0, 0.0], 0.5, 0.5)


def test_the_summary_asks_for_the_cost_of_each_kind_and_stage_once():
    asked = []
    simulate_costs(make_schedule("1f1b", 3, 8), chain(3), lambda action: asked.append(str(action)) or 1.0)
    assert sorted(asked) == sorted(
        ["F0.0", "SEND_F0.0>1", "B0.0", "F1.0", "SEND_F1.0>2", "B1.0", "SEND_B1.0>0", "F2.0", "B2.0", "SEND_B2.0>1"]
    )


def test_a_schedule_that_cannot_run_or_is_lowered_has_no_summary():
    stuck = parse_schedule("0: F0.0 B0.0 F0.1 B0.1\n1: F1.1 B1.1 F1.0 B1.0")
    with pytest.raises(ValueError, match=r"deadlock: 2 ranks wait; rank 0 for what B0\.0 needs"):
        simulate_costs(stuck, chain(2), costs(F=1.0))
    with pytest.raises(ValueError, match="lowered already"):
        simulate_costs(lower(make_schedule("gpipe", 2, 1), chain(2)), chain(2), costs(F=1.0))


def test_hundreds_of_ranks_are_simulated_without_a_list_of_their_actions():
    for name in ("1f1b", "zb-h1"):
        schedule = stream_schedule(name, 256, 64)
        cost = costs(F=1.0, B=2.0, I=1.0, W=1.0)
        summary = simulate_costs(schedule, chain(256), cost, placement=stage_ranks(name, 256))
        assert summary.busy == [3.0 * 64] * 256
        if name == "1f1b":
            assert summary.span == 3.0 * (256 + 64 - 1)


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_memory_of_a_streamed_order_does_not_depend_on_its_length(name):
    def peak(micro_batches):
        per_rank = get_schedule(name).per_rank
        tracemalloc.start()
        order = stream_schedule(name, 4 * per_rank, micro_batches, ranks=4)[1]
        for _ in order:
            pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(8)  # fills caches
    # The smaller of two: another thread of the process, as the one that reports to pytest-xdist, allocates at times.
    assert min(peak(4096), peak(4096)) < peak(64) + 2048  # half a byte for each microbatch


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_a_cost_that_is_no_duration_is_refused_by_action(wrong):
    with pytest.raises(ValueError, match=r"the cost of B1\.0 is "):
        simulate(make_schedule("gpipe", 2, 1), chain(2), costs(F=1.0, B=wrong))


def test_a_schedule_that_cannot_run_is_refused():
    stuck = parse_schedule("0: F0.0 B0.0 F0.1 B0.1\n1: F1.1 B1.1 F1.0 B1.0")
    with pytest.raises(ValueError, match=r"RECV_F1\.1<0 waits for rank 0 to reach SEND_F0\.1>1"):
        simulate(stuck, chain(2), costs(F=1.0))


def test_the_cost_of_every_action_but_a_receive_is_computed_once():
    asked = []
    simulate(make_schedule("1f1b", 4, 8), chain(4), lambda action: asked.append(action) or 1.0)
    program = lower(make_schedule("1f1b", 4, 8), chain(4))
    wanted = [action for actions in program for action in actions if not action.kind.is_receive]
    assert sorted(asked) == sorted(wanted)
    assert Kind.SEND_F in {action.kind for action in asked}
