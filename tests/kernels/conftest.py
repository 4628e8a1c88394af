"""Fixtures of the kernel tests."""

import pytest

from retrograd import kernels
from retrograd.kernels import processors


@pytest.fixture(params=[1, 3])
def threads(request):
    """Set the number of threads that work on one array, one value after the other."""
    before = kernels.get_num_threads()
    kernels.set_num_threads(request.param)
    yield request.param
    kernels.set_num_threads(before)


@pytest.fixture(params=sorted(processors.VECTOR_BYTES.values()))
def width(request):
    """Let kernels use vectors of that width in bytes; skip widths that the processor does not have."""
    before = kernels.get_vector_bytes()
    kernels.set_vector_bytes(request.param)
    if kernels.get_vector_bytes() != request.param:
        pytest.skip("the processor has no such vectors")
    yield request.param
    kernels.set_vector_bytes(before)
