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
    """Return, for each number of elements and dtype, the vectors of all ranks, which each rank reads and writes.

    They are zeros.  None if that is not possible: it is for processes of MPI on one host with enough memory for files,
    and for dtypes that Python's operators on arrays compute with.  All ranks must call it.
    """
    sizes = [size * dtype.itemsize for size, dtype in zip(sizes, dtypes, strict=True)]
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
        broadcast_object_list(name, group=group, group_src=0)
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


def part_of_rank(rank: int, count: int, size: int) -> slice:
    """Return the part of vectors of that size that one of `count` ranks sums."""
    return slice(rank * size // count, (rank + 1) * size // count)


def has_layout(x: Tensor, like: Tensor) -> bool:
    """Return whether a tensor is an array like another one, whose elements are writable and in row-major order."""
    value, other = x.value, like.value
    if type(value) is not type(other) or value.dtype != other.dtype:
        return False
    return bool(value.flags.c_contiguous and value.flags.writeable)


def average_shared(
    call: str, group: ProcessGroup, vectors: Sequence[Tensor], own: Sequence[tuple[int, Any]], divisor: int
) -> Work | None:
    """Start to write the sum of the vectors of all ranks, divided by a number, into each of them.

    vectors: shared ones, by rank; this rank has written its own, except the part that it sums.  own: the elements of
    that part, in arrays with the index of their first one; their sums are written into these arrays.
    """
    exchange = Exchange(group, call, {"tensor": vectors[0].aval, "divisor": divisor})
    return start(group, exchange, _average(group.comm, vectors, own, divisor, exchange.number % TAGS), async_op=True)


def _average(comm: Any, vectors: Sequence[Tensor], own: Sequence[tuple[int, Any]], divisor: int, tag: int) -> Steps:
    """Sum one part of all vectors, which no other rank reads or writes, between two messages of all ranks to all.

    The first ones are a barrier.  The ranks sum in the order in which they find time, so the second ones are none: they
    are in no order with the operations that the ranks start meanwhile.
    """
    others = [rank for rank in range(comm.size) if rank != comm.rank]
    summed = [comm.Irecv(bytearray(), rank, tag) for rank in others]
    written = comm.Ibarrier()
    yield written.Test
    _average_part([vectors[rank].value for rank in others], own, 1 / divisor)
    summed += [comm.Isend(b"", rank, tag) for rank in others]
    yield lambda: all(request.Test() for request in summed)
    bump_version(vectors[comm.rank])
    return [vectors[comm.rank]]


def _average_part(others: Sequence[Any], own: Sequence[tuple[int, Any]], factor: float) -> None:
    """Add the vectors of other ranks to arrays of this one; multiply first, so that sums do not overflow."""
    for index, array in own:
        for begin in range(0, array.size, TILE):
            first = array[begin : begin + TILE]
            parts = [x[index + begin : index + begin + first.size] for x in others]
            first *= factor
            for x in parts:
                x *= factor
                first += x
            for x in parts:
                x[...] = first
