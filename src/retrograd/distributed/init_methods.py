"""How processes that no launcher of ours has started find each other: PyTorch's URLs and environment variables."""

import os
import socket
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from retrograd.distributed.stores import DEFAULT_TIMEOUT, FileStore, PrefixStore, Store
from retrograd.distributed.tcp_store import TCPStore

METHODS = ("env", "tcp", "file")
# By address, rank and size: masters serve the other processes until this one ends, which may join them again.
_stores: dict[tuple[Any, ...], Store] = {}


class Rendezvous(NamedTuple):
    """The store by which processes find each other, and this process's rank among them."""

    store: Store
    rank: int
    size: int


def find_processes(
    init_method: str | None = None,
    rank: int = -1,
    world_size: int = -1,
    store: Store | None = None,
    timeout: timedelta | None = None,
) -> Rendezvous | None:
    """Return the store of several processes that run a script; None for a script that runs alone.

    init_method: "env://", the default, which reads MASTER_ADDR and MASTER_PORT, and RANK and WORLD_SIZE unless they are
    given; "tcp://host:port"; "file:///path"; the last two may end with "?rank=0&world_size=2".  store: instead of it.

    Raises ValueError if the rank, the number of processes, or the address is missing or wrong, and for another method.
    """
    if store is not None:
        return None if world_size == 1 else Rendezvous(store, _checked(rank, world_size), world_size)
    url = urlsplit(init_method or "env://")
    if url.scheme not in METHODS:
        names = ", ".join(f"{name}://" for name in METHODS)
        raise ValueError(
            f"No rendezvous handler for {url.scheme}://; init_process_group: init_method is one of {names}"
        )
    given = _Given(url.scheme, os.environ if url.scheme == "env" else dict(parse_qsl(url.query)))
    size = given.number("world_size", world_size, optional=init_method is None)
    if size in (-1, 1):  # nothing says that there are others, or it says that there are none
        return None
    rank = _checked(given.number("rank", rank), size)
    host, port = url.hostname, url.port
    if url.scheme == "env":
        host, port = given.text("master_addr"), given.number("master_port")
    if url.scheme != "file" and (not host or port is None):
        raise given.error(f"{'address' if port else 'port number'} missing")
    key = url.netloc + url.path, host, port, rank, size
    if key not in _stores:
        timeout = DEFAULT_TIMEOUT if timeout is None else timeout
        if host and port is not None:
            _stores[key] = TCPStore(host, port, size, rank == 0, timeout, multi_tenant=True)
        else:
            _stores[key] = FileStore(url.netloc + url.path, size)
    return Rendezvous(_stores[key], rank, size)


class _Given:
    """The values of environment variables, or of the query of a URL, by name."""

    def __init__(self, scheme: str, values: Mapping[str, str]) -> None:
        self._scheme, self._values = scheme, values

    def number(self, name: str, argument: int = -1, optional: bool = False) -> int:
        """Return the argument, or if it is -1 the number of this name; -1 if it is optional and not there."""
        if argument != -1 or (optional and self._key(name) not in self._values):
            return argument
        text = self.text(name)
        if not text.isdecimal():
            raise self.error(f"{self._key(name)} must be a number, got {text!r}")
        return int(text)

    def text(self, name: str) -> str:
        """Return the text of this name."""
        key = self._key(name)
        if key not in self._values:
            env = self._scheme == "env"
            raise self.error(f"environment variable {key} expected, but not set" if env else f"{key} parameter missing")
        return self._values[key]

    def error(self, text: str) -> ValueError:
        """Return the error about what is missing or wrong."""
        return ValueError(
            f"Error initializing torch.distributed using {self._scheme}:// rendezvous: {text}; "
            f"`retrograd run -n 4 --transport mpi SCRIPT` starts ranks that find each other"
        )

    def _key(self, name: str) -> str:
        return name.upper() if self._scheme == "env" else name


def own_address(store: Store) -> str:
    """Return the address of this machine by which the other users of a store reach it."""
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    if isinstance(store, TCPStore):
        return store.local_address
    try:
        address = socket.gethostbyname(socket.gethostname())
        socket.create_server((address, 0)).close()
        return address
    except OSError:  # a machine without a network, or whose name is that of another one
        return "127.0.0.1"


def _checked(rank: int, size: int) -> int:
    if size < 1 or not 0 <= rank < size:
        raise ValueError(f"init_process_group: rank is {rank} and world_size {size}; ranks go from 0 to world_size - 1")
    return rank
