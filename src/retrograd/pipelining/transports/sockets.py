"""Ranks as processes that find each other by a store and exchange packets over TCP: no launcher and no MPI."""

import hmac
import pickle
import secrets
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from multiprocessing.util import Finalize
from struct import Struct
from typing import Any, Protocol

from retrograd.backend import memory
from retrograd.pipelining.transports.fingerprint import Fingerprint
from retrograd.pipelining.transports.interface import Link
from retrograd.pipelining.transports.rank_messaging import LEAVING, SMALL, Head, Kind, Packet, Peers, Sent
from retrograd.pipelining.transports.spmd import default_timeout, launch
from retrograd.pipelining.transports.status_file import open_status_file
from retrograd.pipelining.transports.uncaught import error_at_end, report_uncaught_errors

PARTS = 512  # buffers in one call of the system, which takes 1,024
TURN = 1 << 20  # bytes that are received before the next ones are sent
TOKEN = 32  # bytes that only processes with the store know
_SIZE, _RANK = Struct(">Q"), Struct(">I")


class KeyValueStore(Protocol):
    """The part of a store that connects ranks: values by key, for which `get` waits."""

    def set(self, key: str, value: str | bytes) -> None:
        """Set a value."""

    def get(self, key: str) -> bytes:
        """Wait for a value, and return it."""

    def add(self, key: str, amount: int) -> int:
        """Add to a number, and return the sum."""


class Sockets:
    """Every process is one rank; the ranks of a job have a connection for each two of them.

    rank, size: of this process, and the number of processes.  store: one that all of them reach.  host: a name or
    address of this machine by which the others reach it.  timeout: seconds that a rank waits for a message, and for
    the others to connect; None: 20 times the longest launch so far, at least 10 minutes.

    Use networks that you trust: a program that can read the store can connect, and the ranks unpickle its data.

    Raises TimeoutError if ranks do not connect in time.
    """

    def __init__(self, rank: int, size: int, store: KeyValueStore, host: str, timeout: float | None = None) -> None:
        self.timeout = timeout
        self.world: int | None = size
        self.local = [rank]
        key = id(store), rank, size
        found = _connected.get(key)
        if found is None or found.peers.left:
            found = _connected[key] = _Connected(rank, size, store, host, timeout)
        self.peers = found.peers

    def launch(self, ranks: int, work: Callable[[Link], Any], fingerprint: Fingerprint | None = None) -> list[Any]:
        """Run `work(link)` for this process's rank while the other processes do so for theirs.

        Raises ValueError unless there are as many processes as ranks, PeerLost if a process is gone, and in every
        process the first failure of a rank, with that rank's traceback as a note.
        """
        if ranks != self.world:
            raise ValueError(
                f"a pipeline of {ranks} ranks needs {ranks} processes, and the script has started {self.world}"
            )
        return launch(self.peers, work, self.timeout, fingerprint)


class _Connected:
    """The messaging of this process by one store, which all its transports share; the store is kept for the others."""

    def __init__(self, rank: int, size: int, store: KeyValueStore, host: str, timeout: float | None) -> None:
        seconds = default_timeout(0) if timeout is None else timeout
        self.store, self.channel = store, SocketChannel(rank, connect(rank, size, store, host, seconds))
        self.peers = Peers(self.channel, status=open_status_file(), sleep=self.channel.sleep)
        report_uncaught_errors(self.peers)
        Finalize(None, self._leave, exitpriority=0)  # runs at the end of processes of `multiprocessing` too

    def _leave(self) -> None:
        """Wait until the scripts of the others are over, and have all messages of this one."""
        self.peers.leave(LEAVING, error_at_end())
        self.peers.until(lambda: not self.channel.pending(), LEAVING)
        self.channel.close()


_connected: dict[tuple[int, int, int], _Connected] = {}


# ----------------------------------------------------------------------------------------------------- connections


def connect(rank: int, size: int, store: KeyValueStore, host: str, timeout: float) -> dict[int, socket.socket]:
    """Return a connection to every other rank, by rank, when all ranks have called this.

    A store may connect the ranks several times, as they all call this equally often.
    """
    deadline, number = time.monotonic() + timeout, store.add(f"retrograd/connections of {rank}", 1)
    prefix = f"retrograd/{number}"
    found: dict[int, socket.socket] = {}
    with ExitStack() as opened, socket.create_server((host, 0), backlog=size) as server:
        if rank == 0:
            store.set(f"{prefix}/token", secrets.token_bytes(TOKEN).hex())
        token = bytes.fromhex(store.get(f"{prefix}/token").decode())
        store.set(f"{prefix}/{rank}", f"{server.getsockname()[1]} {host}")
        for other in range(rank):
            port, _, address = store.get(f"{prefix}/{other}").decode().partition(" ")
            found[other] = opened.enter_context(socket.create_connection((address, int(port)), _remaining(deadline)))
            found[other].sendall(token + _RANK.pack(rank))
        while len(found) < size - 1:
            server.settimeout(_remaining(deadline))
            try:
                connection = opened.enter_context(server.accept()[0])
                caller = _greeting(connection, token, _remaining(deadline))
            except TimeoutError as error:
                missing = sorted(set(range(size)) - {rank, *found})
                raise TimeoutError(f"rank {rank} has waited {timeout:g} s for connections of {missing}") from error
            if caller is not None:
                found[caller] = connection
        for connection in found.values():
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setblocking(False)
        opened.pop_all()
    return found


def _remaining(deadline: float) -> float:
    """Return the seconds that are left, above 0, which would mean not to wait."""
    return max(deadline - time.monotonic(), 1e-3)


def _greeting(connection: socket.socket, token: bytes, timeout: float) -> int | None:
    """Return the rank that has connected; None if it is no rank of this job, whose connection is closed."""
    connection.settimeout(timeout)
    greeting = bytearray()
    while len(greeting) < TOKEN + _RANK.size:
        part = connection.recv(TOKEN + _RANK.size - len(greeting))
        if not part:
            break
        greeting += part
    if hmac.compare_digest(greeting[:TOKEN], token) and len(greeting) == TOKEN + _RANK.size:
        return int(_RANK.unpack(greeting[TOKEN:])[0])
    connection.close()
    return None


# --------------------------------------------------------------------------------------------------------- packets


class SocketChannel:
    """Packets over connections: the size of a header, the header with small buffers, then the other buffers.

    A process whose connection ends without its farewell is gone; a packet says so.
    """

    def __init__(self, rank: int, connections: dict[int, socket.socket]) -> None:
        self.rank, self.size = rank, len(connections) + 1
        self._connections = {other: _Connection(other, one) for other, one in connections.items()}
        self._selector = selectors.DefaultSelector()
        for one in self._connections.values():
            self._selector.register(one.socket, selectors.EVENT_READ, one)
        self._moving = False

    def send(self, rank: int, head: Head, buffers: Sequence[Any]) -> Sent:
        """Send as much as the connection takes now; `poll` continues."""
        raw = [pickle.PickleBuffer(buffer).raw() for buffer in buffers]
        packet = pickle.dumps((head, [b.nbytes if b.nbytes > SMALL else bytes(b) for b in raw]), 5)
        connection = self._connections[rank]
        connection.outgoing.append(memoryview(_SIZE.pack(len(packet)) + packet))
        connection.outgoing.extend(b for b in raw if b.nbytes > SMALL)
        connection.flush()
        end = connection.removed + len(connection.outgoing)
        return lambda: connection.removed >= end

    def poll(self) -> list[Packet]:
        """Send what waits to be sent, and return the complete packets."""
        self._moving = False
        for one in self._connections.values():
            if one.outgoing:
                self._moving |= one.flush()
        packets: list[Packet] = []
        for key, _ in self._selector.select(0) if self._connections else ():
            one = key.data
            self._moving = True
            if not one.receive(packets):
                self._selector.unregister(one.socket)
        return packets

    def moving(self) -> bool:
        """Return whether data were sent or received by the last poll."""
        return self._moving

    def sleep(self, seconds: float) -> None:
        """Sleep until a connection has data, or takes what waits to be sent."""
        open_ = self._selector.get_map()
        sending = [one for one in self._connections.values() if one.outgoing and one.socket in open_]
        for one in sending:
            self._selector.modify(one.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, one)
        self._selector.select(seconds)
        for one in sending:
            self._selector.modify(one.socket, selectors.EVENT_READ, one)

    def pending(self) -> bool:
        """Return whether packets of this rank are not sent yet."""
        return any(one.outgoing for one in self._connections.values())

    def close(self) -> None:
        """Close the connections."""
        self._selector.close()
        for one in self._connections.values():
            one.socket.close()


class _Connection:
    """The connection to another rank, with what is to be sent; `outgoing` holds the memory of buffers."""

    def __init__(self, rank: int, connection: socket.socket) -> None:
        self.rank, self.socket = rank, connection
        self.outgoing: deque[memoryview] = deque()
        self.removed = 0  # the number of buffers that were sent
        self._packets: list[Packet] = []
        self._left = self._lost = False
        self._targets = self._parse()
        self._target = next(self._targets)

    def flush(self) -> bool:
        """Send what the system takes now; return whether that was anything.  A lost connection takes all."""
        sent = 0
        while self.outgoing and not self._lost:
            try:
                sent = self.socket.sendmsg([self.outgoing[i] for i in range(min(len(self.outgoing), PARTS))])
            except BlockingIOError:
                break
            except OSError:  # `receive` reports it when all has been read
                self._lost = True
                break
            self._remove(sent)
        if self._lost:
            self.removed += len(self.outgoing)
            self.outgoing.clear()
        return bool(sent)

    def _remove(self, sent: int) -> None:
        """Remove the first bytes of what is to be sent."""
        while sent:
            first = self.outgoing.popleft()
            if sent < first.nbytes:
                self.outgoing.appendleft(first[sent:])
                return
            sent -= first.nbytes
            self.removed += 1

    def receive(self, packets: list[Packet]) -> bool:
        """Append the packets that are complete to a list; return False at the end of the connection.

        It reads a part of what has arrived, so that data flow in both directions at the same time.
        """
        open_, left = True, TURN
        while open_ and left > 0:
            try:
                count = self.socket.recv_into(self._target)
                left -= count
            except BlockingIOError:
                break
            except OSError:
                count = 0
            if count:
                self._target = self._target[count:] if count < self._target.nbytes else next(self._targets)
            else:
                open_, self._lost = False, True
        if not open_ and not self._left:
            gone = (self.rank, "the connection to its process has ended")
            self._packets.append((self.rank, (int(Kind.LEFT), gone, b""), ()))
        packets += self._packets
        self._packets.clear()
        return open_

    def _parse(self) -> Iterator[memoryview]:
        """Yield the memory for what comes next; it continues when that is full."""
        while True:
            size = bytearray(_SIZE.size)
            yield memoryview(size)
            packet = bytearray(_SIZE.unpack(size)[0])
            yield memoryview(packet)
            head, parts = pickle.loads(packet)
            for index, part in enumerate(parts):
                if type(part) is int:
                    parts[index] = memory(part)
                    yield memoryview(parts[index])
            self._left |= head[0] == Kind.LEFT
            self._packets.append((self.rank, head, parts))
