"""For all tests: the package is imported before pytest looks for doctests, which would else import its parts twice."""

import gc
from collections.abc import Iterator

import pytest

import retrograd.nested
import retrograd.ops  # noqa: F401
from retrograd.library import sanitize


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
