"""Settings and fixtures of all tests."""

import random

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def seed() -> int:
    """Python's and NumPy's global generators start alike in every test, whatever ran before on the worker."""
    random.seed(0)
    np.random.seed(0)
    return 0


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    """A NumPy generator of the test's own."""
    return np.random.default_rng(seed)
