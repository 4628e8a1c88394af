"""Training scripts written for PyTorch give PyTorch's losses after a change of their import statements alone."""

import numpy as np
import pytest
import torch

from ..ported import harness


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # by the forward derivative of tanh in PyTorch
@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")  # by a checkpoint that one process loads
@pytest.mark.filterwarnings("ignore:DTensor random operators may not have complete support")
@pytest.mark.parametrize("name", harness.NAMES)
def test_a_script_gives_the_same_losses_in_both_libraries(name, monkeypatch):
    # Importing PyTorch's own test helpers, as other files do, forbids to set flags such as cudnn.benchmark.
    monkeypatch.setitem(torch.backends.flags_frozen.__globals__, "__allow_nonbracketed_mutation_flag", True)
    expected, found = harness.run(name, "torch"), harness.run(name)
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-5)
    assert found.numbers.keys() == expected.numbers.keys()
    for key, value in expected.numbers.items():
        rounding = 1e-6 * np.abs(value).max(initial=0.0)  # of the largest entry, for entries near 0
        np.testing.assert_allclose(found.numbers[key], value, rtol=1e-5, atol=rounding, err_msg=key)
