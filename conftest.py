"""For all tests: the package is imported before pytest looks for doctests, which would else import its parts twice."""

from collections.abc import Iterator

import pytest

import retrograd.nested
import retrograd.ops  # noqa: F401
from retrograd.library import sanitize


@pytest.fixture(scope="session", autouse=True)
def honest() -> Iterator[None]:
    """Kernels of users' operators get read-only inputs, and may not return their memory, in every test."""
    with sanitize():
        yield
