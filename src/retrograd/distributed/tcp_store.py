"""`TCPStore`: a store in the memory of one process, which the others reach over TCP."""

import contextlib
import errno
import os
import socket
import struct
import threading
import time
import weakref
from datetime import timedelta
from typing import Any

from retrograd.distributed.stores import (
    DEFAULT_TIMEOUT,
    LENGTH,
    MAGIC,
    WORKERS,
    DistNetworkError,
    DistStoreError,
    Fields,
    HashStore,
    QueueEmptyError,
    Request,
    Store,
    join_fields,
    split_fields,
)
from retrograd.foundation.suggestions import suggest_in_module

HANDSHAKE = 10.0  # seconds in which a connection must begin with MAGIC
GRACE = 10.0  # seconds that an answer may take on its way, after the time that the request may wait
RETRY = 0.05  # seconds between two attempts to connect
LIMIT = 1 << 30  # bytes of a message
CHUNK = 1 << 20  # bytes for which memory is made before they arrive
_SECONDS = struct.Struct(">d")
_ERRORS = {error.__name__: error for error in (DistStoreError, QueueEmptyError, ValueError)}


class TCPStore(Store):
    """A store in the process of the master, which other processes reach over TCP.

    - host_name, port: of the master.  If port is 0, the master gets a free one, which is its `port`.
    - world_size: how many users there are, the master included; None: any number.
    - is_master: keep the values in this process.  They are gone with this store.
    - timeout: of operations, and of the connection; a user tries to connect until the master is there.
    - wait_for_workers: the master waits until world_size users have connected.
    - multi_tenant: masters in this process with the same port share one table.
    - master_listen_fd: a socket that listens at the port already.  use_libuv: without effect.

    The master listens on the addresses of this machine only if host_name is one, such as "127.0.0.1", else on all
    networks.  There is no password: anyone who reaches the port can read and write values.  Data that are no requests
    end their connection, and change nothing; values are never run or unpickled.

    Raises DistNetworkError if there is no connection within the timeout, or the port is in use; DistStoreError if
    users are missing.

    >>> master = TCPStore("127.0.0.1", 0, is_master=True)
    >>> user = TCPStore("127.0.0.1", master.port)
    >>> user.set("key", "value")
    >>> master.get("key")
    b'value'
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self.host, self._timeout = host_name, timeout
        self._server: _Server | None = None
        if is_master:
            self._server = _server(host_name, port, multi_tenant, master_listen_fd)
            port = self._server.port
        self.port = port
        self._lock = threading.Lock()
        self._socket = _connect(host_name, port, timeout.total_seconds())
        weakref.finalize(self, self._socket.close)
        if world_size is not None and wait_for_workers:
            self._meet(world_size)

    def request(self, request: Request, seconds: float) -> Fields:
        """Return the answer of the master to a request."""
        message = _framed([_SECONDS.pack(seconds), *request.encoded()])
        if len(message) > LIMIT:
            raise DistStoreError(f"{request.operation}: {len(message)} bytes, and a message may have {LIMIT}")
        with self._lock:
            try:
                self._socket.settimeout(seconds + GRACE)
                self._socket.sendall(message)
                error, *answer = _receive(self._socket)
            except BaseException as failure:  # an answer that comes later would be taken for that of the next request
                self._socket.close()
                if not isinstance(failure, OSError | ValueError):
                    raise
                reason = "it has been closed" if getattr(failure, "errno", None) == errno.EBADF else failure
                raise DistNetworkError(
                    f"{request.operation}: the connection to the store at {self.host}:{self.port} is lost ({reason}); "
                    f"is the process of its master over?"
                ) from failure
        if error:
            raise _ERRORS[error.decode()](answer[0].decode())
        return answer

    @property
    def local_address(self) -> str:
        """Return the address of this machine in the network by which it reaches the master."""
        return str(self._socket.getsockname()[0])

    def clone(self) -> "TCPStore":
        """Return a store with another connection to the master, which another thread can use while this one waits."""
        return TCPStore(self.host, self.port, timeout=self.timeout)

    def _meet(self, world_size: int) -> None:
        """Count this user; the master waits for the last one."""
        if self.add(WORKERS, 1) >= world_size:
            self.queue_push(WORKERS, "all")
        if self._server is not None:
            try:
                self.queue_pop(WORKERS)
            except DistStoreError as error:
                raise DistStoreError(
                    f"Timed out after {self.timeout.total_seconds():g} seconds waiting for clients. "
                    f"{self.add(WORKERS, 0)}/{world_size} clients joined."
                ) from error

    def __repr__(self) -> str:
        return f"TCPStore({self.host!r}, {self.port}, is_master={self._server is not None})"


class _Server:
    """The values of a store, and the connections of its users, each with a thread."""

    def __init__(self, listener: socket.socket) -> None:
        self.port: int = listener.getsockname()[1]
        self._connections: set[socket.socket] = set()
        arguments = (listener, HashStore(), self._connections)
        threading.Thread(target=_accept, args=arguments, daemon=True, name="TCPStore").start()
        weakref.finalize(self, _close, listener, self._connections)


_servers: "weakref.WeakValueDictionary[int, _Server]" = weakref.WeakValueDictionary()  # of multi-tenant masters


def _server(host: str, port: int, multi_tenant: bool, descriptor: int | None) -> _Server:
    if multi_tenant and port in _servers:
        return _servers[port]
    made = _Server(_listener(host, port) if descriptor is None else socket.socket(fileno=os.dup(descriptor)))
    if multi_tenant:
        _servers[made.port] = made
    return made


def _listener(host: str, port: int) -> socket.socket:
    """Return a socket that listens at the addresses of this machine only, or on all networks."""
    both = socket.has_dualstack_ipv6()
    if host in ("localhost", "::1") or host.startswith("127."):
        address, family, both = host, socket.AF_INET6 if ":" in host else socket.AF_INET, False
    else:
        address, family = "", socket.AF_INET6 if both else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family, dualstack_ipv6=both)
    except OSError as error:
        raise DistNetworkError(f"TCPStore: cannot listen at port {port} of {host}: {error.strerror}") from error


def _accept(listener: socket.socket, store: HashStore, connections: set[socket.socket]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # it was closed
            return
        connections.add(connection)
        arguments = (connection, store, connections)
        threading.Thread(target=_serve, args=arguments, daemon=True, name="TCPStore").start()


def _close(listener: socket.socket, connections: set[socket.socket]) -> None:
    for each in (listener, *connections):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it
        each.close()


def _serve(connection: socket.socket, store: HashStore, connections: set[socket.socket]) -> None:
    """Answer the requests of a connection until it ends, or sends something else."""
    with connection, contextlib.suppress(OSError, ValueError, struct.error):
        connection.settimeout(HANDSHAKE)
        if _exactly(connection, len(MAGIC)) != MAGIC:
            raise ValueError("not a user of a store")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(MAGIC)
        connection.settimeout(None)
        while True:
            seconds, *fields = _receive(connection)
            (limit,) = _SECONDS.unpack(seconds)
            if not limit >= 0:  # a NaN would wait without end
                raise ValueError(f"a request for {limit} seconds")
            request = Request.decoded(fields)
            connection.sendall(_framed(_answer(store, request, min(limit, threading.TIMEOUT_MAX))))
    connections.discard(connection)


def _answer(store: HashStore, request: Request, seconds: float) -> Fields:
    """Return an empty field and the answer, or the class and text of the error."""
    try:
        return [b"", *store.request(request, seconds)]
    except (DistStoreError, ValueError) as error:
        return [type(error).__name__.encode(), str(error).encode()]


def _connect(host: str, port: int, seconds: float) -> socket.socket:
    """Return a connection to a master, as soon as there is one.  Another program there will not turn into one."""
    deadline = time.monotonic() + seconds
    while True:
        left = max(deadline - time.monotonic(), RETRY)
        try:
            found = socket.create_connection((host, port), timeout=left)
            return _greet(found)
        except ValueError as error:
            raise DistNetworkError(f"TCPStore: {host}:{port} is no store: {error}") from error
        except OSError as error:
            if time.monotonic() + RETRY >= deadline:
                raise DistNetworkError(
                    f"TCPStore: the client socket has timed out after {seconds:g} s while trying to connect to "
                    f"{host}:{port} ({error}); start the master with is_master=True"
                ) from error
        time.sleep(RETRY)


def _greet(connection: socket.socket) -> socket.socket:
    """Return a connection to a store; ValueError if there is another program."""
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(MAGIC)
        if _exactly(connection, len(MAGIC)) != MAGIC:
            raise ValueError("another program listens there")
    except BaseException:
        connection.close()
        raise
    return connection


def _framed(fields: Fields) -> bytes:
    """Return a message of fields."""
    return join_fields([join_fields(fields)])


def _receive(connection: socket.socket) -> Fields:
    """Return the fields of a message; ValueError for other bytes, ConnectionError if the connection has ended."""
    (size,) = LENGTH.unpack(_exactly(connection, LENGTH.size))
    if not 0 < size <= LIMIT:
        raise ValueError(f"a message of {size} bytes")
    return split_fields(_exactly(connection, size))


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        part: Any = connection.recv(min(size - len(found), CHUNK))
        if not part:
            raise ConnectionError("the other end has closed the connection")
        found += part
    return bytes(found)


suggest_in_module(globals())
