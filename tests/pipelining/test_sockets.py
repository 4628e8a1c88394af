"""Ranks that find each other by a store exchange packets over TCP, in order, whatever their sizes."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograd.distributed as dist
from retrograd.pipelining.transports.rank_messaging import SMALL, Kind
from retrograd.pipelining.transports.sockets import SocketChannel, connect

HOST = "127.0.0.1"


def run_ranks(ranks, function):
    """Return by rank what a function of the rank returns in a thread for each rank."""
    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(function, range(ranks)))


@contextmanager
def channels(ranks):
    store = dist.HashStore()
    made = run_ranks(ranks, lambda rank: SocketChannel(rank, connect(rank, ranks, store, HOST, 60)))
    try:
        yield made
    finally:
        for channel in made:
            channel.close()


def connected(rank, ranks, store):
    """Return the ranks that one has a connection to, which is closed."""
    found = connect(rank, ranks, store, HOST, 60)
    for connection in found.values():
        connection.close()
    return list(found)


def received(channel, count):
    """Return the next packets that arrive."""
    found = []
    while len(found) < count:
        found += channel.poll()
    return found


@settings(max_examples=20)
@given(st.lists(st.lists(st.sampled_from([0, 1, SMALL, SMALL + 1, 300_000]), max_size=4), min_size=1, max_size=8))
def test_packets_arrive_in_order_with_their_bytes(packets):
    with channels(2) as (first, second):
        random = np.random.default_rng(0)
        sent = [[random.integers(0, 256, size, np.uint8) for size in sizes] for sizes in packets]
        for number, buffers in enumerate(sent):
            first.send(1, (int(Kind.DIRECT), number, b"header"), buffers)
            second.send(0, (int(Kind.DIRECT), -number, b""), buffers)
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(received, (first, second), [len(sent)] * 2))
        for found, sign, sender in zip(results, (-1, 1), (1, 0), strict=True):
            assert [(rank, head[1]) for rank, head, _ in found] == [(sender, sign * n) for n in range(len(sent))]
            for (_, _, parts), buffers in zip(found, sent, strict=True):
                assert [bytes(part) for part in parts] == [b.tobytes() for b in buffers]


def test_numbers_without_dimensions_and_complex_ones_arrive():
    with channels(2) as (first, second):
        arrays = [np.array(3), np.array(2.5, np.float16), np.ones(3000, np.complex64), np.zeros((0, 2))]
        first.send(1, (int(Kind.DIRECT), 0, b""), arrays)
        ((_, _, parts),) = received(second, 1)
        assert [bytes(part) for part in parts] == [a.tobytes() for a in arrays]


def test_more_than_the_system_holds_is_sent_while_the_receiver_polls():
    with channels(2) as (first, second):
        array = np.arange(4 << 20)
        first.send(1, (int(Kind.DIRECT), 0, b""), [array])
        assert first.pending()
        found = []
        while not found:
            first.poll()
            found = second.poll()
        assert not first.pending()
        assert np.array_equal(np.frombuffer(found[0][2][0], array.dtype), array)


def test_the_end_of_a_process_is_a_farewell_with_a_reason():
    with channels(3) as (first, second, third):
        first.send(1, (int(Kind.LEFT), None, b""), [])
        for channel in (first, third):
            for one in channel._connections.values():
                one.socket.close()
        found = sorted(received(second, 2))
        assert found[0] == (0, (Kind.LEFT, None, b""), [])
        assert found[1] == (2, (Kind.LEFT, (2, "the connection to its process has ended"), b""), ())
        second.send(2, (int(Kind.DIRECT), 0, b""), [np.zeros(9)])  # a rank that is gone takes everything
        assert second.poll() == []


def test_a_rank_that_does_not_come_is_named():
    store = dist.HashStore()
    # any load: nobody else comes
    with pytest.raises(TimeoutError, match=r"rank 0 has waited 0.01 s for connections of \[1, 2\]"):
        connect(0, 3, store, HOST, 0.01)


def test_a_connection_without_the_token_of_the_store_is_closed():
    store, found = dist.HashStore(), {}

    def stranger():
        port = int(store.get("retrograd/1/0").split()[0])
        with socket.create_connection((HOST, port)) as connection:
            connection.sendall(bytes(36))
            found["answer"] = connection.recv(1)
        found["rank 1"] = connected(1, 2, store)

    thread = threading.Thread(target=stranger)
    thread.start()
    assert connected(0, 2, store) == [1]
    thread.join()
    assert found["answer"] == b""
    assert found["rank 1"] == [0]


def test_a_store_connects_the_same_ranks_again():
    store = dist.HashStore()
    for _ in range(2):
        assert run_ranks(2, lambda rank: connected(rank, 2, store)) == [[1], [0]]
