"""Fixtures of the kernel tests."""

import pytest

from retrograd import kernels


@pytest.fixture(params=[1, 3])
def threads(request):
    """Set the number of threads that work on one array, one value after the other."""
    before = kernels.get_num_threads()
    kernels.set_num_threads(request.param)
    yield request.param
    kernels.set_num_threads(before)
