"""Lowering inserts every transfer at the right position; validation finds missing, wrong and deadlocked actions."""

import pytest

from retrograd.pipelining.schedules import SCHEDULES, make_schedule
from retrograd.pipelining.schedules.actions import format_schedule, parse_schedule
from retrograd.pipelining.schedules.lowering import buffer_depth, chain, execution_order, lower, validate

SKIP = chain(4) | {(0, 2), (0, 3), (1, 3)}


def flat(text):
    return " ".join(text.split())


def swapped(program, rank, first, second):
    """Return the program with two actions of one rank, given by position, exchanged."""
    copy = [list(actions) for actions in program]
    copy[rank][first], copy[rank][second] = copy[rank][second], copy[rank][first]
    return copy


def without(program, *texts):
    return [[action for action in actions if str(action) not in texts] for actions in program]


def refused(program, edges, *parts, buffer=None):
    with pytest.raises(ValueError, match=r"\w") as error:
        validate(program, edges, buffer=buffer)
    for part in parts:
        assert part in str(error.value)


def test_a_chain_receives_before_and_sends_after_each_computation():
    assert format_schedule(lower(make_schedule("1f1b", 3, 2), chain(3))).splitlines() == [
        "0: F0.0        SEND_F0.0>1 F0.1        SEND_F0.1>1 RECV_B0.0<1 B0.0        RECV_B0.1<1 B0.1",
        "1: RECV_F1.0<0 F1.0        SEND_F1.0>2 RECV_F1.1<0 F1.1        SEND_F1.1>2 RECV_B1.0<2 B1.0"
        "        SEND_B1.0>0 RECV_B1.1<2 B1.1        SEND_B1.1>0",
        "2: RECV_F2.0<1 F2.0        B2.0        SEND_B2.0>1 RECV_F2.1<1 F2.1        B2.1        SEND_B2.1>1",
    ]


def test_a_skip_connection_and_its_gradient_are_sent_directly():
    program = lower(make_schedule("gpipe", 3, 1), chain(3) | {(0, 2)})
    assert [flat(line) for line in format_schedule(program).splitlines()] == [
        "0: F0.0 SEND_F0.0>1 SEND_F0.0>2 RECV_B0.0<1 RECV_B0.0<2 B0.0",
        "1: RECV_F1.0<0 F1.0 SEND_F1.0>2 RECV_B1.0<2 B1.0 SEND_B1.0>0",
        "2: RECV_F2.0<1 RECV_F2.0<0 F2.0 B2.0 SEND_B2.0>1 SEND_B2.0>0",
    ]


def test_stages_on_one_rank_send_each_other_nothing():
    schedule = parse_schedule("0: F0.0 F1.0 B1.0 B0.0\n1: F2.0 B2.0")
    program = lower(schedule, chain(3) | {(0, 2)})
    assert [flat(line) for line in format_schedule(program).splitlines()] == [
        "0: F0.0 SEND_F0.0>2 F1.0 SEND_F1.0>2 RECV_B1.0<2 B1.0 RECV_B0.0<2 B0.0",
        "1: RECV_F2.0<1 RECV_F2.0<0 F2.0 B2.0 SEND_B2.0>1 SEND_B2.0>0",
    ]
    validate(program, chain(3) | {(0, 2)})


def test_the_input_half_of_a_backward_moves_the_gradients_and_the_weight_half_moves_nothing():
    schedule = parse_schedule("0: F0.0 I0.0 W0.0\n1: F1.0 I1.0 W1.0")
    program = lower(schedule, chain(2))
    assert [flat(line) for line in format_schedule(program).splitlines()] == [
        "0: F0.0 SEND_F0.0>1 RECV_B0.0<1 I0.0 W0.0",
        "1: RECV_F1.0<0 F1.0 I1.0 SEND_B1.0>0 W1.0",
    ]
    validate(program, chain(2))


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_runs_on_a_graph_with_skip_connections(name):
    for micro_batches in (1, 3, 8):
        for ranks in (2, 4):
            validate(lower(make_schedule(name, 4, micro_batches, ranks=ranks), SKIP), SKIP)


def test_the_buffer_depth_is_the_least_room_with_which_a_program_runs():
    for name, stages, micro_batches, depth in (("gpipe", 4, 8, 0), ("1f1b", 4, 8, 1), ("loopedbfs", 4, 16, 8)):
        program = lower(make_schedule(name, stages, micro_batches), chain(stages))
        assert buffer_depth(program) == depth
        validate(program, chain(stages), buffer=depth)
        if depth:
            refused(program, chain(stages), "deadlock", buffer=depth - 1)
    assert buffer_depth(lower(make_schedule("1f1b", 4, 16), SKIP)) == 2
    assert buffer_depth([]) == 0
    with pytest.raises(ValueError, match="deadlock"):
        buffer_depth(lower(parse_schedule("0: F0.0 B0.0 F0.1 B0.1\n1: F1.1 B1.1 F1.0 B1.0"), chain(2)))


def test_1f1b_needs_room_for_half_the_stages_that_its_longest_edge_leads_on():
    for stages in range(2, 9):
        for reach in range(1, stages):
            edges = chain(stages) | {(0, reach)}
            program = lower(make_schedule("1f1b", stages, 16), edges)
            room = (reach + 1) // 2
            validate(program, edges, buffer=room)
            refused(program, edges, "deadlock", buffer=room - 1)


def test_gpipe_runs_even_when_every_send_waits_for_its_receive():
    for stages, micro_batches in [(2, 1), (3, 8), (8, 4)]:
        validate(lower(make_schedule("gpipe", stages, micro_batches), chain(stages)), chain(stages), buffer=0)


def test_a_rendezvous_hands_over_whichever_side_comes_first():
    program = parse_schedule("0: RECV_F1.0<0 F1.0 RECV_F1.1<0 F1.1\n1: F0.0 SEND_F0.0>1 F0.1 SEND_F0.1>1")
    validate(program, {(0, 1)}, buffer=0)
    validate(program[::-1], {(0, 1)}, buffer=0)


def test_a_deadlock_error_names_the_waiting_ranks_and_messages():
    program = lower(make_schedule("1f1b", 3, 4), chain(3))
    with pytest.raises(ValueError, match="deadlock") as error:
        validate(program, chain(3), buffer=0)
    assert str(error.value).splitlines() == [
        "deadlock with a buffer of 0 per channel:",
        "  rank 1, position 5, SEND_F1.1>2 waits for rank 2 to reach RECV_F2.1<1",
        "  rank 2, position 3, SEND_B2.0>1 waits for rank 1 to reach RECV_B1.0<2",
    ]


def test_a_schedule_in_an_impossible_order_deadlocks_with_any_room():
    schedule = parse_schedule("0: F0.0 B0.0 F0.1 B0.1\n1: F1.1 B1.1 F1.0 B1.0")
    refused(
        lower(schedule, chain(2)),
        chain(2),
        "deadlock:\n",
        "rank 0, position 2, RECV_B0.0<1 waits for rank 1 to reach SEND_B1.0>0",
        "rank 1, position 0, RECV_F1.1<0 waits for rank 0 to reach SEND_F0.1>1",
    )


def test_a_ring_of_stages_deadlocks():
    ring = {(0, 1), (1, 0)}
    refused(lower(parse_schedule("0: F0.0\n1: F1.0"), ring), ring, "deadlock", "RECV_F0.0<1", "RECV_F1.0<0")


def test_an_order_that_waits_for_a_rank_that_is_done_ends_in_an_error_too():
    with pytest.raises(ValueError, match=r"RECV_F1\.0<0 waits for rank 0"):
        list(execution_order(parse_schedule("0: F0.0\n1: RECV_F1.0<0 F1.0")))


def test_the_execution_order_runs_everything_once_and_each_rank_in_its_order():
    program = lower(make_schedule("1f1b", 4, 6), SKIP)
    order = list(execution_order(program, buffer=2))
    for rank, actions in enumerate(program):
        assert [action for where, action in order if where == rank] == actions
    sent = {}
    for position, (_, action) in enumerate(order):
        if action.kind.is_send:
            sent[action.message] = position
        if action.kind.is_receive:
            assert sent[action.message] < position


def test_a_backward_before_its_forward_is_refused():
    refused(parse_schedule("0: B0.0 F0.0"), [], "rank 0, position 0, B0.0", "needs F0.0 before it")


def test_a_weight_half_before_or_without_its_input_half_is_refused():
    refused(parse_schedule("0: F0.0 W0.0 I0.0"), [], "rank 0, position 1, W0.0", "needs I0.0")
    refused(parse_schedule("0: F0.0 B0.0 W0.0"), [], "rank 0, position 2, W0.0", "needs I0.0")


def test_a_computation_done_twice_is_refused():
    refused(parse_schedule("0: F0.0 F0.0 B0.0"), [], "rank 0, position 1, F0.0", "done before")
    refused(parse_schedule("0: F0.0 I0.0 W0.0 B0.0"), [], "rank 0, position 3, B0.0", "done before")
    refused(parse_schedule("0: F0.0 B0.0 I0.0 W0.0"), [], "rank 0, position 2, I0.0", "done before")


@pytest.mark.parametrize("lost", ["F0.1", "B1.1", "W1.0"])
def test_a_computation_that_never_runs_is_refused(lost):
    program = parse_schedule("0: F0.0 F0.1 I0.0 B0.1 W0.0\n1: F1.0 F1.1 B1.1 I1.0 W1.0")
    validate(program, [])
    rank = lost[1]
    if lost == "F0.1":
        refused(without(program, "F0.1", "B0.1"), [], "rank 0 never runs F0.1")
    else:
        refused(without(program, lost), [], f"rank {rank} never runs {lost}")


def test_a_schedule_without_any_backward_is_inference_and_fine():
    program = lower(parse_schedule("0: F0.0 F0.1\n1: F1.0 F1.1"), chain(2))
    validate(program, chain(2))
    refused(without(program, "F1.1", "RECV_F1.1<0", "SEND_F0.1>1"), chain(2), "rank 1 never runs F1.1")


def test_half_a_transfer_is_refused():
    program = lower(make_schedule("gpipe", 2, 2), chain(2))
    refused(without(program, "SEND_F0.1>1"), chain(2), "RECV_F1.1<0", "no rank sends this")
    refused(without(program, "RECV_F1.1<0"), chain(2), "F1.1: needs RECV_F1.1<0 before it")
    stray = [program[0], program[1][:-1]]
    refused(stray, chain(2), "rank 0", "RECV_B0.1<1: no rank sends this")


def test_a_computation_without_its_receive_is_refused():
    refused(parse_schedule("0: F0.0 SEND_F0.0>1\n1: F1.0"), chain(2), "F1.0: needs RECV_F1.0<0")
    halves = parse_schedule("0: F0.0 SEND_F0.0>1 I0.0 W0.0\n1: RECV_F1.0<0 F1.0 I1.0 SEND_B1.0>0 W1.0")
    refused(halves, chain(2), "I0.0: needs RECV_B0.0<1")


def test_a_send_before_its_value_is_made_is_refused():
    program = lower(make_schedule("gpipe", 2, 1), chain(2))
    refused(swapped(program, 0, 0, 1), chain(2), "rank 0, position 0, SEND_F0.0>1: needs F0.0 before it")


def test_a_transfer_off_the_graph_within_a_rank_or_from_the_wrong_rank_is_refused():
    reverse = parse_schedule("0: F0.0 SEND_B0.0>1\n1: F1.0")
    refused(reverse, {(0, 1)}, "no edge 1 -> 0")
    within = parse_schedule("0: F0.0 SEND_F0.0>1 RECV_F1.0<0 F1.0")
    refused(within, chain(2), "stages 0 and 1 are both on rank 0")
    elsewhere = parse_schedule("0: RECV_F1.0<0 F0.0 SEND_F0.0>1\n1: F1.0")
    refused(elsewhere, chain(2), "rank 0, position 0, RECV_F1.0<0: stage 1 is on rank 1")


def test_local_neighbours_still_run_in_the_order_of_the_graph():
    refused(parse_schedule("0: F1.0 F0.0"), chain(2), "rank 0, position 0, F1.0: needs F0.0 before it")
    refused(parse_schedule("0: F0.0 F1.0 B0.0 B1.0"), chain(2), "rank 0, position 2, B0.0: needs B1.0")


def test_a_stage_on_two_ranks_is_refused():
    with pytest.raises(ValueError, match=r"rank 1, position 1, B0\.0: rank 0 computes stage 0 too"):
        lower(parse_schedule("0: F0.0\n1: F1.0 B0.0"), [])


def test_an_edge_to_nowhere_or_to_itself_is_refused():
    schedule = make_schedule("gpipe", 2, 1)
    with pytest.raises(ValueError, match=r"edge 1 -> 2: no rank computes stage 2"):
        lower(schedule, chain(3))
    with pytest.raises(ValueError, match=r"edge 1 -> 1 joins a stage to itself"):
        lower(schedule, {(1, 1)})


def test_a_lowered_schedule_is_not_lowered_again():
    with pytest.raises(ValueError, match=r"rank 0, position 1, SEND_F0\.0>1: this schedule is lowered already"):
        lower(lower(make_schedule("gpipe", 2, 1), chain(2)), chain(2))


def test_a_negative_buffer_is_refused():
    refused(make_schedule("gpipe", 1, 1), [], "buffer is -1", buffer=-1)
