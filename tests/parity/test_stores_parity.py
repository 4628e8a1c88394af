"""Stores answer programs of random operations as PyTorch's do; of errors, the classes agree."""

import random
from datetime import timedelta

import pytest
import torch.distributed as torch_dist

import retrograd.distributed as dist

KINDS = {
    "hash": lambda m, path: m.HashStore(),
    "file": lambda m, path: m.FileStore(str(path), 1),
    "tcp": lambda m, path: m.TCPStore("127.0.0.1", 0, 1, True),
    "prefix": lambda m, path: m.PrefixStore("a", m.PrefixStore("b", m.HashStore())),
}
# PyTorch's stores count barriers by other keys; in files, they have no queues, lose some appended values, and delete
# keys that are not there.
APART = {"tcp": {"barrier"}, "file": {"append", "delete_key", "queue_push", "queue_len", "queue_pop"}}
KEYS, VALUES, NUMBERS = ["", "k", "é/", "k/n"], ["", "7", "-1", "x", b"\x00\xff"], ["n", "m"]
SHORT = timedelta(milliseconds=1)  # any load: for calls that wait for what nobody sets
LONG = timedelta(minutes=1)


def program(r, kind):
    """Return random calls, as names with arguments; numbers have keys of their own."""
    key, keys = lambda: r.choice(KEYS + NUMBERS), lambda: r.choices(KEYS + NUMBERS, k=r.randint(0, 3))
    calls = {
        "set": lambda: (r.choice(KEYS), r.choice(VALUES)), "append": lambda: (r.choice(KEYS), r.choice(VALUES)),
        "get": lambda: (key(),), "delete_key": lambda: (key(),), "check": lambda: (keys(),),
        "multi_get": lambda: (keys(),), "multi_set": lambda: (KEYS[:2], r.choices(VALUES, k=2)),
        "add": lambda: (r.choice(NUMBERS), r.randint(-5, 5)), "num_keys": tuple, "list_keys": tuple,
        "compare_set": lambda: (r.choice(KEYS), r.choice(VALUES), r.choice(VALUES)),
        "wait": lambda: (keys(),), "barrier": lambda: ("b", 1),
        "queue_push": lambda: ("q", r.choice(VALUES)), "queue_len": lambda: ("q",),
        "queue_pop": lambda: ("q", r.random() < 0.5),
    }  # fmt: skip
    return [(name, calls[name]()) for name in r.choices(sorted(calls.keys() - APART.get(kind, set())), k=40)]


def time_limits(calls):
    """Return a time limit per call: a short one only for calls that wait in vain, as a store in memory decides.

    On a busy machine, a call that need not wait can take longer than a short limit.
    """
    store = dist.HashStore()
    store.set_timeout(SHORT)
    limits = []
    for name, arguments in calls:
        try:
            getattr(store, name)(*arguments)
            limits.append(LONG)
        except RuntimeError:
            limits.append(SHORT)
    return limits


def answers(store, calls, limits, kind):
    """Return the answers of a store; of errors, the names of their classes."""
    found = []
    for (name, arguments), limit in zip(calls, limits, strict=True):
        store.set_timeout(limit)
        try:
            answer = getattr(store, name)(*arguments, *([limit] if name == "wait" else []))
        except RuntimeError as error:
            late = kind == "file" and type(error) is RuntimeError  # of a class of its own only for other stores
            answer = "DistStoreError" if late else type(error).__name__
        found.append(sorted(set(answer) - {"efcount/"}) if name == "list_keys" else answer)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_random_programs_have_pytorchs_answers(kind, tmp_path):
    for seed in range({"file": 2, "tcp": 5}.get(kind, 25)):  # PyTorch's waiting for files and over TCP is slow
        calls = program(random.Random(seed), kind)
        limits = time_limits(calls)
        ours, theirs = (
            answers(KINDS[kind](m, tmp_path / f"{m.__name__}{seed}"), calls, limits, kind) for m in (dist, torch_dist)
        )
        for call, mine, its in zip(calls, ours, theirs, strict=True):
            assert mine == its, f"{kind}, seed {seed}: {call}"


def test_classes_of_errors_have_pytorchs_bases():
    for name in ("DistError", "DistStoreError", "DistNetworkError", "QueueEmptyError"):
        ours, theirs = ([c.__name__ for c in getattr(m, name).__mro__] for m in (dist, torch_dist))
        assert ours == theirs


def test_errors_of_connections_are_pytorchs():
    for m in (dist, torch_dist):
        master = m.TCPStore("127.0.0.1", 0, is_master=True)
        assert (master.host, master.port > 0) == ("127.0.0.1", True)
        with pytest.raises(m.DistNetworkError):
            m.TCPStore("127.0.0.1", master.port, is_master=True)
        with pytest.raises(m.DistStoreError, match=r"waiting for clients\. 1/2 clients joined"):
            m.TCPStore("127.0.0.1", 0, 2, True, timeout=timedelta(seconds=1))  # any load: nobody joins
