"""The processors that this process may use, by its affinity mask and container, and the width of its vectors."""

import math
import os
from collections.abc import Callable, Iterator

from retrograd.foundation.lazy_imports import lazy_module

# The widths of vectors in bytes, by the instruction sets that `RETROGRAD_CPU` names; "sse" is every x86-64 processor.
VECTOR_BYTES = {"avx512": 64, "avx2": 32, "sse": 16}


def vector_bytes_limit() -> int:
    """Return the largest width of vectors, in bytes, that the variable `RETROGRAD_CPU` allows kernels to use."""
    name = os.environ.get("RETROGRAD_CPU", "") or "avx512"
    if name not in VECTOR_BYTES:
        raise ValueError(f"RETROGRAD_CPU={name}: the kernels are built for {', '.join(VECTOR_BYTES)}")
    return VECTOR_BYTES[name]


def limit_threads(set_kernel_threads: Callable[[int], None]) -> None:
    """Limit kernels and NumPy's matrix products to one thread per available processor, unless the user set a number.

    OpenBLAS respects an affinity mask, but not a quota.  With a quota, its threads use up their time while they wait
    for each other; then all threads of the process are stopped until the next period.
    """
    if _is_set("OMP_NUM_THREADS"):
        return
    count = available_processors()
    set_kernel_threads(count)
    if count < _affinity() and not _is_set("OPENBLAS_NUM_THREADS"):
        lazy_module("threadpoolctl").threadpool_limits(count, user_api="blas")


def _is_set(variable: str) -> bool:
    """Return whether a variable begins with a positive number, as the list "2,4" for nested levels does."""
    return os.environ.get(variable, "").lstrip().lstrip("0")[:1] in [*"123456789"]


def available_processors() -> int:
    """Return the number of processors that this process may use, at least 1.

    That is the size of its affinity mask, or less if a control group of Linux, such as that of a container, has a
    quota of processor time.  A quota of 1.5 processors counts as 2.
    """
    return max(1, math.ceil(min(_affinity(), quota())))


def _affinity() -> int:
    mask = getattr(os, "sched_getaffinity", None)  # macOS and Windows have none
    return len(mask(0)) if mask else os.cpu_count() or 1


def quota(root: str = "/") -> float:
    """Return the processors that the control groups of this process allow: the least quota, infinity without one.

    A group's quota holds for all groups within it.  In a container that has no view of the host's control groups, the
    group is the root of the file system of groups.  `root` is the folder that has /proc and /sys.
    """
    try:
        lines = _text(root, "proc/self/cgroup").splitlines()
    except OSError:  # not on Linux
        return math.inf
    groups = [line.split(":", 2) for line in lines if line.count(":") >= 2]
    return min((found for _, names, path in groups for found in _quotas(root, names, path)), default=math.inf)


def _quotas(root: str, controllers: str, path: str) -> Iterator[float]:
    """Yield the quotas of a group and of those around it; `controllers` is empty in version 2 of control groups."""
    if controllers and "cpu" not in controllers.split(","):
        return
    mounts = [os.path.join(root, "sys/fs/cgroup", name) for name in ((controllers, "cpu") if controllers else ("",))]
    read = _quota_of_version_1 if controllers else _quota_of_version_2
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for mount in mounts:
        for depth in range(len(parts), -1, -1):
            try:
                yield read(os.path.join(mount, *parts[:depth]))
            except (OSError, ValueError):  # the group is not visible here, or has no quota
                continue


def _quota_of_version_1(folder: str) -> float:
    quota, period = (int(_text(folder, f"cpu.cfs_{name}_us")) for name in ("quota", "period"))
    return quota / period if quota > 0 < period else math.inf


def _quota_of_version_2(folder: str) -> float:
    quota, period = _text(folder, "cpu.max").split()
    return math.inf if quota == "max" else int(quota) / int(period)


def _text(folder: str, name: str) -> str:
    """Return the text of a file; `import retrograd` runs this, and pathlib would take it 4 ms to import."""
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()
