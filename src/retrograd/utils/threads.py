"""How threads share the machine: those within matrix products, and those of Python."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@contextmanager
def blas_threads(most: int) -> Iterator[None]:
    """While entered, matrix products use at most `most` threads each, in the whole process.

    Where several threads multiply small matrices at a time, OpenBLAS's own threads get in each other's way:
    they wait by spinning.  Never raises a lower limit.  Raises ValueError for less than one thread.

    >>> with blas_threads(1):
    ...     pass
    """
    if most < 1:
        raise ValueError(f"blas_threads: expected at least 1 thread, got {most}")
    controller = _blas()
    least = min([most, *[pool["num_threads"] for pool in controller.info()]])
    with controller.limit(limits=least):
        yield


@contextmanager
def short_turns(seconds: float = 2e-4) -> Iterator[None]:
    """While entered, a Python thread that wants to run waits at most about so long for the one that does.

    Python's default, 5 ms, is longer than many whole operators on small arrays, so that threads which hand
    work to each other would mostly wait. Holds for the whole process; see `sys.setswitchinterval`.

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


@cache
def _blas() -> ThreadpoolController:
    """The libraries behind NumPy's matrix products; looking for them takes longer than a small step."""
    return ThreadpoolController().select(user_api="blas")
