"""Settings and fixtures of all tests."""

import gc
import random
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg

# Folders and files about packages that are never compiled, which reach the core through operators, `backward` and the
# transforms only. On the plain core these have the tests of core, autograd, func, library and ops, every operator's
# laws among them, and other tests of the same packages. `make coverage` runs the whole suite on the plain core.
ABOVE_THE_CORE = (
    "compiler/test_operator_laws.py",
    "distributions/",
    "examples/",
    "export/",
    "fx/test_trace_laws.py",
    "mirrors/",
    "nested/test_aliasing.py",
    "nested/test_method_law.py",
    "nested/test_reduce.py",
    "nested/test_scan.py",
    "nested/test_segments.py",
    "optim/",
    "sklearn/",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of packages that are never compiled, before `-m` selects."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            file = item.path.relative_to(Path(__file__).parent).as_posix()
            if file.startswith(ABOVE_THE_CORE):
                item.add_marker(pytest.mark.once("it is about a package that is never compiled"))


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
