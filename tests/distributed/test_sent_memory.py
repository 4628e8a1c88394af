"""Operations send tensors from their own memory, and end when it may be written to again."""

from functools import reduce

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd.distributed import collectives
from retrograd.distributed.reduce_op import ReduceOp
from retrograd.pipelining.transports import thread_ranks

RANKS = 3


class LateChannel(thread_ranks.ThreadChannel):
    """A channel that reads what a rank sends no earlier than the receiver polls, as a slow network does."""

    sizes = []  # noqa: RUF012 (bytes of what was sent, on all ranks)

    def send(self, rank, head, buffers):
        taken, box = [], self.boxes[rank]
        self.sizes.extend(memoryview(buffer).nbytes for buffer in buffers)
        box.packets.append((self.rank, head, buffers, taken))
        box.arrival.set()
        return lambda: bool(taken)

    def poll(self):
        packets, box = [], self.boxes[self.rank].packets
        for _ in range(len(box)):
            rank, head, buffers, taken = box.popleft()
            packets.append((rank, head, [bytearray(buffer) for buffer in buffers]))
            taken.append(True)
        return packets


@pytest.fixture
def late(monkeypatch):
    monkeypatch.setattr(thread_ranks, "ThreadChannel", LateChannel)
    monkeypatch.setattr(LateChannel, "sizes", [])
    return LateChannel


def values(rank, *shape):
    return np.random.default_rng(rank).standard_normal(shape).astype(np.float32)


def all_reduce(x):
    dist.all_reduce(x)
    return x


def reduce_to_last(x):
    found = x.clone()
    dist.reduce(found, RANKS - 1)
    return found


def broadcast(x):
    found = x.clone()
    dist.broadcast(found, 1)
    copy = found.clone()
    found.fill_(-1)
    return copy


def all_gather(x):
    found = [rg.empty(x.shape) for _ in range(RANKS)]
    dist.all_gather(found, x)
    return rg.cat(found)


def all_gather_into_tensor(x):
    found = rg.empty(RANKS * x.shape[0], *x.shape[1:])
    dist.all_gather_into_tensor(found, x)
    return found


def reduce_scatter_tensor(x):
    found = rg.empty(x.shape[0] // RANKS, *x.shape[1:])
    dist.reduce_scatter_tensor(found, x)
    return found


def gather(x):
    found = [rg.empty(x.shape) for _ in range(RANKS)] if dist.get_rank() == 0 else None
    dist.gather(x, found)
    return rg.cat(found) if found else x.clone()


def scatter(x):
    found = rg.empty(x.shape[0] // RANKS, *x.shape[1:])
    dist.scatter(found, list(x.chunk(RANKS)) if dist.get_rank() == 0 else None)
    return found


def all_to_all(x):
    """Write to the memory that is sent."""
    parts = list(x.chunk(RANKS))
    dist.all_to_all(parts, parts)
    return x.clone()


def all_to_all_single(x):
    found = rg.empty(x.shape)
    dist.all_to_all_single(found, x)
    return found


EXPECTED = {
    all_reduce: lambda rank, of: reduce(np.add, of),
    reduce_to_last: lambda rank, of: reduce(np.add, of) if rank == RANKS - 1 else of[rank],
    broadcast: lambda rank, of: of[1],
    all_gather: lambda rank, of: np.concatenate(of),
    all_gather_into_tensor: lambda rank, of: np.concatenate(of),
    reduce_scatter_tensor: lambda rank, of: np.split(reduce(np.add, of), RANKS)[rank],
    gather: lambda rank, of: np.concatenate(of) if rank == 0 else of[rank],
    scatter: lambda rank, of: np.split(of[0], RANKS)[rank],
    all_to_all: lambda rank, of: np.concatenate([np.split(each, RANKS)[rank] for each in of]),
    all_to_all_single: lambda rank, of: np.concatenate([np.split(each, RANKS)[rank] for each in of]),
}


@pytest.mark.parametrize("operation", EXPECTED, ids=lambda operation: operation.__name__)
def test_what_is_written_after_an_operation_does_not_reach_other_ranks(late, monkeypatch, operation):
    monkeypatch.setattr(collectives, "CHUNK", 64)

    def script():
        x = rg.tensor(values(dist.get_rank(), 6, 35))
        found = operation(x).clone()
        x.fill_(-1)
        return found

    of = [values(rank, 6, 35) for rank in range(RANKS)]
    for rank, found in enumerate(dist.run_threads(script, RANKS)):
        np.testing.assert_array_equal(found.numpy(), EXPECTED[operation](rank, of), str(rank))


@pytest.mark.parametrize("op", [ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT, ReduceOp.MAX], ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (2,), (16,), (7, 31)], ids=str)
def test_sums_by_chunks_are_those_of_whole_tensors_to_the_last_bit(monkeypatch, op, shape):
    monkeypatch.setattr(collectives, "CHUNK", 64)

    def script():
        x = rg.tensor(values(dist.get_rank(), *shape[::-1]))
        rows, columns = x.clone(), x.mT if x.ndim > 1 else x  # the latter has gaps
        dist.all_reduce(rows, op)
        dist.all_reduce(columns, op)
        return rows, columns

    combine = {ReduceOp.PRODUCT: np.multiply, ReduceOp.MAX: np.maximum}.get(op, np.add)
    expected = reduce(combine, [values(rank, *shape[::-1]) for rank in range(RANKS)])
    if op is ReduceOp.AVG:
        expected = expected / np.float32(RANKS)
    for rows, columns in dist.run_threads(script, RANKS):
        np.testing.assert_array_equal(rows.numpy(), expected)
        np.testing.assert_array_equal(columns.numpy(), expected.T)


def test_a_sum_sends_each_element_once_to_its_owner_and_once_to_each_other_rank(late):
    size = 3 << 16
    dist.run_threads(lambda: dist.all_reduce(rg.ones(size)), RANKS)
    assert sum(late.sizes) == 2 * (RANKS - 1) * size * 4
