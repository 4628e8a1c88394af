"""Fixtures of the tests of nested tensors."""

import pytest

from retrograd.nested import fallback_loop


@pytest.fixture(autouse=True)
def nothing_told():
    """Warnings that come once for each operator come in every test."""
    fallback_loop.forget()
