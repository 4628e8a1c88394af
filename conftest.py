"""For all tests: the package is imported before pytest looks for doctests, which would else import its parts twice."""

import gc
import os
import sys
from collections.abc import Iterator

import pytest

import retrograd.nested
import retrograd.ops  # noqa: F401
from retrograd.library import sanitize

MEMORY = 4  # GiB for each process of tests


def pytest_configure() -> None:
    """Limit the memory of this process and of those that it starts: who asks for more fails with MemoryError, by name.

    Without a limit the system kills the process that has most, without a word.  RETROGRAD_TEST_MEMORY sets another one;
    0 is none, which sanitizers need.
    """
    limit = int(os.environ.get("RETROGRAD_TEST_MEMORY", MEMORY)) << 30
    if limit and sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop() -> Iterator[None]:
    """The garbage collector skips tests and modules: they stay to the end, and cost it half a second each time."""
    gc.collect()
    gc.freeze()
    try:
        return (yield)
    finally:
        gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def honest() -> Iterator[None]:
    """Kernels of users' operators get read-only inputs, and may not return their memory, in every test."""
    with sanitize():
        yield
