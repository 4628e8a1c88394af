"""Checks that every transport must pass, run in each process of a launch by `test_transports.py`.

As a script it runs all checks over the named transport, in every process, and the first rank prints the failures as
JSON: `mpiexec -n 3 python conformance.py mpi`.  Over "sockets", environment variables say which rank it is.
"""

import json
import re
import sys
import traceback
from typing import NamedTuple

import numpy as np

import retrograd as rg
import retrograd.distributed as dist
from retrograd.pipelining.schedules.actions import Message
from retrograd.pipelining.transports import Aborted, Arrival, get_transport

RANKS = 3
PATIENCE = 5  # seconds: on a busy machine, too, a rank that does not hang gets a core within them, and answers
DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128")


class Pair(NamedTuple):
    """A user-defined container."""

    left: object
    right: object


class UnpicklableError(Exception):
    """An error that can't be pickled."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def message(number, source=0, target=1, direction="F"):
    """Return a message between two ranks."""
    return Message(direction, source, target, number)


def sent(transport, payloads):
    """Return what rank 1 receives of payloads that rank 0 sends to it, in every process."""

    def work(link):
        if link.rank == 0:
            for number, payload in enumerate(payloads):
                link.send(1, message(number), payload)
        if link.rank == 1:
            link.expect([Arrival(0, message(number)) for number in range(len(payloads))])
            return [link.receive(0, message(number)) for number in range(len(payloads))]
        return None

    return transport.launch(RANKS, work)[1]


def failure_of(transport, work):
    """Return the error that a launch raises."""
    try:
        transport.launch(RANKS, work)
    except BaseException as failure:
        return failure
    raise AssertionError("the launch has not failed")


def results_come_by_rank(transport):
    results = transport.launch(RANKS, lambda link: {"tensor": rg.full((2,), float(link.rank)), "rank": link.rank})
    assert [result["rank"] for result in results] == list(range(RANKS))
    assert [result["tensor"].tolist() for result in results] == [[rank, rank] for rank in range(RANKS)]


def messages_arrive_whatever_the_order_of_sending(transport):
    def work(link):
        after, before = (link.rank + 1) % RANKS, (link.rank - 1) % RANKS
        for number in reversed(range(4)):
            link.send(after, message(number, link.rank, after), number * 10)
        return [link.receive(before, message(number, before, link.rank)) for number in range(4)]

    assert transport.launch(RANKS, work) == [[0, 10, 20, 30]] * RANKS


def a_rank_can_write_to_itself(transport):
    def work(link):
        link.send(link.rank, message(0, 3, 4), rg.ones(2))
        return link.receive(link.rank, message(0, 3, 4)).sum().item()

    assert transport.launch(RANKS, work) == [2] * RANKS


def tensors_of_every_dtype_and_layout_arrive_as_they_are(transport):
    numbers = rg.arange(24).reshape(2, 3, 4)
    tensors = [numbers.to(getattr(rg, dtype)) for dtype in DTYPES]
    tensors += [numbers.permute(2, 0, 1), numbers[:, 1:, ::2], numbers[0, 0].expand(3, 4), rg.tensor(1.5)]
    tensors += [rg.ones(0, 3), rg.tensor([float("nan"), -0.0, float("inf")]), numbers.flip(1), rg.ones(2, 1, 5)]
    tensors += [rg.ones(3).requires_grad_()]
    for before, after in zip(tensors, sent(transport, tensors), strict=True):
        assert (after.dtype, after.shape, after.requires_grad) == (before.dtype, before.shape, before.requires_grad)
        assert after.detach().numpy().tobytes() == before.detach().numpy().tobytes()
    assert sent(transport, [tensors[len(DTYPES)]])[0].stride() == numbers.permute(2, 0, 1).stride()


def each_message_has_its_own_shapes(transport):
    ragged = [[rg.full((size, 2), float(size)) for size in sizes] for sizes in ((3, 1), (), (4, 2, 5))]
    tensors = [rg.nested.nested_tensor(parts) for parts in ragged if parts] + [rg.ones(size) for size in range(5)]
    tensors.append(rg.nested.nested_tensor(ragged[2]).transpose(1, 2))
    for before, after in zip(tensors, sent(transport, tensors), strict=True):
        assert before.shape == after.shape
        assert rg.equal(before, after)


def containers_and_plain_data_arrive_as_they_are(transport):
    tensor = rg.ones(2)
    payloads = [None, {}, [], 1.5, "text", Pair(1, (2, None)), {"a": [True, {"b": (1, 2)}], 3: 4}]
    got = sent(transport, [*payloads, Pair(tensor, [tensor, {"x": tensor}])])
    assert got[:-1] == payloads
    assert [type(payload) for payload in got[:-1]] == [type(payload) for payload in payloads]
    assert type(got[-1]) is Pair
    assert got[-1].right[1]["x"].tolist() == [1, 1]


def many_large_messages_can_be_on_their_way_in_both_directions(transport):
    def work(link):
        if link.rank == 2:
            return None
        other = 1 - link.rank
        for number in range(60):
            link.send(other, message(number, link.rank, other), rg.full((sizes[number % 4],), float(number)))
        got = [link.receive(other, message(number, other, link.rank)) for number in range(60)]
        return [(len(tensor), tensor.min().item(), tensor.max().item()) for tensor in got]

    sizes = [10, 1 << 16, 3 << 18, 1 << 20]
    expected = [(sizes[number % 4], number, number) for number in range(60)]
    assert transport.launch(RANKS, work)[:2] == [expected, expected]


def a_failure_wakes_those_who_wait_and_is_the_one_that_is_raised(transport):
    outcomes = []

    def work(link):
        if link.rank == 0:
            raise RuntimeError("first") from KeyError("why")
        try:
            link.receive(0, message(0, 0, link.rank))
        except Aborted:
            outcomes.append("woken")
            raise

    failure = failure_of(transport, work)
    assert type(failure) is RuntimeError
    assert str(failure) == "first"
    assert type(failure.__cause__) is KeyError
    assert len(outcomes) == (2 if transport.local is None else 0 if 0 in transport.local else 1)
    if transport.local is not None and 0 not in transport.local:
        assert "in work" in failure.__notes__[0]  # the traceback on its own rank


def a_failure_that_can_not_travel_is_told_in_words(transport):
    def work(link):
        if link.rank == 1:
            raise UnpicklableError("this", "that")

    assert "this and that" in str(failure_of(transport, work))


def after_a_failure_the_next_launch_starts_clean(transport):
    def fails(link):
        for number in range(5):
            link.send((link.rank + 1) % RANKS, message(number), rg.full((1 << 17,), -1.0))
        if link.rank == 1:
            raise KeyError("stale")
        link.receive(1, message(9))

    assert type(failure_of(transport, fails)) is KeyError
    assert sent(transport, ["fresh", rg.ones(3)])[0] == "fresh"


def what_nobody_has_received_is_not_delivered_to_the_next_launch(transport):
    transport.launch(RANKS, lambda link: link.send((link.rank + 1) % RANKS, message(0), rg.ones(1 << 17)))
    assert sent(transport, ["fresh"]) == ["fresh"]


def a_timeout_says_who_waits_for_what_from_whom(transport):
    def work(link):
        link.doing = f"plays RECV_F1.{link.rank}<0"
        if link.rank != 0:
            link.receive(0, message(3, 0, link.rank))

    name = type(transport).__name__.lower()
    failure = failure_of(get_transport("auto" if name == "sockets" else name, timeout=PATIENCE), work)
    assert type(failure) is TimeoutError
    text = str(failure)
    assert re.search(rf"has waited {PATIENCE} s for F0>\d.3 from rank 0:", text)
    assert "rank 1: plays RECV_F1.1<0" in text
    assert "rank 2: plays RECV_F1.2<0" in text
    assert sent(transport, ["fresh"]) == ["fresh"]


def ranks_see_the_context_of_who_launches_them(transport):
    with np.errstate(divide="raise", over="ignore"):
        seen = transport.launch(RANKS, lambda link: np.geterr())
    assert [(settings["divide"], settings["over"]) for settings in seen] == [("raise", "ignore")] * RANKS


def another_number_of_ranks_than_there_are_processes_is_refused(transport):
    if transport.world is not None:
        try:
            transport.launch(RANKS + 4, lambda link: None)
        except ValueError as error:
            assert str(RANKS + 4) in str(error)  # noqa: PT017
            assert f"has started {RANKS}" in str(error)  # noqa: PT017
        else:
            raise AssertionError("it was not refused")


CHECKS = {
    check.__name__: check
    for check in list(globals().values())
    if getattr(check, "__module__", None) == __name__ and getattr(check, "__code__", None)
    if check.__code__.co_varnames[:1] == ("transport",) and check.__code__.co_argcount == 1
}


def outcomes(transport):
    """Return by name the traceback of a check that fails in this process, or None."""
    found = {}
    for name, check in CHECKS.items():
        try:
            check(transport)
            found[name] = None
        except Exception:
            found[name] = traceback.format_exc()
    return found


def main(name):
    """Run all checks, and print the outcomes of all processes."""
    if name == "sockets":
        dist.init_process_group()
        name = "auto"
    transport = get_transport(name, timeout=60)  # where a check fails in one process only, the others wait in vain
    mine = outcomes(transport)
    every = transport.launch(RANKS, lambda link: mine)
    if transport.local is None or 0 in transport.local:
        print(json.dumps(every))


if __name__ == "__main__":
    main(sys.argv[1])
