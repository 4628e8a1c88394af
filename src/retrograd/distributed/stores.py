"""Stores of keys and values that the ranks of a script share: `HashStore`, `FileStore`, `PrefixStore`.

Every operation is a request, which changes a table.  Stores differ in where the table is: that of a `HashStore` in this
process, that of a `TCPStore` in the process of its master; for a `FileStore`, each process has a copy, which repeats
the requests in the file in their order.
"""

import os
import struct
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from io import FileIO
from typing import Any

from retrograd.foundation.suggestions import suggest_in_module

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

DEFAULT_TIMEOUT = timedelta(seconds=300)
MAGIC = b"retrograd store 1\n"  # with which a file, and a connection, begins
POLL = 0.01  # seconds between two looks at a file that others write
WORKERS = "init/"  # the key that counts the users of a store
LEFT = "left/"  # the key that counts those whose store is gone
LENGTH = struct.Struct(">I")  # of the length of a field, in bytes

Value = str | bytes
Fields = list[bytes]


class DistError(RuntimeError):
    """An error between ranks."""


class DistStoreError(DistError):
    """A store has not answered in time, or has received data that are no request."""


class DistNetworkError(DistError):
    """The process of a store cannot be reached."""


class QueueEmptyError(DistStoreError):
    """A queue is empty, and the caller does not wait."""


@dataclass(frozen=True)
class Request:
    """An operation of a store, on keys and values."""

    operation: str
    keys: Sequence[str] = ()
    values: Sequence[bytes] = ()

    def encoded(self) -> Fields:
        """Return the request as fields of bytes."""
        return [self.operation.encode(), b"%d" % len(self.keys), *(key.encode() for key in self.keys), *self.values]

    @staticmethod
    def decoded(fields: Fields) -> "Request":
        """Return the request in fields; ValueError for others."""
        operation, count, *rest = fields
        return Request(operation.decode(), [key.decode() for key in rest[: int(count)]], rest[int(count) :])


def join_fields(fields: Iterable[bytes]) -> bytes:
    """Return fields as bytes, each after its length.

    >>> split_fields(join_fields([b"set", b""]))
    [b'set', b'']
    """
    return b"".join(part for field in fields for part in (LENGTH.pack(len(field)), field))


def split_fields(data: bytes) -> Fields:
    """Return the fields in bytes; ValueError for other bytes."""
    found, start = [], 0
    while start < len(data):
        if start + LENGTH.size > len(data):
            raise ValueError("a field ends within its length")
        end = start + LENGTH.size + LENGTH.unpack_from(data, start)[0]
        if end > len(data):
            raise ValueError("a field ends early")
        found.append(data[start + LENGTH.size : end])
        start = end
    return found


class Table:
    """The values and queues of a store.  Requests that fail change nothing."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.queues: dict[str, deque[bytes]] = {}

    def missing(self, request: Request) -> list[str]:
        """Return the keys for which the request must wait."""
        if request.operation not in WAITING:
            return []
        values = {} if request.operation == "queue_take" else self.values
        return [key for key in request.keys if key not in values and key not in self.queues]

    def run(self, request: Request) -> Fields:
        """Return the answer to a request that need not wait.  Raises ValueError for an unknown operation."""
        if request.operation not in OPERATIONS:
            raise ValueError(f"a store has no operation {request.operation!r}")
        found: Fields = OPERATIONS[request.operation](self, request.keys, request.values)
        return found

    def _set(self, keys: Sequence[str], values: Fields) -> Fields:
        self.values.update(dict(zip(keys, values, strict=True)))
        return []

    def _get(self, keys: Sequence[str], values: Fields) -> Fields:
        return [self.values[key] if key in self.values else self.queues[key][0] for key in keys]

    def _wait(self, keys: Sequence[str], values: Fields) -> Fields:
        return []

    def _check(self, keys: Sequence[str], values: Fields) -> Fields:
        return [key.encode() for key in keys if key in self.values or key in self.queues]

    def _add(self, keys: Sequence[str], values: Fields) -> Fields:
        ((key,), (amount,)) = keys, values
        present = self.values.get(key, b"0")
        try:
            self.values[key] = b"%d" % (int(present) + int(amount))
        except ValueError:
            raise ValueError(f"add: the value of {key!r} is {present!r}, which is no whole number") from None
        return [self.values[key]]

    def _append(self, keys: Sequence[str], values: Fields) -> Fields:
        ((key,), (value,)) = keys, values
        self.values[key] = self.values.get(key, b"") + value
        return []

    def _compare_set(self, keys: Sequence[str], values: Fields) -> Fields:
        ((key,), (expected, desired)) = keys, values
        if self.values.get(key, b"") == expected:
            self.values[key] = desired
        return [self.values.get(key, expected)]

    def _delete(self, keys: Sequence[str], values: Fields) -> Fields:
        (key,) = keys
        return [] if self.values.pop(key, None) is None else [b"deleted"]

    def _count(self, keys: Sequence[str], values: Fields) -> Fields:
        return [b"%d" % len(self.values)]

    def _list(self, keys: Sequence[str], values: Fields) -> Fields:
        return [key.encode() for key in self.values if key not in (WORKERS, LEFT)]

    def _push(self, keys: Sequence[str], values: Fields) -> Fields:
        (key,) = keys
        self.queues.setdefault(key, deque()).extend(values)
        return []

    def _pop(self, keys: Sequence[str], values: Fields) -> Fields:
        (key,) = keys
        if key not in self.queues:
            raise QueueEmptyError(f"queue_pop: the queue {key!r} is empty")
        found = self.queues[key].popleft()
        if not self.queues[key]:
            del self.queues[key]
        return [found]

    def _length(self, keys: Sequence[str], values: Fields) -> Fields:
        (key,) = keys
        return [b"%d" % len(self.queues.get(key, ()))]


OPERATIONS: dict[str, Any] = {
    "set": Table._set, "get": Table._get, "wait": Table._wait, "check": Table._check, "add": Table._add,
    "append": Table._append, "compare_set": Table._compare_set, "delete_key": Table._delete, "num_keys": Table._count,
    "list_keys": Table._list, "queue_push": Table._push, "queue_pop": Table._pop, "queue_take": Table._pop,
    "queue_len": Table._length,
}  # fmt: skip
WAITING = {"get", "wait", "queue_take"}  # operations that wait for their keys
READING = {"get", "wait", "check", "num_keys", "list_keys", "queue_len"}  # operations that change nothing


class Store:
    """Keys with values that the ranks of a script share: base class of all stores.

    Keys are strings.  Values are strings or bytes, and are returned as bytes.  Operations of several ranks run one
    after the other.  A subclass defines `request`.
    """

    def __init__(self) -> None:
        self._timeout = DEFAULT_TIMEOUT

    def request(self, request: Request, seconds: float) -> Fields:
        """Return the answer to a request, which may wait for keys; DistStoreError if it waits longer than `seconds`."""
        raise NotImplementedError(
            f"{type(self).__name__} defines no `request`; use TCPStore, FileStore or HashStore, or a subclass of these"
        )

    @property
    def timeout(self) -> timedelta:
        """Return how long operations wait for keys."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long operations wait for keys."""
        self._timeout = timeout

    def set(self, key: str, value: Value) -> None:
        """Set the value of a key."""
        self._request("set", [key], [value])

    def multi_set(self, keys: Sequence[str], values: Sequence[Value]) -> None:
        """Set the values of several keys at once.  Raises DistStoreError for another number of values."""
        if len(keys) != len(values):
            raise DistStoreError(f"multi_set: expected a value for each of {len(keys)} keys, got {len(values)}")
        self._request("set", keys, values)

    def get(self, key: str) -> bytes:
        """Return the value of a key, as soon as a rank has set it.  Raises DistStoreError after the timeout."""
        return self._request("get", [key])[0]

    def multi_get(self, keys: Sequence[str]) -> Fields:
        """Return the values of several keys, as soon as ranks have set them.  Raises DistStoreError as `get` does."""
        return self._request("get", keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until ranks have set all keys.  Raises DistStoreError after `timeout`, by default that of the store."""
        self._request("wait", keys, timeout=timeout)

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys are set."""
        return len(self._request("check", keys)) == len(keys)

    def add(self, key: str, amount: int) -> int:
        """Add a number to the value of a key, or to 0 if there is none; return the sum.

        Raises ValueError if the value is no whole number.
        """
        return int(self._request("add", [key], [b"%d" % amount])[0])

    def append(self, key: str, value: Value) -> None:
        """Append to the value of a key, or to an empty one."""
        self._request("append", [key], [value])

    def compare_set(self, key: str, expected_value: Value, desired_value: Value) -> bytes:
        """Set the value of a key if it is the expected one; return the value afterwards.

        A key without a value has the empty one, and gets no value if another one is expected, which is returned.
        """
        return self._request("compare_set", [key], [expected_value, desired_value])[0]

    def delete_key(self, key: str) -> bool:
        """Delete a key; return whether there was one."""
        return bool(self._request("delete_key", [key]))

    def num_keys(self) -> int:
        """Return the number of keys with values; `TCPStore` and `FileStore` have one more, by which users are counted.

        Queues do not count.
        """
        return int(self._request("num_keys", [])[0])

    def list_keys(self) -> list[str]:
        """Return the keys with values."""
        return [key.decode() for key in self._request("list_keys", [])]

    def queue_push(self, key: str, value: Value) -> None:
        """Append a value to a queue."""
        self._request("queue_push", [key], [value])

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Return the first value of a queue, and remove it; block: wait for one.

        Raises DistStoreError after the timeout; QueueEmptyError if it does not wait.
        """
        return self._request("queue_take" if block else "queue_pop", [key])[0]

    def queue_len(self, key: str) -> int:
        """Return the number of values in a queue."""
        return int(self._request("queue_len", [key])[0])

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until `world_size` users have called it with the same key.  Raises DistStoreError after the timeout."""
        if self.add(f"{key}/num_members", 1) >= world_size:
            self.set(f"{key}/last_member", "1")
        self.wait([f"{key}/last_member"], timeout)

    def clone(self) -> "Store":
        """Return a store of the same keys and values, which another thread can use while this one waits."""
        return self

    def has_extended_api(self) -> bool:
        """Return True: all stores have `append`, `multi_get`, `multi_set` and queues."""
        return True

    def _request(
        self, operation: str, keys: Sequence[str], values: Sequence[Value] = (), timeout: timedelta | None = None
    ) -> Fields:
        for key in keys:
            if not isinstance(key, str):
                raise TypeError(f"{operation}: a key must be a string, got {type(key).__name__}")
        given = [value.encode() if isinstance(value, str) else value for value in values]
        for value in given:
            if not isinstance(value, bytes):
                raise TypeError(f"{operation}: a value must be a string or bytes, got {type(value).__name__}")
        seconds = (self.timeout if timeout is None else timeout).total_seconds()
        return self.request(Request(operation, list(keys), given), min(max(seconds, 0.0), threading.TIMEOUT_MAX))


def timed_out(request: Request, missing: Iterable[str], seconds: float) -> DistStoreError:
    """Return the error of a request that has waited too long."""
    keys = ", ".join(map(repr, missing))
    return DistStoreError(f"{request.operation}: wait timeout after {seconds:g} s, nobody has set {keys}")


class HashStore(Store):
    """A store in the memory of this process, for its threads.

    >>> store = HashStore()
    >>> store.set("first", "1")
    >>> store.add("first", 6), store.get("first"), store.num_keys()
    (7, b'7', 1)
    """

    def __init__(self) -> None:
        super().__init__()
        self._table = Table()
        self._changed = threading.Condition()

    def request(self, request: Request, seconds: float) -> Fields:
        """Return the answer to a request."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._table.missing(request), seconds):
                raise timed_out(request, self._table.missing(request), seconds)
            answer = self._table.run(request)
            if request.operation not in READING:
                self._changed.notify_all()
            return answer


class PrefixStore(Store):
    """Those keys of another store that begin with a prefix and "/", which users of this store do not write.

    >>> whole = HashStore()
    >>> PrefixStore("epoch1", whole).set("loss", "0.5")
    >>> whole.list_keys()
    ['epoch1/loss']
    """

    def __init__(self, prefix: str, store: Store) -> None:
        self.prefix, self.underlying_store = prefix, store

    def request(self, request: Request, seconds: float) -> Fields:
        """Return the answer of the other store, with longer keys."""
        keys = [f"{self.prefix}/{key}" for key in request.keys]
        return self.underlying_store.request(replace(request, keys=keys), seconds)

    @property
    def timeout(self) -> timedelta:
        """Return how long operations wait for keys, which is that of the other store."""
        return self.underlying_store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long operations wait for keys, also in the other store."""
        self.underlying_store.set_timeout(timeout)

    def list_keys(self) -> list[str]:
        """Return the keys without the prefix."""
        start = f"{self.prefix}/"
        return [key[len(start) :] for key in self.underlying_store.list_keys() if key.startswith(start)]

    def clone(self) -> "PrefixStore":
        """Return a store with this prefix of a clone of the other store."""
        return PrefixStore(self.prefix, self.underlying_store.clone())


class FileStore(Store):
    """A store in a file, which processes share that reach the file; it must not exist before.

    file_name: its path.  world_size: when this number of stores of the file are gone, the last one removes it; a
    negative number: it stays.

    The file has the requests that change something, one after the other.  So it grows with each of them.

    Raises DistStoreError for a file of another kind, NotImplementedError on Windows.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first, second = FileStore(f"{folder}/store"), FileStore(f"{folder}/store")
    ...     first.set("key", "value")
    ...     second.get("key")
    b'value'
    """

    def __init__(self, file_name: str | os.PathLike[str], world_size: int = -1) -> None:
        if fcntl is None:
            raise NotImplementedError("FileStore locks a file as POSIX does, which Windows cannot; use TCPStore")
        super().__init__()
        self.path, self._world_size = os.fspath(file_name), world_size
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        self._log = _Log(self.path)
        self.add(WORKERS, 1)
        weakref.finalize(self, self._log.leave, world_size)

    def request(self, request: Request, seconds: float) -> Fields:
        """Return the answer to a request."""
        deadline = time.monotonic() + seconds
        while True:
            answer = self._log.answer(request)
            if answer is not None:
                return answer
            if time.monotonic() >= deadline:
                raise timed_out(request, self._log.table.missing(request), seconds)
            time.sleep(POLL)

    def clone(self) -> "FileStore":
        """Return another store of the file, which counts as one of `world_size`."""
        return FileStore(self.path, self._world_size)


class _Log:
    """The file of a `FileStore`, and the table that its requests make.

    It is opened for each request, so that its lock also excludes other threads and forked processes.
    """

    def __init__(self, path: str) -> None:
        self.path, self.table = path, Table()
        self._end = 0  # the table has the requests up to this byte
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Fields | None:
        """Return the answer to a request, None if it must wait."""
        with self._lock, open(self.path, "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed
            self._read(file)
            if self.table.missing(request):
                return None
            answer = self.table.run(request)
            if request.operation not in READING:
                self._write(file, request)
            return answer

    def leave(self, world_size: int) -> None:
        """Count a store that is gone; the last of `world_size` removes the file."""
        with suppress(OSError, DistStoreError):  # the file is removed, or damaged
            self.answer(Request("add", [LEFT], [b"1"]))
            left, users = (int(self.table.values[key]) for key in (LEFT, WORKERS))
            if left == users and left >= world_size >= 0:
                os.remove(self.path)

    def _read(self, file: FileIO) -> None:
        """Repeat the requests that others have appended."""
        file.seek(self._end)
        data = file.read()
        if not self._end and data:
            if not data.startswith(MAGIC):
                raise DistStoreError(f"FileStore: {self.path} is no file of a store; choose a path without a file")
            data, self._end = data[len(MAGIC) :], len(MAGIC)
        while len(data) >= LENGTH.size and len(data) >= LENGTH.size + LENGTH.unpack_from(data)[0]:
            size = LENGTH.size + LENGTH.unpack_from(data)[0]
            try:
                self.table.run(Request.decoded(split_fields(data[LENGTH.size : size])))
            except (ValueError, LookupError) as error:
                raise DistStoreError(f"FileStore: {self.path} is damaged at byte {self._end}") from error
            data, self._end = data[size:], self._end + size

    def _write(self, file: FileIO, request: Request) -> None:
        """Append a request, in the place of one that a process has not written to its end."""
        file.seek(self._end)
        file.truncate()
        data = (b"" if self._end else MAGIC) + join_fields([join_fields(request.encoded())])
        file.write(data)
        self._end += len(data)


suggest_in_module(globals())
