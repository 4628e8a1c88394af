"""The defaults for threads respect affinity masks and quotas; vectors are as wide as `RETROGRAD_CPU` allows."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from retrograd import kernels
from retrograd.kernels import processors, reference

needs_compiled = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")


def system(root, files):
    """Write files of /proc and /sys under a folder; name -> text."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


VERSION_1 = "4:memory:/a\n3:cpuacct,cpu:/docker/abc\n"
PERIOD, GROUP = "cpu.cfs_period_us", "sys/fs/cgroup/cpuacct,cpu"
QUOTAS = {
    "a group of version 2": ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"}, 1.5),
    "a group around it": (
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
            "sys/fs/cgroup/a/cpu.max": "200000 100000\n",
        },
        2.0,
    ),
    "the least of both": (
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/b/cpu.max": "300000 100000\n",
            "sys/fs/cgroup/a/cpu.max": "25000 50000\n",
        },
        0.5,
    ),
    "a container of version 2": ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "400000 100000\n"}, 4.0),
    "no quota": ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, math.inf),
    "a group of version 1": (
        {
            "proc/self/cgroup": VERSION_1,
            f"{GROUP}/docker/abc/cpu.cfs_quota_us": "50000\n",
            f"{GROUP}/docker/abc/{PERIOD}": "100000\n",
        },
        0.5,
    ),
    "a container of version 1, whose group is the root of what it sees": (
        {"proc/self/cgroup": VERSION_1, f"{GROUP}/cpu.cfs_quota_us": "300000\n", f"{GROUP}/{PERIOD}": "100000\n"},
        3.0,
    ),
    "a mount by the name of cpu": (
        {
            "proc/self/cgroup": VERSION_1,
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000\n",
            f"sys/fs/cgroup/cpu/{PERIOD}": "100000\n",
        },
        3.0,
    ),
    "no quota in version 1": (
        {"proc/self/cgroup": VERSION_1, f"{GROUP}/cpu.cfs_quota_us": "-1\n", f"{GROUP}/{PERIOD}": "100000\n"},
        math.inf,
    ),
    "the memory's group": (
        {"proc/self/cgroup": "4:memory:/a\n", "sys/fs/cgroup/memory/a/cpu.max": "100000 100000\n"},
        math.inf,
    ),
    "another system": ({}, math.inf),
    "unknown text": ({"proc/self/cgroup": "0::/\nno group\n", "sys/fs/cgroup/cpu.max": "many\n"}, math.inf),
}


@pytest.mark.parametrize(("files", "expected"), QUOTAS.values(), ids=QUOTAS)
def test_the_least_quota_of_the_groups_around_a_process_counts(tmp_path, files, expected):
    assert processors.quota(system(tmp_path, files)) == expected


@pytest.mark.parametrize(("quota", "expected"), [(0.2, 1), (1.0, 1), (1.5, 2), (2.0, 2), (100.0, 64), (math.inf, 64)])
def test_a_process_uses_part_of_the_machine_that_it_sees(monkeypatch, quota, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setattr(processors, "quota", lambda: quota)
    assert processors.available_processors() == expected


LIMITED = """
import os
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"): os.environ.pop(name, None)
os.environ.update({settings})
import builtins, io, numpy, threadpoolctl
{change}
import retrograd
blas = [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
print(retrograd.kernels.get_num_threads(), *blas)
"""
ONE_PROCESSOR = "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])"
# The files of the control groups are replaced before the package is imported.
QUOTA = """
texts, read = {"/proc/self/cgroup": "0::/", "/sys/fs/cgroup/cpu.max": "100000 100000"}, open
def opened(path, *args, **options): return io.StringIO(texts[path]) if path in texts else read(path, *args, **options)
builtins.open = opened
os.sched_getaffinity = lambda _: set(range(64))
"""


def threads_of_a_process(change, **settings):
    """Return the default number of threads of kernels, and of matrix products, of a process under a limit."""
    script = LIMITED.format(change=change, settings=settings)
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    return [int(number) for number in out.split()]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="there are no affinity masks")
def test_a_process_with_one_processor_has_one_thread():
    assert threads_of_a_process(ONE_PROCESSOR)[0] == 1


@pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")
@pytest.mark.skipif(not any(pool["user_api"] == "blas" for pool in threadpool_info()), reason="no BLAS is known")
def test_a_quota_limits_kernels_and_matrix_products_unless_a_number_is_set():
    assert set(threads_of_a_process(QUOTA)) == {1}
    assert threads_of_a_process(QUOTA, OMP_NUM_THREADS="3")[0] == 3
    assert threads_of_a_process(QUOTA, OMP_NUM_THREADS="x")[0] == 1
    kernel_threads, *products = threads_of_a_process(QUOTA, OPENBLAS_NUM_THREADS="2")
    assert (kernel_threads, set(products)) == (1, {min(2, os.cpu_count())})


# Puts the worker on the caller's processor ten times, and counts how often it is woken until it has left, but not how
# often other processes take its processor.
TOGETHER = """
import os, re
import numpy, retrograd
from retrograd import kernels

def read(thread, name):
    with open(f"/proc/self/task/{thread}/{name}") as file: return file.read()

def processor(thread): return int(read(thread, "stat").rsplit(")", 1)[1].split()[36])
def switches(thread): return int(re.search(r"^voluntary_ctxt_switches:\\s+(\\d+)", read(thread, "status"), re.M)[1])

kernels.set_num_threads(1)
before, x = set(os.listdir("/proc/self/task")), numpy.ones((256, 256), numpy.float32)
kernels.set_num_threads(2)
kernels.multiply_matrices(x, x)
caller, (worker,) = os.getpid(), map(int, set(os.listdir("/proc/self/task")) - before)
allowed = os.sched_getaffinity(caller)
os.sched_setaffinity(caller, [min(allowed)])
count = 0
for _ in range(10):
    os.sched_setaffinity(worker, [min(allowed)])
    for _ in range(20): kernels.multiply_matrices(x, x)
    os.sched_setaffinity(worker, allowed)
    start = switches(worker)
    while processor(worker) == processor(caller) or os.sched_getaffinity(worker) != allowed:
        kernels.multiply_matrices(x, x)
    count += switches(worker) - start
print(count)
"""


@needs_compiled
@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="the system does not list threads")
@pytest.mark.skipif(processors.available_processors() < 2, reason="there is one processor")
def test_a_worker_leaves_the_processor_of_the_caller_and_may_still_run_on_all():
    out = subprocess.run([sys.executable, "-c", TOGETHER], capture_output=True, text=True, check=True).stdout
    assert int(out) <= 40  # hundreds, if it waits until the system moves it


LEVELS = sorted(processors.VECTOR_BYTES.items())


@pytest.mark.parametrize(("name", "most"), [*LEVELS, ("", 64)])
def test_retrograd_cpu_limits_the_width_of_vectors(name, most, monkeypatch):
    monkeypatch.setenv("RETROGRAD_CPU", name)
    assert processors.vector_bytes_limit() == most


def test_an_unknown_instruction_set_is_refused_with_those_that_exist(monkeypatch):
    monkeypatch.setenv("RETROGRAD_CPU", "neon")
    with pytest.raises(ValueError, match=r"RETROGRAD_CPU=neon: .* avx512, avx2, sse"):
        processors.vector_bytes_limit()


@needs_compiled
@pytest.mark.parametrize(("name", "most"), LEVELS)
def test_kernels_of_a_process_use_vectors_of_at_most_that_width(name, most):
    code = "from retrograd import kernels; print(kernels.get_vector_bytes())"
    widths = [
        int(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True, text=True).stdout)
        for env in (dict(os.environ, RETROGRAD_CPU=name), dict(os.environ, RETROGRAD_CPU=""))
    ]
    assert widths[0] == min(most, widths[1])


@needs_compiled
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_agree_with_their_references_at_every_width(width, dtype):
    x = np.random.default_rng(0).standard_normal((37, 53)).astype(dtype)
    tolerance = 50 * np.finfo(dtype).eps
    for name in ("gelu", "softmax_rows", "log_softmax_rows", "erf", "column_sums"):
        np.testing.assert_allclose(
            getattr(kernels, name)(x), getattr(reference, name)(x), rtol=tolerance, atol=tolerance, err_msg=name
        )
    np.testing.assert_allclose(kernels.multiply_matrices(x, x.T), x @ x.T, rtol=tolerance, atol=53 * tolerance)
