"""Large arrays of worker processes come by shared memory: unharmed, writable, and freed whatever happens."""

import gc
import os
import pickle
import signal
import sys
from multiprocessing import Pipe
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.utils.data import DataLoader, Dataset, shared_batches
from retrograd.utils.data.shared_batches import LEAST_BYTES, Packed, pack, receive_packed, send_packed, skip_packed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="anonymous files are Linux's")
LENGTH = LEAST_BYTES  # of float32, so 4 times the least


class Large(Dataset):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int) -> rg.Tensor:
        return rg.arange(LENGTH, dtype=rg.float32) + i


class EndsItself(Large):
    def __getitem__(self, i: int) -> rg.Tensor:
        if i == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(i)


def shared_files() -> list[str]:
    """Return the anonymous files of batches that this process has open or mapped."""
    gc.collect()
    links = [os.readlink(p) for p in Path("/proc/self/fd").iterdir() if p.is_symlink()]
    return [x for x in [*links, *Path("/proc/self/maps").read_text().splitlines()] if "memfd:retrograd" in x]


def crossed(value):
    """Return a value after it has been sent through a connection."""
    ours, theirs = Pipe()
    with ours, theirs:
        send_packed(theirs, pack(value))
        return receive_packed(ours)


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_batches_of_processes_are_those_of_the_dataset_and_can_be_written_to(context):
    batches = list(DataLoader(Large(), batch_size=2, num_workers=2, multiprocessing_context=context))
    expected = [rg.stack([Large()[i], Large()[i + 1]]) for i in (0, 2, 4)]
    assert shared_files()
    assert all(rg.equal(b, e) for b, e in zip(batches, expected, strict=True))
    batches[0].add_(1.0)
    assert rg.equal(batches[0], expected[0] + 1)
    assert rg.equal(batches[1], expected[1])
    del batches
    assert shared_files() == []


def test_small_and_large_arrays_of_all_dtypes_cross_in_one_object():
    value = {
        "large": [rg.randn(LENGTH), np.arange(LENGTH + 1), rg.ones(300, 300, dtype="bfloat16").T],
        "small": (rg.ones(2), "text", None),
        "empty": np.zeros((0, LENGTH)),
        "odd": np.ones(LEAST_BYTES + 3, np.uint8),
    }
    found = crossed(value)
    for a, b in zip(found["large"] + [found["odd"]], value["large"] + [value["odd"]], strict=True):
        assert type(a) is type(b)
        assert a.dtype == b.dtype
        assert np.array_equal(np.asarray(a), np.asarray(b))
    assert found["small"][0].tolist() == [1.0, 1.0]
    assert found["small"][1:] == ("text", None)
    assert found["empty"].shape == (0, LENGTH)


def test_small_objects_use_no_file(monkeypatch):
    monkeypatch.setattr(os, "memfd_create", None)
    assert crossed(rg.ones(4)).tolist() == [1.0] * 4


def test_without_a_file_everything_goes_through_the_pipe(monkeypatch):
    def refuse(name):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", refuse)
    packed = pack(rg.ones(LENGTH))
    assert packed.file is None
    assert len(packed.message) > 4 * LENGTH
    monkeypatch.delattr(os, "memfd_create")
    assert pack(rg.ones(LENGTH)).file is None


def test_many_batches_that_are_kept_are_copied_and_hold_no_descriptors(monkeypatch):
    assert shared_files() == []
    monkeypatch.setattr(shared_batches, "MOST_MAPPINGS", 2)
    kept = [crossed(np.full(LENGTH, i)) for i in range(5)]
    assert sum("fd" in x for x in shared_files()) <= 4  # a descriptor and a mapping for each of two
    assert [int(k[-1]) for k in kept] == [0, 1, 2, 3, 4]
    kept[4][0] = 7
    del kept
    assert shared_files() == []


def test_a_killed_worker_is_an_error_and_leaves_no_memory():
    loader = DataLoader(EndsItself(), batch_size=1, num_workers=1, multiprocessing_context="fork")
    with pytest.raises(RuntimeError, match="ended with exit code -9"):
        list(loader)
    assert shared_files() == []


def test_a_worker_that_ends_between_the_message_and_its_memory_is_an_error():
    ours, theirs = Pipe()
    packed = pack(rg.ones(LENGTH))
    theirs.send_bytes(packed.message)
    os.close(packed.file)
    theirs.close()
    with ours, pytest.raises(EOFError):
        receive_packed(ours)


def test_a_damaged_message_closes_the_memory():
    ours, theirs = Pipe()
    packed = pack(rg.ones(LENGTH))
    packed.message = b"\1" + pickle.dumps(None)
    with ours, theirs:
        send_packed(theirs, packed)
        with pytest.raises(TypeError):
            receive_packed(ours)
    assert shared_files() == []


def test_what_nobody_reads_is_discarded_with_its_memory():
    ours, theirs = Pipe()
    with ours, theirs:
        for value in (rg.ones(LENGTH), "small", rg.zeros(LENGTH)):
            send_packed(theirs, pack(value))
        skip_packed(ours)
        skip_packed(ours)
        assert receive_packed(ours).sum().item() == 0.0
    batches = iter(DataLoader(Large(), batch_size=1, num_workers=2, multiprocessing_context="fork", prefetch_factor=3))
    next(batches)
    del batches
    assert shared_files() == []


def test_a_reader_that_is_gone_is_an_error_and_closes_the_memory():
    ours, theirs = Pipe()
    ours.close()
    packed = pack(rg.ones(LENGTH))
    with theirs, pytest.raises(OSError, match="Broken pipe"):
        send_packed(theirs, packed)
    assert shared_files() == []
    assert Packed(b"x").file is None
