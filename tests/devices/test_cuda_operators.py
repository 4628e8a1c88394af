"""Every operator on the device "cuda" over the stand-in for CuPy, with the kernels in CUDA C++."""

import pytest
from tests.devices import cuda_on_host, cupy_stand_in
from tests.devices.laws import Move, backward, failures, forward

import retrograd.higher_order
import retrograd.implicit  # noqa: F401

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(cuda_on_host.COMPILER is None, reason="needs g++ to run CUDA C++ on the CPU"),
]


@pytest.mark.parametrize("law", [forward, backward])
def test_operators_with_kernels_in_cuda_are_those_in_host_memory(law):
    with cupy_stand_in.installed() as device:
        assert failures(law, Move(device)) == {}
