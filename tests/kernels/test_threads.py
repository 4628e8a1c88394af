"""Kernels on large arrays divide their work among threads; results do not depend on it."""

import itertools
import math
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import retrograd as rg
from retrograd import kernels
from retrograd.kernels import chosen
from retrograd.utils import blas_threads

pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")


@pytest.fixture(autouse=True)
def three_threads():
    before = rg.get_num_threads()
    rg.set_num_threads(3)
    yield
    rg.set_num_threads(before)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def all_kernels():
    """Yield the results of several kernels of each kind on large arrays."""
    x, g = numbers(1001, 333), numbers(1001, 333, seed=1)
    one, ids = np.float32(1), np.arange(1001) % 333
    weight = numbers(333, seed=2)
    p, m, v = x.copy(), g.copy(), np.abs(g)
    settings = map(np.float32, (1, 0, 1, 0.9, 0.99, 0.1, 0.01, 1e-8, 0.1))
    kernels.adam(p, g, m, v, *settings, out=(p, m, v))
    yield from (p, m, v)
    yield kernels.gelu(x)
    yield kernels.silu_grad(g[:, ::-1], x)
    yield kernels.softmax_rows(x)
    yield kernels.class_loss_rows(x, ids, -100)
    yield kernels.class_grad_rows(x, ids, -100, one)
    yield kernels.variance_rows(x, one)
    yield kernels.norm_rows(x, weight, weight, one, one)
    yield from kernels.norm_grad_rows(g, x, weight, one, one)
    for shape in ((1001, 333, 1), (7, 13, 3663)):
        images = x.reshape(shape)
        yield from kernels.channel_moments(images)
        yield kernels.channel_sums(images)
        yield kernels.channel_dots(images, g.reshape(shape), images[0, :, 0])


def same(some, others):
    return all(np.array_equal(a, b) for a, b in zip(some, others, strict=True))


def test_threads_share_work_evenly():
    """Equally fast threads end at the same time, up to a few indices, whatever the least size of a chunk is."""
    r = np.random.default_rng(0)
    for threads in (2, 3, 4, 16):
        for min_chunk in map(int, r.integers(1, 40_000, 300)):
            n = int(r.integers(threads * min_chunk, 9 * threads * min_chunk))
            size = chosen.get_chunk_size(n, min_chunk, threads)
            busiest = math.ceil(math.ceil(n / size) / threads) * size
            assert size >= min_chunk
            assert busiest <= n / threads + 4, (n, min_chunk, threads)


def in_threads(work, count):
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def all_kernels_in_threads(count):
    """Return threads that run all kernels a few times, and a list that gets an entry where their results differ."""
    expected, wrong = list(all_kernels()), []

    def run():
        for _ in range(5):
            if not same(expected, all_kernels()):
                wrong.append(1)

    return in_threads(run, count), wrong


def test_the_numbers_do_not_depend_on_the_threads_in_any_digit():
    several = list(all_kernels())
    rg.set_num_threads(1)
    assert same(several, all_kernels())


def test_kernels_run_in_many_python_threads_at_a_time():
    running, wrong = all_kernels_in_threads(6)
    for thread in running:
        thread.join()
    assert not wrong


def test_how_many_threads_there_are_may_change_while_kernels_run():
    running, wrong = all_kernels_in_threads(3)
    for count in itertools.cycle((1, 5, 2, 7)):
        if not any(thread.is_alive() for thread in running):
            break
        rg.set_num_threads(count)
        kernels.relu(numbers(400, 400))
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_may_fork_while_its_threads_work_or_look_out_for_work():
    x, ended = numbers(400, 400), threading.Event()
    expected = kernels.gelu(x)

    def run():
        while not ended.is_set():
            kernels.gelu(x)

    running = in_threads(run, 2)
    statuses = []
    for _ in range(20):
        kernels.gelu(x)
        child = os.fork()
        if child == 0:
            os._exit(0 if all(same([expected], [kernels.gelu(x)]) for _ in range(3)) else 1)
        statuses.append(os.waitpid(child, 0)[1])
    ended.set()
    for thread in running:
        thread.join()
    assert statuses == [0] * 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    expected = list(all_kernels())
    child = os.fork()
    if child == 0:
        os._exit(0 if same(expected, all_kernels()) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert same(expected, all_kernels())


def test_limits_of_blas_and_of_threadpoolctl_are_those_of_kernels():
    with blas_threads(1):
        assert kernels.get_num_threads() == 1
    assert kernels.get_num_threads() == 3
    with threadpool_limits(2):
        assert kernels.get_num_threads() == 2
    assert kernels.get_num_threads() == 3


@pytest.mark.parametrize(("asked", "expected"), [("1", 1), ("5", 5), ("2,4", 2), ("", os.cpu_count()), ("x", None)])
def test_the_environment_says_how_many_threads_there_are(asked, expected):
    if not asked or expected is None:
        expected = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    program = "from retrograd import kernels; print(kernels.get_num_threads())"
    environment = {**os.environ, "OMP_NUM_THREADS": asked, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) == expected


@pytest.mark.parametrize("policy", ["passive", "ACTIVE", ""])
def test_threads_work_whether_they_wait_awake_or_asleep(policy):
    program = "import numpy as np; from retrograd import kernels; print(kernels.column_sums(np.ones((4000, 99)))[98])"
    environment = {
        **os.environ,
        "OMP_WAIT_POLICY": policy,
        "OMP_NUM_THREADS": "3",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "4000.0\n"


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted by the files of Linux")
def test_threads_that_sleep_are_woken_only_for_jobs_that_take_longer_than_that():
    program = """
import os
import numpy as np
from retrograd import kernels

def threads_after_relu(count):
    kernels.relu(np.ones(count, "f"))
    return len(os.listdir("/proc/self/task"))

print(threads_after_relu(10) == threads_after_relu(1 << 17) < threads_after_relu(1 << 19))
"""
    environment = {
        **os.environ,
        "OMP_WAIT_POLICY": "passive",
        "OMP_NUM_THREADS": "2",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize("num", [0, -1])
def test_less_than_one_thread_is_refused(num):
    with pytest.raises(ValueError, match="expected at least 1 thread"):
        rg.set_num_threads(num)


@pytest.mark.parametrize("num", [1.5, "2", True])
def test_invalid_numbers_of_threads_are_refused(num):
    with pytest.raises(TypeError, match="set_num_threads: expected an int"):
        rg.set_num_threads(num)
