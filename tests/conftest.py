"""Settings and fixtures of all tests."""

import gc
import os
import platform
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import retrograd as rg

from .own_operators import operators_of_a_test  # noqa: F401

# UCX, over which MPICH may send, writes its errors about the network to the output of the programs that tests read.
os.environ.setdefault("UCX_LOG_LEVEL", "fatal")

# How long an example of a property test takes says nothing on a busy machine.
settings.register_profile("any_load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any_load")


def pytest_configure(config):
    # There, products of NumPy report what happened to numbers that are not in their operands (numpy/numpy#28687).
    if platform.machine() in ("aarch64", "arm64"):
        config.addinivalue_line("filterwarnings", "ignore:.* encountered in matmul:RuntimeWarning")


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


@pytest.fixture
def no_collector():
    """Switch off the collector of reference cycles, so that only what has no references is freed."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def float64_as_default():
    """Make float64 the default dtype, as it is in NumPy."""
    before = rg.get_default_dtype()
    rg.set_default_dtype(rg.float64)
    yield
    rg.set_default_dtype(before)
