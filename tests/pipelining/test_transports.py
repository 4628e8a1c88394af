"""What every transport does: deliver each message to who waits for it, and never leave anyone waiting."""

import gc
import weakref

import numpy as np
import pytest

from retrograd.pipelining.actions import Message
from retrograd.pipelining.transports import TRANSPORTS, Aborted, get_transport


@pytest.fixture(params=sorted(TRANSPORTS))
def transport(request):
    return get_transport(request.param)


def test_results_come_by_rank(transport):
    assert transport.launch(5, lambda rank: rank * rank) == [0, 1, 4, 9, 16]


def test_messages_arrive_whatever_the_order_of_sending(transport):
    def work(rank):
        if rank == 0:
            for micro_batch in reversed(range(4)):
                transport.send(Message("F", 0, 1, micro_batch), micro_batch * 10)
            return None
        return [transport.receive(Message("F", 0, 1, micro_batch)) for micro_batch in range(4)]

    assert transport.launch(2, work)[1] == [0, 10, 20, 30]


def test_a_failure_wakes_those_who_wait_and_is_the_one_that_is_raised(transport):
    outcomes = {}

    def work(rank):
        if rank == 0:
            raise KeyError("first")
        try:
            transport.receive(Message("F", 0, rank, 0))
        except Aborted:
            outcomes[rank] = "woken"
            raise

    with pytest.raises(KeyError, match="first"):
        transport.launch(3, work)
    assert set(outcomes) <= {1, 2}


def test_after_a_failure_the_next_launch_starts_clean(transport):
    def fails(rank):
        transport.send(Message("F", 0, 1, 0), "stale")
        raise KeyError

    with pytest.raises(KeyError):
        transport.launch(1, fails)
    message = Message("F", 0, 1, 0)
    work = {0: lambda: transport.send(message, "fresh"), 1: lambda: transport.receive(message)}
    assert transport.launch(2, lambda rank: work[rank]())[1] == "fresh"


def test_an_unknown_transport_is_refused_with_a_list():
    with pytest.raises(ValueError, match="threads"):
        get_transport("pigeons")


class Payload:
    """Something that can be seen to be gone."""


def test_after_a_failure_nobody_keeps_the_mail(transport):
    references = []

    def send():
        payload = Payload()
        references.append(weakref.ref(payload))
        transport.send(Message("F", 0, 1, 0), payload)

    def fails(rank):
        send()
        raise KeyError

    with pytest.raises(KeyError):
        transport.launch(1, fails)
    gc.collect()
    assert references[0]() is None


def test_ranks_see_the_context_of_who_launches_them(transport):
    with np.errstate(divide="raise", over="ignore"):
        seen = transport.launch(2, lambda rank: np.geterr())
    assert [(settings["divide"], settings["over"]) for settings in seen] == [("raise", "ignore")] * 2
