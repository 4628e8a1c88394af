"""Objects sent from a worker process, the memory of large arrays by file descriptors instead of through the pipe.

The memory is an anonymous file (`memfd_create` of Linux): it has no name, so the system frees it when the last process
that has it ends, also if one of them is killed.  Where there is no such file, everything is sent through the pipe.
"""

import mmap
import os
import pickle
import socket
import weakref
from multiprocessing.connection import Connection
from typing import Any

LEAST_BYTES = 1 << 16  # less than that goes through the pipe, as it is faster there
ALIGNMENT = 64
MOST_MAPPINGS = 256  # each keeps a file descriptor open, of which a process often has 1,024; more data is copied
_PLAIN, _WITH_MEMORY = b"\0", b"\1"
_mappings: "weakref.WeakSet[mmap.mmap]" = weakref.WeakSet()


class Packed:
    """An object as bytes, and the memory of its large arrays in a file."""

    def __init__(self, data: bytes, sizes: list[int] | None = None, file: int | None = None) -> None:
        self.message = _PLAIN + data if file is None else _WITH_MEMORY + pickle.dumps((sizes, data))
        self.file = file


def pack(value: Any) -> Packed:
    """Return an object to be sent; it must be sent, which closes its file."""
    if not (hasattr(os, "memfd_create") and hasattr(socket, "send_fds")):
        return Packed(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    buffers: list[memoryview] = []

    def is_small(buffer: pickle.PickleBuffer) -> bool:
        """Return whether a buffer stays in the bytes; note the others."""
        large = buffer.raw().nbytes >= LEAST_BYTES
        if large:
            buffers.append(buffer.raw())
        return not large

    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL, buffer_callback=is_small)
    if not buffers:
        return Packed(data)
    try:
        return Packed(data, [b.nbytes for b in buffers], _write(buffers))
    except OSError:  # no memory, or no descriptor left
        return Packed(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def send_packed(connection: Connection, packed: Packed) -> None:
    """Send a packed object; OSError if nobody reads."""
    try:
        connection.send_bytes(packed.message)
        if packed.file is not None:
            _send_file(connection, packed.file)
    finally:
        if packed.file is not None:
            os.close(packed.file)


def receive_packed(connection: Connection) -> Any:
    """Return the next object of a connection; EOFError or OSError if its sender has ended."""
    message = connection.recv_bytes()
    if message[:1] == _PLAIN:
        return pickle.loads(memoryview(message)[1:])
    file = _receive_file(connection)
    try:
        sizes, data = pickle.loads(memoryview(message)[1:])
        memory = _map(file, _end(sizes))
    finally:
        os.close(file)
    starts = [_end(sizes[:i]) for i in range(len(sizes))]
    return pickle.loads(data, buffers=[memory[s : s + n] for s, n in zip(starts, sizes, strict=True)])


def skip_packed(connection: Connection) -> None:
    """Discard the next object of a connection."""
    if connection.recv_bytes()[:1] == _WITH_MEMORY:
        os.close(_receive_file(connection))


# Not by `multiprocessing.reduction`: from Python 3.14 on, it waits for an answer, on the connection that brings tasks.
def _send_file(connection: Connection, file: int) -> None:
    with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as link:
        socket.send_fds(link, [b"F"], [file])


def _receive_file(connection: Connection) -> int:
    """Return a new descriptor of the file that comes next; EOFError if the sender has ended."""
    with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as link:
        _, files, _, _ = socket.recv_fds(link, 1, 1)
    if not files:
        raise EOFError
    return files[0]


def _end(sizes: list[int]) -> int:
    """Return where buffers of these sizes end, each of which begins at a multiple of ALIGNMENT."""
    return sum(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)


def _write(buffers: list[memoryview]) -> int:
    """Return the descriptor of an anonymous file with the content of the buffers."""
    file = os.memfd_create("retrograd batch")
    try:
        sizes = [b.nbytes for b in buffers]
        os.ftruncate(file, _end(sizes))
        for i, buffer in enumerate(buffers):
            start = _end(sizes[:i])
            while buffer:
                written = os.pwrite(file, buffer, start)
                start, buffer = start + written, buffer[written:]
    except BaseException:
        os.close(file)
        raise
    return file


def _map(file: int, size: int) -> memoryview:
    """Return the memory of a file, or a copy of it if there are many mappings already."""
    if len(_mappings) < MOST_MAPPINGS:
        mapping = mmap.mmap(file, size)
        _mappings.add(mapping)
        return memoryview(mapping)
    content, start = bytearray(size), 0
    while start < size:
        start += os.preadv(file, [memoryview(content)[start:]], start)
    return memoryview(content)
