"""A receive ends early only if no rank is left that could send the message; its errors name the sender."""

import datetime

import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd.distributed import work
from retrograd.pipelining.transports.interface import PeerLost


@pytest.mark.parametrize("source", [1, None])
def test_a_receive_continues_when_the_script_of_another_rank_than_the_sender_is_over(monkeypatch, source):
    monkeypatch.setattr(work, "GRACE", 0)

    def script():
        x = rg.zeros(1)
        if dist.get_rank() == 0:
            dist.recv(x, source)
        elif dist.get_rank() == 1:
            with pytest.raises(PeerLost, match="the script of rank 2 is over, while rank 1 is in recv"):
                dist.recv(rg.zeros(1), 2)
            later = dist.irecv(rg.zeros(1), 0, tag=1)  # rank 0 notices in the meantime that rank 2 has ended
            for _ in range(2000):
                later.is_completed()
            dist.send(rg.ones(1), 0)
        return x.item()

    assert dist.run_threads(script, 3)[0] == 1.0


@pytest.mark.parametrize("source", [1, None])
def test_a_receive_ends_when_all_possible_senders_are_over(source):
    def script():
        if dist.get_rank() == 0:
            with pytest.raises(PeerLost, match="is over, while rank 0 is in recv"):
                dist.recv(rg.zeros(1), source)

    dist.run_threads(script, 3)


def test_a_receive_that_is_not_answered_in_time_names_the_sender():
    found = {}

    def script():
        rank = dist.get_rank()
        if rank == 0:
            try:
                dist.irecv(rg.zeros(1), 1).wait(datetime.timedelta(seconds=0.5))  # any load: nobody sends
            except TimeoutError as error:
                found["text"] = str(error)
        dist.barrier()

    dist.run_threads(script, 2)
    first, own, _ = found["text"].splitlines()
    assert first == "rank 0 has waited 0.5 s for a message from rank 1 in recv:"
    assert own == "  rank 0: waits for a message from rank 1 in recv"
