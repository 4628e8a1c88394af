"""The allocator of array memory: which blocks the process keeps, and errors when memory runs out."""

import subprocess
import sys

import numpy as np
import pytest

from retrograd import kernels
from retrograd.kernels import allocator

FAULTS = """
import resource, sys
import retrograd as rg
x = rg.ones(400_000)
for _ in range(3):
    x * x
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    (x * x) * x
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(kept):
    environment = {"RETROGRAD_KEEP_MEMORY": kept, "PATH": "", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", FAULTS], env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not allocator.keep(allocator.asked_for()), reason="the C library takes no such orders")
def test_arrays_find_the_memory_of_those_before_them():
    assert faults("64") * 5 < faults("0")


@pytest.mark.parametrize(("asked", "kept"), [("", allocator.DEFAULT), ("0", 0), ("64", 64)])
def test_the_environment_says_how_much_memory_is_kept(monkeypatch, asked, kept):
    monkeypatch.setenv("RETROGRAD_KEEP_MEMORY", asked)
    assert allocator.asked_for() == kept


def test_an_amount_that_is_no_number_is_refused(monkeypatch):
    monkeypatch.setenv("RETROGRAD_KEEP_MEMORY", "much")
    with pytest.raises(ValueError, match=r"RETROGRAD_KEEP_MEMORY: expected a number of MiB, .* got 'much'"):
        allocator.asked_for()


def test_nothing_asked_for_changes_nothing():
    assert not allocator.keep(0)


MANY = 2**40  # rows that lie in one place, but would not where a kernel copies them
needs_compiled = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")


def endless(*shape):
    return np.broadcast_to(np.float32(1), shape)


@needs_compiled
def test_a_ufunc_without_memory_for_what_it_copies_says_so(threads):
    with pytest.raises(MemoryError):
        kernels.multiply_matrices(endless(1, MANY), endless(MANY, 2**16))


@needs_compiled
def test_any_thread_without_memory_for_what_it_copies_says_so(threads):
    q, sums = np.ones((8, 1, 4), np.float32), np.ones((8, 1), np.float32)
    k, ends = endless(8, MANY, 4), (np.array([0, 1]), np.array([0, MANY]))
    with pytest.raises(MemoryError):
        kernels.attend(q, k, k, None, None, *ends, 1.0, False, q.copy(), sums)
    x = np.ones(1 << 18, np.float32)
    np.testing.assert_array_equal(kernels.relu(x), x)  # and continues
