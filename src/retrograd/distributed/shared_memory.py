"""Sums of the ranks of one host, in memory that they share: no message carries the values."""

import mmap
import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

from retrograd.core import Tensor
from retrograd.core.tensor import bump_version
from retrograd.distributed.exchange import Exchange, start
from retrograd.distributed.objects import all_gather_object, broadcast_object_list
from retrograd.distributed.work import Steps, Work
from retrograd.ops.functions import functions
from retrograd.pipelining.transports.process_group import ProcessGroup

FOLDER = Path("/dev/shm")  # files in memory, on Linux
ALIGNMENT = 64  # bytes
TAGS = 1 << 15  # that MPI has at least
TILE = 1 << 15  # elements that are summed at a time, so that they stay in the cache until they are copied


def shared_vectors(group: ProcessGroup, sizes: Sequence[int], dtypes: Sequence[Any]) -> list[list[Tensor]] | None:
    """Return, for each number of bytes and dtype, the vectors of all ranks, which each rank reads and writes.

    They are zeros.  None if that is not possible: it is for processes of MPI on one host with enough memory for files,
    and for dtypes that Python's operators on arrays compute with.  All ranks must call it.
    """
    starts = list(accumulate([size + -size % ALIGNMENT for size in sizes], initial=0))
    plain = all(dtype.kind in "fc" for dtype in dtypes)
    memory = _share_memory(group, starts[-1] * group.size()) if plain else None
    if memory is None:
        return None

    def vector(rank: int, start: int, size: int, dtype: Any) -> Tensor:
        found: Tensor = functions["frombuffer"](memory, dtype="uint8", count=size, offset=rank * starts[-1] + start)
        return found.view(dtype)

    parts = list(zip(starts[:-1], sizes, dtypes, strict=True))
    return [[vector(rank, *part) for rank in range(group.size())] for part in parts]


def _share_memory(group: ProcessGroup, size: int) -> mmap.mmap | None:
    if group.comm is None or group.size() == 1:
        return None
    name: list[str | None] = [None]
    mapped = [False] * group.size()
    with ExitStack() as stack:  # removes the file; the ranks keep its memory
        if group.rank() == 0:
            with suppress(OSError):
                file = stack.enter_context(tempfile.NamedTemporaryFile(prefix="retrograd-", dir=FOLDER))
                os.posix_fallocate(file.fileno(), 0, size)  # without room, writing to the memory would end the process
                name = [file.name]
        broadcast_object_list(name, 0, group)
        found = None if name[0] is None else _map_file(name[0], size)
        all_gather_object(mapped, found is not None, group)
    return found if all(mapped) else None


def _map_file(name: str, size: int) -> mmap.mmap | None:
    """Return the memory of a file, or None on another host, where it is not."""
    try:
        with open(name, "r+b") as file:
            return mmap.mmap(file.fileno(), size)
    except (OSError, ValueError):
        return None


def average_shared(call: str, group: ProcessGroup, vectors: Sequence[Tensor], divisor: int) -> Work | None:
    """Start to write the sum of the vectors of all ranks, divided by a number, into each of them.

    vectors: shared ones, by rank; this rank has written its own.
    """
    exchange = Exchange(group, call, {"tensor": vectors[0].aval, "divisor": divisor})
    return start(group, exchange, _average(group.comm, vectors, divisor, exchange.number % TAGS), async_op=True)


def _average(comm: Any, vectors: Sequence[Tensor], divisor: int, tag: int) -> Steps:
    """Sum one part of all vectors, which no other rank reads or writes, between two messages of all ranks to all.

    The first ones are a barrier.  The ranks sum in the order in which they find time, so the second ones are none: they
    are in no order with the operations that the ranks start meanwhile.
    """
    others = [rank for rank in range(comm.size) if rank != comm.rank]
    summed = [comm.Irecv(bytearray(), rank, tag) for rank in others]
    written = comm.Ibarrier()
    yield written.Test
    _average_part([x.value for x in vectors], comm.rank, 1 / divisor)
    summed += [comm.Isend(b"", rank, tag) for rank in others]
    yield lambda: all(request.Test() for request in summed)
    bump_version(vectors[comm.rank])
    return [vectors[comm.rank]]


def _average_part(arrays: Sequence[Any], index: int, factor: float) -> None:
    """Sum one of as many parts as there are arrays; multiply first, so that sums do not overflow."""
    size, count = arrays[0].size, len(arrays)
    end = (index + 1) * size // count
    for begin in range(index * size // count, end, TILE):
        first, *rest = [array[begin : min(begin + TILE, end)] for array in arrays]
        first *= factor
        for x in rest:
            x *= factor
            first += x
        for x in rest:
            x[...] = first
