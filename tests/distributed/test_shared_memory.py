"""Ranks of one host average vectors in memory that they share."""

import numpy as np
import pytest

from retrograd.distributed.shared_memory import TILE, _average_part


@pytest.mark.parametrize("size", [0, 1, 2, 7, 3 * TILE + 5])
def test_the_parts_of_all_ranks_together_are_the_whole_mean_in_each_vector(size):
    vectors = [np.random.default_rng(seed).standard_normal(size).astype("f") for seed in range(3)]
    expected = np.mean([x.astype("d") for x in vectors], axis=0)
    for rank in (2, 0, 1):
        _average_part(vectors, rank, 1 / 3)
    np.testing.assert_allclose(vectors[0], expected, rtol=1e-5, atol=1e-6)
    for other in vectors[1:]:
        np.testing.assert_array_equal(other, vectors[0])


def test_a_sum_that_overflows_has_a_mean():
    vectors = [np.full(2, 3e38, "f"), np.full(2, 3e38, "f")]
    for rank in range(2):
        _average_part(vectors, rank, 0.5)
    np.testing.assert_array_equal(vectors, 3e38 * np.ones((2, 2), "f"))
