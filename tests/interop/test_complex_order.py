"""NumPy's functions order complex tensors as NumPy does: by the real part, then by the imaginary part."""

import numpy as np
import pytest

import retrograd as rg

VALUES = np.array([1 + 2j, 1 - 2j, 0 + 5j, 2 - 1j, 1 + 2j, complex("nan")])


@pytest.mark.parametrize("name", ["greater", "less", "greater_equal", "less_equal", "maximum", "minimum"])
def test_pairs_are_ordered_as_by_numpy(name):
    function = getattr(np, name)
    a, b = VALUES[:, None], VALUES[None, :]
    found = function(rg.tensor(a), rg.tensor(b))
    assert isinstance(found, rg.Tensor)
    with np.errstate(invalid="ignore"):  # NumPy warns of NaN
        np.testing.assert_array_equal(found.numpy(), function(a, b))


def test_equal_numbers_share_the_gradient_of_the_maximum():
    a, b = rg.tensor([1 + 2j, 3 + 0j], requires_grad=True), rg.tensor([1 + 2j, 1 + 9j], requires_grad=True)
    np.maximum(a, b).sum().real.backward()
    assert a.grad.tolist() == [0.5, 1.0]
    assert b.grad.tolist() == [0.5, 0.0]
