"""Ranks of one host average vectors in memory that they share."""

import numpy as np
import pytest

from retrograd.distributed.shared_memory import TILE, _average_part, part_of_rank


def average_part(vectors, rank):
    """Do what one rank does, whose own vector is all in one array."""
    others = [x for index, x in enumerate(vectors) if index != rank]
    part = part_of_rank(rank, len(vectors), vectors[0].size)
    _average_part(others, [(part.start, vectors[rank][part])], 1 / len(vectors))


@pytest.mark.parametrize("size", [0, 1, 2, 7, 3 * TILE + 5])
def test_the_parts_of_all_ranks_together_are_the_whole_mean_in_each_vector(size):
    vectors = [np.random.default_rng(seed).standard_normal(size).astype("f") for seed in range(3)]
    expected = np.mean([x.astype("d") for x in vectors], axis=0)
    for rank in (2, 0, 1):
        average_part(vectors, rank)
    np.testing.assert_allclose(vectors[0], expected, rtol=1e-5, atol=1e-6)
    for other in vectors[1:]:
        np.testing.assert_array_equal(other, vectors[0])


def test_a_sum_that_overflows_has_a_mean():
    vectors = [np.full(2, 3e38, "f"), np.full(2, 3e38, "f")]
    for rank in range(2):
        average_part(vectors, rank)
    np.testing.assert_array_equal(vectors, 3e38 * np.ones((2, 2), "f"))
