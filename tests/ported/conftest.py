"""Scripts import PyTorch, which the tests need not have: only the harness imports them."""

import pytest

import retrograd as rg

collect_ignore = ["scripts"]


@pytest.fixture(autouse=True)
def restored_precision():
    """Restore the precision of products, which a script may set for its process."""
    before = rg.get_float32_matmul_precision()
    yield
    rg.set_float32_matmul_precision(before)
