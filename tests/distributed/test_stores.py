"""Stores of keys and values: one model for all, used by threads and processes, and safe from bytes of strangers."""

import contextlib
import gc
import os
import socket
import struct
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograd.distributed as dist
from retrograd.distributed import stores, tcp_store

SOON = timedelta(0)  # no wait at all


class Kinds:
    """Makes a store of each kind, and another one of the same keys."""

    def __init__(self, folder):
        self.folder, self.count = folder, 0

    def hash(self):
        made = dist.HashStore()
        return made, made

    def file(self):
        self.count += 1
        path = self.folder / f"store{self.count}"
        return dist.FileStore(path, 2), dist.FileStore(path, 2)

    def tcp(self):
        master = dist.TCPStore("127.0.0.1", 0, is_master=True)
        return master, dist.TCPStore("127.0.0.1", master.port)

    def prefix(self):
        one, other = self.tcp()
        return dist.PrefixStore("a", dist.PrefixStore("b", one)), dist.PrefixStore("a", dist.PrefixStore("b", other))


KINDS = ["hash", "file", "tcp", "prefix"]


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    return Kinds(tmp_path_factory.mktemp("stores"))


class Model:
    """The results of the operations, by a dict of values and one of queues; "refused" or "late" for errors."""

    def __init__(self):
        self.values, self.queues = {}, {}

    def set(self, key, value):
        self.values[key] = value

    def multi_set(self, keys, values):
        self.values.update(zip(keys, values, strict=True))

    def get(self, key):
        return self.multi_get([key])[0] if self.check([key]) else "late"

    def multi_get(self, keys):
        if not self.check(keys):
            return "late"
        return [self.values[key] if key in self.values else self.queues[key][0] for key in keys]

    def check(self, keys):
        return all(key in self.values or self.queues.get(key) for key in keys)

    def add(self, key, amount):
        try:
            self.values[key] = b"%d" % (int(self.values.get(key, b"0")) + amount)
        except ValueError:
            return "refused"
        return int(self.values[key])

    def append(self, key, value):
        self.values[key] = self.values.get(key, b"") + value

    def compare_set(self, key, expected, desired):
        if self.values.get(key, b"") != expected:
            return self.values.get(key, expected)
        self.values[key] = desired
        return desired

    def delete_key(self, key):
        return self.values.pop(key, None) is not None

    def list_keys(self):
        return sorted(self.values)

    def queue_push(self, key, value):
        self.queues.setdefault(key, []).append(value)

    def queue_pop(self, key, block):
        return self.queues[key].pop(0) if self.queues.get(key) else "late"

    def queue_len(self, key):
        return len(self.queues.get(key, ()))


def answer(store, operation, arguments):
    try:
        found = getattr(store, operation)(*arguments)
    except dist.DistStoreError:
        return "late"
    except ValueError:
        return "refused"
    return sorted(found) if operation == "list_keys" else found


keys = st.sampled_from(["", "k", "é/", "k/n"])
values = st.sampled_from([b"", b"7", b"-1", b"\x00\xff", b"x" * 1000])
pairs = st.lists(st.tuples(keys, values), max_size=3).map(lambda found: tuple(map(list, zip(*found, strict=True))))
queues = st.sampled_from(["queue", "k"])  # the latter is a key of values too
steps = st.one_of(
    st.tuples(st.sampled_from(["set", "append"]), st.tuples(keys, values)),
    st.tuples(st.sampled_from(["get", "delete_key"]), st.tuples(keys)),
    st.tuples(st.sampled_from(["multi_get", "check"]), st.tuples(st.lists(keys, max_size=3))),
    st.tuples(st.just("multi_set"), pairs.filter(len)),
    st.tuples(st.just("add"), st.tuples(keys, st.integers(-5, 5))),
    st.tuples(st.just("compare_set"), st.tuples(keys, values, values)),
    st.tuples(st.just("list_keys"), st.just(())),
    st.tuples(st.just("queue_push"), st.tuples(queues, values)),
    st.tuples(st.just("queue_pop"), st.tuples(queues, st.booleans())),
    st.tuples(st.just("queue_len"), st.tuples(queues)),
)


@pytest.mark.parametrize("kind", KINDS)
@given(program=st.lists(st.tuples(st.booleans(), steps), max_size=30))
@settings(max_examples=30)
def test_two_users_of_a_store_have_the_answers_of_one_dict(kinds, kind, program):
    users, model = getattr(kinds, kind)(), Model()
    for user in users:
        user.set_timeout(SOON)
    for which, (operation, arguments) in program:
        assert answer(users[which], operation, arguments) == answer(model, operation, arguments), operation


@pytest.mark.parametrize("kind", KINDS)
def test_threads_wait_for_each_other_and_lose_no_change(kinds, kind):
    store, _ = getattr(kinds, kind)()
    found = []

    def work(number):
        mine = store.clone()
        for _ in range(20):
            mine.add("sum", number)
            mine.append("all", "x")
        mine.barrier("done", 4)
        found.append((mine.get("sum"), len(mine.get("all"))))
        mine.set(f"after {number}", "")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    store.clone().wait([f"after {number}" for number in range(4)])
    for thread in threads:
        thread.join()
    assert found == [(b"120", 80)] * 4


SCRIPT = """
import sys
import retrograd.distributed as dist
kind, place, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
if kind == "tcp":
    store = dist.TCPStore("127.0.0.1", int(place), 3, is_master=False)
else:
    store = dist.FileStore(place, 3)
for _ in range(20):
    store.add("sum", number)
store.queue_push("ranks", str(number))
store.barrier("done", 3)
assert store.get("sum") == b"60"
"""


@pytest.mark.parametrize("kind", ["tcp", "file"])
def test_processes_share_a_store(tmp_path, kind):
    if kind == "tcp":
        store = dist.TCPStore("127.0.0.1", 0, 3, is_master=True, wait_for_workers=False)
        place = str(store.port)
    else:
        place = str(tmp_path / "store")
        store = dist.FileStore(place, 3)
    others = [subprocess.Popen([sys.executable, "-c", SCRIPT, kind, place, str(number)]) for number in (1, 2)]
    assert sorted(store.queue_pop("ranks") for _ in others) == [b"1", b"2"]
    store.barrier("done", 3)
    assert [other.wait(60) for other in others] == [0, 0]
    del store
    gc.collect()
    assert not (tmp_path / "store").exists()  # the last of three has removed it


@pytest.mark.parametrize("kind", KINDS)
def test_what_nobody_sets_in_time_is_an_error_that_names_it(kinds, kind):
    store, _ = getattr(kinds, kind)()
    assert store.timeout == timedelta(seconds=300)
    store.set_timeout(SOON)
    assert store.timeout == SOON
    store.set("there", "")
    calls = {
        "get": lambda: store.get("gone"),
        "multi_get": lambda: store.multi_get(["there", "gone"]),
        "wait": lambda: store.wait(["gone", "there"], timedelta(milliseconds=1)),  # any load: nobody sets it
        "queue_pop": lambda: store.queue_pop("gone"),
        "barrier": lambda: store.barrier("gone", 2),
    }
    for call in calls.values():
        with pytest.raises(dist.DistStoreError, match=r"wait timeout after 0(\.001)? s, nobody has set '(b/a/)?gone"):
            call()
    with pytest.raises(dist.QueueEmptyError, match="is empty"):
        store.queue_pop("gone", block=False)
    with pytest.raises(ValueError, match="is b'', which is no whole number"):
        store.add("there", 1)
    with pytest.raises(dist.DistStoreError, match="a value for each of 1 keys, got 2"):
        store.multi_set(["there"], ["a", "b"])
    assert issubclass(dist.DistStoreError, dist.DistError)
    assert issubclass(dist.DistError, RuntimeError)


def test_keys_and_values_of_other_types_are_refused():
    store = dist.HashStore()
    with pytest.raises(TypeError, match="set: a value must be a string or bytes, got int"):
        store.set("k", 1)
    with pytest.raises(TypeError, match="get: a key must be a string, got bytes"):
        store.get(b"k")
    with pytest.raises(NotImplementedError, match="defines no `request`; use TCPStore"):
        dist.Store().get("k")


def test_the_counter_of_users_counts_as_a_key_and_is_not_listed(tmp_path):
    path = tmp_path / "store"
    for store in (dist.TCPStore("127.0.0.1", 0, 1, True), dist.FileStore(path)):
        store.set("k", "")
        assert (store.num_keys(), store.list_keys()) == (2, ["k"])
    assert dist.HashStore().num_keys() == 0
    prefixed = dist.PrefixStore("p", store)
    prefixed.set("own", "")
    assert (prefixed.list_keys(), store.list_keys()) == (["own"], ["k", "p/own"])
    assert prefixed.underlying_store is store


# ------------------------------------------------------------------------------------------------- over sockets


def test_the_master_waits_for_all_users():
    master = dist.TCPStore("127.0.0.1", 0, 3, is_master=True, wait_for_workers=False)
    joined = []
    waiting = threading.Thread(target=lambda: joined.append(master._meet(3)))
    waiting.start()
    users = [dist.TCPStore("127.0.0.1", master.port, 3) for _ in range(2)]
    waiting.join(60)
    assert joined == [None]
    assert users[0].num_keys() == 1
    alone = dist.TCPStore("127.0.0.1", 0, 2, is_master=True, wait_for_workers=False)
    alone.set_timeout(SOON)
    with pytest.raises(dist.DistStoreError, match=r"after 0 seconds waiting for clients\. 1/2 clients joined"):
        alone._meet(2)


def test_a_port_that_is_taken_and_a_master_that_is_gone_are_network_errors():
    master = dist.TCPStore("localhost", 0, is_master=True)
    port = master.port
    with pytest.raises(dist.DistNetworkError, match=f"cannot listen at port {port} of 127.0.0.1: Address already"):
        dist.TCPStore("127.0.0.1", port, is_master=True)
    user = dist.TCPStore("127.0.0.1", port)
    del master
    gc.collect()
    for _ in range(2):
        with pytest.raises(
            dist.DistNetworkError, match=f"get: the connection to the store at 127.0.0.1:{port} is lost"
        ):
            user.get("k")
    with pytest.raises(dist.DistNetworkError, match=r"timed out after 0.01 s .* start the master with is_master=True"):
        dist.TCPStore("127.0.0.1", port, timeout=timedelta(milliseconds=10))  # any load: the master is gone


def test_masters_of_several_tenants_share_a_table():
    first = dist.TCPStore("127.0.0.1", 0, is_master=True, multi_tenant=True)
    second = dist.TCPStore("127.0.0.1", first.port, is_master=True, multi_tenant=True)
    first.set("k", "v")
    del first
    assert second.get("k") == b"v"


def test_a_socket_that_listens_already_can_be_given():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        master = dist.TCPStore("127.0.0.1", port, is_master=True, master_listen_fd=listener.fileno())
    assert master.port == port
    master.set("k", "v")
    assert dist.TCPStore("127.0.0.1", port).get("k") == b"v"


def message(*fields):
    body = stores.join_fields(fields)
    return struct.pack(">I", len(body)) + body


SECONDS = struct.pack(">d", 0.0)
STRANGE = {
    "another protocol": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "nothing": b"",
    "half a greeting": stores.MAGIC[:3],
    "a huge message": stores.MAGIC + b"\xff" * 64,
    "an empty message": stores.MAGIC + bytes(4),
    "a field that is longer than its message": stores.MAGIC + struct.pack(">II", 8, 100) + bytes(4),
    "half a message": stores.MAGIC + message(SECONDS, b"set", b"1", b"k", b"v")[:-1],
    "no operation": stores.MAGIC + message(SECONDS),
    "no seconds": stores.MAGIC + message(b"", b"set", b"1", b"k", b"v"),
    "an unknown operation": stores.MAGIC + message(SECONDS, b"__init__", b"0"),
    "a number of keys that is none": stores.MAGIC + message(SECONDS, b"set", b"k", b"v"),
    "too few values": stores.MAGIC + message(SECONDS, b"set", b"2", b"k", b"other", b"v"),
    "keys that are no text": stores.MAGIC + message(SECONDS, b"set", b"1", b"\xff", b"v"),
    "seconds that are no number": stores.MAGIC + message(struct.pack(">d", float("nan")), b"get", b"1", b"none"),
    "an amount that is no number": stores.MAGIC + message(SECONDS, b"add", b"1", b"k", b"one"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_bytes_that_are_no_request_change_nothing(name, monkeypatch):
    failures = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    master = dist.TCPStore("127.0.0.1", 0, is_master=True)
    with socket.create_connection(("127.0.0.1", master.port)) as stranger:
        stranger.sendall(STRANGE[name])
        with contextlib.suppress(OSError):  # the master has ended the connection already
            stranger.shutdown(socket.SHUT_WR)
        stranger.settimeout(60)
        with contextlib.suppress(ConnectionResetError):
            while stranger.recv(1 << 16):  # until the master has ended the connection
                pass
    assert master.list_keys() == []
    master.set("k", "v")
    assert dist.TCPStore("127.0.0.1", master.port).get("k") == b"v"
    assert failures == []


@given(data=st.binary(max_size=200))
@settings(max_examples=100)
def test_any_bytes_are_fields_or_refused(data):
    try:
        found = stores.split_fields(data)
    except ValueError:
        return
    assert stores.join_fields(found) == data


def test_a_program_that_is_no_store_is_refused(monkeypatch):
    monkeypatch.setattr(tcp_store, "RETRY", 60.0)  # seconds that the only attempt may take

    def answer():
        with other.accept()[0] as connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as other:
        threading.Thread(target=answer).start()
        with pytest.raises(dist.DistNetworkError, match="another program listens there"):
            dist.TCPStore("127.0.0.1", other.getsockname()[1], timeout=timedelta(minutes=1))


def test_a_late_answer_is_not_taken_for_that_of_the_next_request(monkeypatch):
    monkeypatch.setattr(tcp_store, "GRACE", -0.5)
    master = dist.TCPStore("127.0.0.1", 0, is_master=True)
    with pytest.raises(dist.DistNetworkError, match="wait: the connection to the store"):
        master.wait(["k"], timedelta(seconds=0.51))  # any load: nobody sets it
    with pytest.raises(dist.DistNetworkError, match="it has been closed"):
        master.set("k", "v")


def test_a_message_that_is_too_long_is_refused_before_it_is_sent(monkeypatch):
    master = dist.TCPStore("127.0.0.1", 0, is_master=True)
    monkeypatch.setattr(tcp_store, "LIMIT", 100)
    with pytest.raises(dist.DistStoreError, match=r"set: .* bytes, and a message may have 100"):
        master.set("k", "v" * 100)
    master.set("k", "v")
    assert master.get("k") == b"v"


# ------------------------------------------------------------------------------------------------------- in files


def test_a_file_of_another_kind_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a store")
    with pytest.raises(dist.DistStoreError, match="is no file of a store; choose a path without a file"):
        dist.FileStore(path)
    assert path.read_text() == "not a store"


def test_a_request_that_a_killed_process_has_not_written_to_its_end_is_overwritten(tmp_path):
    path = tmp_path / "store"
    first = dist.FileStore(path)
    first.set("k", "v")
    size = path.stat().st_size
    first.set("lost", "value")
    os.truncate(path, path.stat().st_size - 2)
    second = dist.FileStore(path)
    second.set("other", "w")
    assert second.list_keys() == ["k", "other"]
    assert path.stat().st_size > size
    assert dist.FileStore(path).get("other") == b"w"


def test_a_damaged_file_is_an_error(tmp_path):
    path = tmp_path / "store"
    path.write_bytes(stores.MAGIC + message(b"no operation", b"0"))
    with pytest.raises(dist.DistStoreError, match=f"is damaged at byte {len(stores.MAGIC)}"):
        dist.FileStore(path)


def test_the_file_stays_unless_the_last_of_a_number_of_stores_is_gone(tmp_path):
    path = tmp_path / "store"
    for size, remains in ((-1, True), (3, True), (3, False)):
        store = dist.FileStore(path, size)
        assert store.path == str(path)
        del store
        gc.collect()
        assert path.exists() == remains


# --------------------------------------------------------------------------------------------------- default group


def test_a_store_is_taken_with_the_ranks_of_the_launcher():
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    dist.destroy_process_group()
    for options in ({"world_size": 1}, {"rank": 0}, {"rank": 0, "world_size": 1, "init_method": "env://"}):
        with pytest.raises(ValueError, match="a store needs world_size and rank, and excludes init_method"):
            dist.init_process_group(store=store, **options)
    with pytest.raises(TimeoutError, match=r"rank 0 has waited 0\.01 s for connections of \[1\]"):
        # any load: rank 1 never comes
        dist.init_process_group(store=store, rank=0, world_size=2, timeout=timedelta(seconds=0.01))

    def on_threads():
        rank = dist.get_rank()
        dist.destroy_process_group()
        dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
        store.set(f"rank {dist.get_rank()}", str(dist.get_world_size()))

    dist.run_threads(on_threads, 2)
    assert store.multi_get(["rank 0", "rank 1"]) == [b"2", b"2"]
