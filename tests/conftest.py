"""Settings and fixtures of all tests."""

import random

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def seed() -> int:
    """Seed Python's and NumPy's global generators the same in every test, whatever ran before on the worker."""
    random.seed(0)
    np.random.seed(0)
    return 0


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    """Return a NumPy generator of the test's own."""
    return np.random.default_rng(seed)
