"""Fixtures of the kernel tests."""

import pytest

from retrograd import kernels


@pytest.fixture(params=[1, 3])
def threads(request):
    """How many threads work on one array, one after the other."""
    before = kernels.get_num_threads()
    kernels.set_num_threads(request.param)
    yield request.param
    kernels.set_num_threads(before)
