"""Arrays in a file keep their strides, if their memory has no gaps."""

import numpy as np
import pytest

from retrograd.interop.stored_arrays import StoredArrays


@pytest.mark.parametrize("dims", [(0, 1, 2, 3), (0, 2, 1, 3), (3, 2, 1, 0), (1, 0, 3, 2)])
def test_arrays_are_stored_if_their_memory_has_no_gaps_whatever_the_order_of_their_dimensions(dims):
    whole = np.arange(120.0).reshape(2, 3, 4, 5).copy().transpose(dims)
    stored = StoredArrays([whole, whole[1:, :, ::2]], [])
    assert stored.is_stored == [True, True]
    assert stored.nbytes == whole.nbytes
    for found, expected in zip(stored.load(), (whole, whole[1:, :, ::2]), strict=True):
        assert found.strides == expected.strides
        np.testing.assert_array_equal(found, expected)
