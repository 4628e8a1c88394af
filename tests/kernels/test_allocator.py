"""The memory of arrays: which results use the cached memory, its limit, and errors when memory runs out."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name

import retrograd as rg
from retrograd import kernels
from retrograd.kernels import allocator

needs_compiled = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

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


@needs_compiled
def test_arrays_find_the_memory_of_those_before_them():
    assert faults("64") * 5 < faults("0")


@pytest.mark.parametrize(("asked", "kept"), [("0", 0), ("64", 64 << 20)])
def test_the_environment_says_how_much_memory_is_kept(monkeypatch, asked, kept):
    monkeypatch.setenv("RETROGRAD_KEEP_MEMORY", asked)
    assert allocator.limit() == kept


@pytest.mark.parametrize(("memory", "kept"), [(2**40, 256 << 20), (2**30, 64 << 20)])
def test_at_most_a_sixteenth_of_the_machine_is_kept(monkeypatch, memory, kept):
    monkeypatch.delenv("RETROGRAD_KEEP_MEMORY", raising=False)
    monkeypatch.setattr(allocator, "_memory", lambda: memory)
    assert allocator.limit() == kept


def test_an_amount_that_is_no_number_is_refused(monkeypatch):
    monkeypatch.setenv("RETROGRAD_KEEP_MEMORY", "much")
    with pytest.raises(ValueError, match=r"RETROGRAD_KEEP_MEMORY: expected a number of MiB, .* got 'much'"):
        allocator.limit()


LARGE = 1 << 18  # elements, more than a kernel needs to use the cached memory
NUMPYS = "default_allocator"


@pytest.fixture
def cached():
    """Keep at most 8 MiB, and nothing before and after the test."""
    before = kernels.set_cache_limit(0)
    kernels.set_cache_limit(8 << 20)
    yield
    kernels.set_cache_limit(0)
    kernels.set_cache_limit(before)


def handlers(*arrays):
    return [get_handler_name(x) for x in arrays]


@needs_compiled
def test_only_large_results_of_kernels_use_the_cached_memory(cached):
    x, few = np.ones(LARGE, np.float32), np.ones(8, np.float32)
    results = kernels.gelu(x), kernels.multiply(x, 2.0), kernels.add(x, x[::-1]), kernels.empty((LARGE,), x.dtype)
    assert handlers(*results) == ["retrograd"] * 4
    assert handlers(kernels.gelu(few), kernels.multiply(few, 2.0), kernels.empty(8, few.dtype)) == [NUMPYS] * 3
    assert handlers(x, np.ones(LARGE), x + x) == [NUMPYS] * 3
    assert get_handler_name() == NUMPYS


@needs_compiled
def test_a_call_that_fails_raises_its_own_error_and_leaves_numpys_memory(cached):
    for call in (
        lambda x: kernels.gelu(x, x, x),
        lambda x: kernels.softmax_grad_rows(x, x[:-1]),
        lambda x: kernels.add(x),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            call(np.ones(LARGE, np.float32))
        assert get_handler_name() == NUMPYS
        assert caught.value.args
    with pytest.raises(ValueError, match="negative dimensions"):
        kernels.empty((-1,), np.dtype("f4"))
    with pytest.raises(MemoryError):
        kernels.empty((2**50,), np.dtype("f4"))


@needs_compiled
def test_without_a_limit_nothing_is_kept_and_numpys_memory_is_used(cached):
    kernels.set_cache_limit(0)
    assert handlers(kernels.gelu(np.ones(LARGE, np.float32))) == [NUMPYS]
    assert kernels.cached_bytes() == 0


@needs_compiled
@pytest.mark.parametrize("size", [LARGE, LARGE + 1, 3 * LARGE, 1_000_003, 1 << 21])
def test_arrays_begin_at_a_cache_line_and_at_different_offsets_in_a_page(cached, size):
    arrays = [kernels.empty((size,), np.dtype("f4")) for _ in range(8)]
    places = [x.ctypes.data for x in arrays]
    assert all(place % 64 == 0 for place in places)
    assert len({place % 4096 for place in places}) == 8
    for k, x in enumerate(arrays):
        x.fill(k)
    assert all((x == k).all() for k, x in enumerate(arrays))


@needs_compiled
def test_the_cache_never_exceeds_its_limit_and_gives_up_the_oldest_first(cached):
    arrays = [kernels.empty((LARGE + 4096 * k,), np.dtype("f4")) for k in range(40)]
    places = [x.ctypes.data for x in arrays]
    while arrays:
        arrays.pop(0)
        assert kernels.cached_bytes() <= 8 << 20
    assert kernels.cached_bytes() > 4 << 20
    assert kernels.empty((LARGE + 4096 * 39,), np.dtype("f4")).ctypes.data == places[39]
    larger = kernels.empty((4 << 20,), np.dtype("f4"))
    before = kernels.cached_bytes()
    del larger
    assert kernels.cached_bytes() == before


@needs_compiled
def test_the_same_work_again_takes_no_more_memory(cached):
    x = rg.ones(LARGE, requires_grad=True)

    def work():
        rg.gelu(x * 2 + x).sum().backward()
        x.grad = None

    work()
    kept = kernels.cached_bytes()
    for _ in range(30):
        work()
    assert kernels.cached_bytes() == kept > 0


@needs_compiled
def test_zeros_are_zeros_in_used_memory_and_resized_arrays_keep_their_values(cached):
    x = np.full(LARGE, 7, np.float32)
    zeros, ones = kernels.caching(np.zeros_like), kernels.caching(np.ones_like)
    for _ in range(3):
        made = ones(x)
        place = made.ctypes.data
        del made
        made = zeros(x)
        assert (made.ctypes.data, handlers(made)) == (place, ["retrograd"])
        assert not made.any()
        del made
    made = ones(x)
    for size in (LARGE + 8, 9 * LARGE, LARGE // 8):
        made.resize(size, refcheck=False)
        assert (made[: LARGE // 8] == 1).all()
        assert handlers(made) == ["retrograd"]


@needs_compiled
def test_threads_may_free_what_others_made(cached):
    queue, wrong = Queue(), []

    def make(k):
        for i in range(60):
            queue.put((k * 100 + i, kernels.add(np.full(LARGE // 8 + 512 * k, k * 100 + i, np.float64), 0.0)))

    def free():
        for _ in range(60):
            number, x = queue.get()
            if not (x == number).all():
                wrong.append(number)

    with ThreadPoolExecutor(8) as pool:
        done = [pool.submit(make, k) for k in range(4)] + [pool.submit(free) for _ in range(4)]
        for each in done:
            each.result()
    assert not wrong
    assert 0 < kernels.cached_bytes() <= 8 << 20


FORK = """
import os, numpy as np
from retrograd import kernels
x = np.ones(1 << 18, np.float32)
kept = [kernels.add(x, float(k)) for k in range(4)]
del kept[::2]
child = os.fork()
kept += [kernels.add(x, 9.0) for _ in range(4)]
assert [float(a[-1]) for a in kept] == [2, 4, 10, 10, 10, 10]
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


@needs_compiled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_uses_its_copy_and_arrays_may_outlive_the_module():
    environment = {"PATH": "", "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK], env=environment, check=True)


MANY = 2**40  # rows that lie in one place, but would not where a kernel copies them


def endless(*shape):
    return np.broadcast_to(np.float32(1), shape)


@needs_compiled
def test_a_ufunc_without_memory_for_what_it_copies_reports_it(threads):
    with pytest.raises(MemoryError):
        kernels.multiply_matrices(endless(1, MANY), endless(MANY, 2**16))


@needs_compiled
def test_any_thread_without_memory_for_what_it_copies_reports_it(threads):
    q, sums = np.ones((8, 1, 4), np.float32), np.ones((8, 1), np.float32)
    k, ends = endless(8, MANY, 4), (np.array([0, 1]), np.array([0, MANY]))
    with pytest.raises(MemoryError):
        kernels.attend(q, k, k, None, None, *ends, 1.0, False, q.copy(), sums)
    x = np.ones(1 << 18, np.float32)
    np.testing.assert_array_equal(kernels.relu(x), x)  # and continues
