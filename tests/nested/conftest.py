"""Fixtures of the tests of nested tensors."""

import pytest

from retrograd.nested import fallback_loop


@pytest.fixture(autouse=True)
def nothing_told():
    """Reset the warnings that are given once per operator, so that every test gets them."""
    fallback_loop.reset_warnings()
