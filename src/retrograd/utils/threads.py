"""Control how threads share the machine: those of matrix products and kernels, and those of Python."""

import sys
from collections.abc import Iterator
from functools import cache

from threadpoolctl import LibController, ThreadpoolController, register

from retrograd import kernels
from retrograd.core.blocks import generator_block
from retrograd.foundation.describe_value import describe


@generator_block
def blas_threads(most: int) -> Iterator[None]:
    """While entered, limit matrix products and kernels to `most` threads each, in the whole process.

    If several threads multiply small matrices concurrently, OpenBLAS's own threads compete:
    they wait by spinning.  Never raises a lower limit.  Raises ValueError for less than one thread.

    >>> with blas_threads(1):
    ...     pass
    """
    if most < 1:
        raise ValueError(f"blas_threads: expected at least 1 thread, got {most}")
    controller = _blas_controller()
    least = min([most, *[pool["num_threads"] for pool in controller.info()]])
    before = kernels.get_num_threads()
    kernels.set_num_threads(min(most, before))
    try:
        with controller.limit(limits=least):
            yield
    finally:
        kernels.set_num_threads(before)


def set_num_threads(num: int) -> None:
    """Set the maximum number of threads of one matrix product or kernel on a large array, in the whole process.

    Initially that is `OMP_NUM_THREADS`, or one per processor that the process may use: its affinity mask and the quota
    of its container count.  threadpoolctl's limits apply to kernels too, as the library "retrograd".  A kernel's
    threads spin for a millisecond after their work, as those of OpenMP do for longer; with `OMP_WAIT_POLICY=passive`
    they sleep at once.

    Raises TypeError for a non-integer, and ValueError for less than one thread.

    >>> import retrograd as rg
    >>> before = rg.get_num_threads()
    >>> rg.set_num_threads(1)
    >>> rg.get_num_threads()
    1
    >>> rg.set_num_threads(before)
    """
    if not isinstance(num, int) or isinstance(num, bool):
        raise TypeError(f"set_num_threads: expected an int, got {describe(num)}")
    if num < 1:
        raise ValueError(f"set_num_threads: expected at least 1 thread, got {num}")
    _blas_controller().limit(limits=num)
    kernels.set_num_threads(num)


def get_num_threads() -> int:
    """Return the maximum number of threads of one matrix product or kernel on a large array."""
    counts = [pool["num_threads"] for pool in _blas_controller().info()]
    return max([kernels.get_num_threads(), *([] if kernels.compiled else counts)])


@generator_block
def short_turns(seconds: float = 2e-4) -> Iterator[None]:
    """While entered, limit how long a Python thread waits for another one that runs.

    Python's default, 5 ms, is longer than many operators on small arrays, so threads that pass
    work to each other would mostly wait. Applies to the whole process; see `sys.setswitchinterval`.

    >>> with short_turns(0.001):
    ...     sys.getswitchinterval()
    0.001
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class _Kernels(LibController):
    """The interface through which threadpoolctl finds and limits the kernels' threads."""

    user_api = "retrograd"
    internal_api = "retrograd"
    filename_prefixes = ("native",)
    check_symbols = ("retrograd_get_num_threads", "retrograd_set_num_threads")

    def get_num_threads(self) -> int:
        return int(self.dynlib.retrograd_get_num_threads())

    def set_num_threads(self, num_threads: int) -> None:
        self.dynlib.retrograd_set_num_threads(num_threads)

    def get_version(self) -> str | None:
        return None

    def set_additional_attributes(self) -> None:
        """Do nothing: there are none."""


register(_Kernels)


@cache
def _blas_controller() -> ThreadpoolController:
    """Return the BLAS libraries; cached, because finding them takes longer than a small step."""
    return ThreadpoolController().select(user_api="blas")


_interop = [1]


def get_num_interop_threads() -> int:
    """Return the last value of `set_num_interop_threads`, 1 at the start: operators run one after the other."""
    return _interop[0]


def set_num_interop_threads(num: int) -> None:
    """Accept a number of threads that run operators at the same time, without effect.

    Raises RuntimeError unless it is at least 1.
    """
    if not isinstance(num, int) or num < 1:
        raise RuntimeError(f"set_num_interop_threads: Expected positive number of threads, got {describe(num)}")
    _interop[0] = num


def init_num_threads() -> None:
    """Do nothing: the number of threads belongs to the process, and a new thread has it at once."""
