"""Messages between ranks, over a channel within this process: ends of launches, and lost ranks."""

import threading

import pytest

from retrograd.pipelining.schedules.actions import Message
from retrograd.pipelining.transports import spmd
from retrograd.pipelining.transports.fingerprint import Fingerprint
from retrograd.pipelining.transports.interface import Aborted, PeerLost, RankMismatchError
from retrograd.pipelining.transports.rank_messaging import EMPTY, Kind, Peers
from retrograd.pipelining.transports.serialization import pack
from retrograd.pipelining.transports.spmd import launch
from retrograd.pipelining.transports.subgroup import Subgroup
from retrograd.pipelining.transports.thread_ranks import Box, ThreadChannel

MESSAGE = Message("F", 0, 1, 0)


class TurnClock:
    """A clock of ranks on threads: it counts the turns of each, and its time is that of the rank with the fewest.

    So no rank's timeout passes while another has not run, however busy the machine is.
    """

    def __init__(self, ranks):
        self.turns = dict.fromkeys(ranks, 0)

    def of(self, rank):
        """Return the clock for a rank, which counts a turn whenever it looks at it."""

        def now():
            self.turns[rank] += 1
            return min(list(self.turns.values()))

        return now

    def leave(self, rank):
        """Stop waiting for the turns of a rank whose part is over."""
        self.turns[rank] = float("inf")


def group(size):
    boxes = [Box() for _ in range(size)]
    channels = [ThreadChannel(rank, boxes) for rank in range(size)]
    return [Peers(channel, sleep=channel.sleep) for channel in channels]


def all_at_once(peers, work, timeout=None, leave=lambda rank: None, fingerprints=None):
    """Return the outcome of a launch on every rank, its results or its error; `leave(rank)` follows its part."""
    outcomes = {}

    def play(one):
        try:
            outcomes[one.rank] = launch(one, work, timeout, fingerprints and fingerprints[one.rank])
        except BaseException as failure:
            outcomes[one.rank] = failure
        finally:
            leave(one.rank)

    threads = [threading.Thread(target=play, args=(one,)) for one in peers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [outcomes[one.rank] for one in peers]


def test_every_rank_gets_all_results():
    assert all_at_once(group(3), lambda link: link.rank * 10) == [[0, 10, 20]] * 3


def test_mail_for_the_next_launch_waits_for_it():
    fast, slow = group(2)
    fast.end("done", EMPTY)
    fast.close()
    fast.send_message(1, tuple(MESSAGE), pack("next"))
    slow.poll()
    assert slow.mail == {}
    slow.end("done", EMPTY)
    slow.close()
    assert list(slow.mail) == [MESSAGE]


def test_messages_that_a_launch_has_not_received_are_discarded():
    one, other = group(2)
    one.send_message(1, tuple(MESSAGE), pack("stale"))
    other.poll()
    assert list(other.mail) == [MESSAGE]
    other.close()
    assert other.mail == {}


def test_ranks_that_differ_and_all_wait_end_without_a_message_between_them():
    def work(link):
        link.receive(1 - link.rank, MESSAGE)

    peers = group(2)
    fingerprints = [Fingerprint.of_call("step"), Fingerprint.of_call("predict")]
    failures = all_at_once(peers, work, fingerprints=fingerprints)
    assert [type(failure) for failure in failures] == [RankMismatchError] * 2
    assert str(failures[0]) == str(failures[1])
    assert "call: step on rank 0; predict on rank 1" in str(failures[0])
    assert all_at_once(peers, lambda link: link.rank) == [[0, 1]] * 2  # the next launch is clean


def test_a_step_whose_ranks_agree_sends_its_messages_and_ends_only():
    peers, sent = group(2), []
    for one in peers:
        one.channel.send = lambda rank, head, buffers, send=one.channel.send: (
            sent.append(head[0]) or send(rank, head, buffers)
        )

    def work(link):
        link.send(1, MESSAGE, "mail") if link.rank == 0 else link.receive(0, MESSAGE)

    all_at_once(peers, work, fingerprints=[Fingerprint.of_call("step")] * 2)
    assert sorted(sent) == [Kind.MAIL, Kind.END, Kind.END]


def test_the_first_failure_is_that_of_the_earliest_time():
    one, other = group(2)
    one.end("failed", EMPTY)
    other.end("failed", EMPTY)
    one.poll()
    other.poll()
    assert [end.rank for end in one.failures] == [end.rank for end in other.failures] == [0, 1]


def test_who_waits_for_a_rank_whose_script_is_over_is_reported():
    one, other, third = group(3)
    third.broadcast(Kind.LEFT, None)
    failures = all_at_once([one, other], lambda link: link.receive(2, MESSAGE) if link.rank == 0 else None)
    assert [type(failure) for failure in failures] == [PeerLost, PeerLost]
    assert "the script of rank 2 is over" in str(failures[0])


def test_a_rank_that_gives_no_answer_is_lost_and_there_are_no_more_launches():
    (one, other), leave = pair_with_silent_rank()
    failures = all_at_once([one, other], lambda link: link.receive(2, MESSAGE) if link.rank else None, 50, leave)
    assert {type(failure) for failure in failures} == {TimeoutError}
    assert "rank 2: no answer" in str(failures[1])
    assert one.lost == other.lost == [2]
    with pytest.raises(PeerLost, match="without rank 2"):
        launch(one, lambda link: None, None)


def test_a_result_that_can_not_travel_is_a_failure_of_its_rank():
    failures = all_at_once(group(2), lambda link: (lambda: None) if link.rank else None)
    assert all("local object" in str(failure) for failure in failures)


def test_only_the_failure_is_raised_and_not_that_others_were_woken():
    def work(link):
        if link.rank == 1:
            raise KeyError("mine")
        with pytest.raises(Aborted):
            link.receive(1, MESSAGE)
        link.send(1, MESSAGE, None)

    assert [repr(failure) for failure in all_at_once(group(3), work)] == ["KeyError('mine')"] * 3


def pair_with_silent_rank():
    """Return two ranks of three, the clock that they share, and the function to call when the part of one is over."""
    boxes, clock = [Box() for _ in range(3)], TurnClock((0, 1))
    return [Peers(ThreadChannel(rank, boxes), clock.of(rank)) for rank in range(2)], clock.leave


def test_a_launch_without_a_timeout_ends_after_a_multiple_of_the_longest_one(monkeypatch):
    monkeypatch.setattr(spmd, "SHORTEST_TIMEOUT", 40.0)
    peers, leave = pair_with_silent_rank()
    for one in peers:
        one.slowest = 3.0
    failures = all_at_once(peers, lambda link: link.receive(2, MESSAGE) if link.rank else None, None, leave)
    assert "rank 1 has waited 60 s for F0>1.0 from rank 2" in str(failures[1])


def test_the_longest_launch_is_measured():
    boxes, clock = [Box() for _ in range(2)], TurnClock((0, 1))
    peers = [Peers(ThreadChannel(rank, boxes), clock.of(rank)) for rank in range(2)]
    all_at_once(peers, lambda link: None, None, clock.leave)
    assert all(one.slowest > 0 for one in peers)


def test_a_rank_that_waits_long_says_once_for_what_and_for_whom(monkeypatch, capsys):
    monkeypatch.setattr(spmd, "SHORTEST_HINT", 20.0)
    peers, leave = pair_with_silent_rank()
    all_at_once(peers, lambda link: link.receive(2, MESSAGE) if link.rank else None, 60, leave)
    hints = capsys.readouterr().err
    assert hints.count("retrograd: rank 1 has waited 20 s for F0>1.0 from rank 2") == 1
    assert "rank 2: no answer" in hints


def test_a_rank_that_can_be_woken_sleeps_after_each_poll_that_finds_nothing():
    """A thread that polled on would take turns of the interpreter from the rank that it waits for."""
    slept = []
    peers = Peers(ThreadChannel(0, [Box()]), TurnClock([0]).of(0), sleep=slept.append)
    assert peers.until(lambda: len(slept) == 3, timeout=10, awake=5000)
    member = Subgroup(peers, [0], "some", None).peers
    assert member.until(lambda: len(slept) == 5, timeout=10, awake=5000)


def test_a_packet_wakes_a_rank_also_if_it_arrives_between_a_poll_and_the_sleep():
    boxes = [Box(), Box()]
    sender, receiver = (ThreadChannel(rank, boxes) for rank in range(2))
    assert receiver.poll() == []
    sender.send(1, (0, "subject", b""), ())
    assert boxes[1].arrival.is_set()  # so the sleep ends at once
    receiver.sleep(60.0)
    assert not boxes[1].arrival.is_set()  # the next one does not
    assert receiver.poll() == [(0, (0, "subject", b""), [])]
