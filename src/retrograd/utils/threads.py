"""How threads share the machine: those within matrix products, and those of Python."""

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

_FORMS = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")


class _Control(NamedTuple):
    get: Callable[[], int]
    set: Callable[[int], None]


@contextmanager
def blas_threads(most: int) -> Iterator[None]:
    """While entered, matrix products use at most `most` threads each, in the whole process.

    Where several threads multiply small matrices at a time, OpenBLAS's own threads get in each other's way:
    they wait by spinning. Does nothing where NumPy brings no OpenBLAS of its own. Raises ValueError for less
    than one thread.

    >>> with blas_threads(1):
    ...     pass
    """
    if most < 1:
        raise ValueError(f"blas_threads: expected at least 1 thread, got {most}")
    before = [(control, control.get()) for control in _controls()]
    try:
        for control, threads in before:
            control.set(min(most, threads))
        yield
    finally:
        for control, threads in before:
            control.set(threads)


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
def _controls() -> list[_Control]:
    """Of each OpenBLAS that NumPy's wheel brings, the two functions that this needs."""
    numpy = find_spec("numpy")
    folders = [Path(place) for place in numpy.submodule_search_locations or ()] if numpy else []
    libraries = [
        path
        for folder in folders
        for place in (folder.with_name("numpy.libs"), folder / ".dylibs")
        for path in place.glob("*openblas*")
    ]
    return [control for path in libraries if (control := _control(ctypes.CDLL(str(path))))]


def _control(library: ctypes.CDLL) -> _Control | None:
    for form in _FORMS:
        if hasattr(library, form.format("set_num_threads")):
            return _Control(
                getattr(library, form.format("get_num_threads")), getattr(library, form.format("set_num_threads"))
            )
    return None
