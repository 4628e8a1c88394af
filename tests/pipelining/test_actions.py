"""Actions and schedules print as text that can be parsed again."""

import pickle

import pytest

from retrograd.pipelining.schedules.actions import Action, Kind, Message, format_schedule, parse, parse_schedule

ONE_OF_EACH = {
    "F0.3": Action(Kind.F, 0, 3),
    "B12.0": Action(Kind.B, 12, 0),
    "I1.20": Action(Kind.I, 1, 20),
    "W1.2": Action(Kind.W, 1, 2),
    "R1.2": Action(Kind.R, 1, 2),
    "OFFLOAD1.2": Action(Kind.OFFLOAD, 1, 2),
    "FETCH1.2": Action(Kind.FETCH, 1, 2),
    "SEND_F0.3>1": Action(Kind.SEND_F, 0, 3, 1),
    "RECV_F1.3<0": Action(Kind.RECV_F, 1, 3, 0),
    "SEND_B11.3>10": Action(Kind.SEND_B, 11, 3, 10),
    "RECV_B0.3<1": Action(Kind.RECV_B, 0, 3, 1),
    "REDUCE_GRAD12": Action(Kind.REDUCE_GRAD, 12, 0),
    "WAIT_GRAD0": Action(Kind.WAIT_GRAD, 0, 0),
}


def test_every_kind_prints_as_text_that_reads_back():
    assert {action.kind for action in ONE_OF_EACH.values()} == set(Kind)
    for text, action in ONE_OF_EACH.items():
        assert str(action) == f"{action}" == text
        assert parse(text) == action
        assert isinstance(parse(text).kind, Kind)


NO_ACTIONS = [
    *("", "F", "F0", "F0.", "F0.3 ", "F0.3\n", "f0.3", "X0.3", "F-1.3", "F٣.1", "F0.3>1"),
    *("SEND_F0.3", "SEND_F0.3<1", "RECV_B1.3>0", "SEND_W0.3>1", "REDUCE_GRAD", "REDUCE_GRAD0.1", "WAIT_GRAD0>1"),
]


@pytest.mark.parametrize("text", NO_ACTIONS)
def test_text_that_is_no_action_is_refused_by_name(text):
    with pytest.raises(ValueError, match="is not an action") as error:
        parse(text)
    assert repr(text) in str(error.value)


def test_the_two_ends_of_a_transfer_name_one_message():
    assert parse("SEND_F0.3>1").message == parse("RECV_F1.3<0").message == Message("F", 0, 1, 3)
    assert parse("SEND_B1.3>0").message == parse("RECV_B0.3<1").message == Message("B", 1, 0, 3)


def test_every_kind_is_a_send_a_receive_a_computation_a_move_or_a_reduction():
    for kind in Kind:
        assert kind.is_send + kind.is_receive + kind.is_compute + kind.is_move + kind.is_reduction == 1
    assert [kind for kind in Kind if kind.is_compute] == [Kind.F, Kind.B, Kind.I, Kind.W, Kind.R]
    assert [kind for kind in Kind if kind.is_send] == [Kind.SEND_F, Kind.SEND_B]


def test_a_schedule_prints_one_aligned_line_per_rank_and_reads_back():
    schedule = [list(ONE_OF_EACH.values())[:3], [], [ONE_OF_EACH["SEND_F0.3>1"], ONE_OF_EACH["W1.2"]]]
    text = format_schedule(schedule)
    assert text == "0: F0.3        B12.0       I1.20\n1:\n2: SEND_F0.3>1 W1.2"
    assert parse_schedule(text) == schedule
    assert parse_schedule("\n 0:F0.3  B12.0 I1.20\n\n1 :\n2: SEND_F0.3>1\tW1.2\n") == schedule


def test_rank_numbers_stay_aligned_beyond_ten_ranks():
    text = format_schedule([[Action(Kind.F, rank, 0)] for rank in range(11)])
    assert text.splitlines()[9:] == [" 9: F9.0", "10: F10.0"]
    assert format_schedule(parse_schedule(text)) == text


@pytest.mark.parametrize("text", ["1: F0.0", "0: F0.0\n0: F0.1", "F0.0", "zero: F0.0"])
def test_a_line_without_its_rank_is_refused(text):
    with pytest.raises(ValueError, match="the next rank"):
        parse_schedule(text)


def test_an_action_survives_pickling_since_workers_get_it_by_message():
    for action in ONE_OF_EACH.values():
        copy = pickle.loads(pickle.dumps(action))
        assert copy == action
        assert copy.kind is action.kind
