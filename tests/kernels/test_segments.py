"""Segment kernels agree with the reference, bit for bit the same for any number of threads."""

import warnings

import numpy as np
import pytest

from retrograd import kernels
from retrograd.kernels import chosen, reference

from ..case_groups import group_cases

pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

DTYPES = (np.float32, np.float64)
REDUCTIONS, MAPS = ("segment_sum", "segment_max"), ("segment_softmax", "segment_log_softmax")
LENGTHS = [[], [0], [1], [3, 0, 5, 1, 0], [40, 17, 16, 15], [2] * 300, [5000, 0, 3]]


def segment_results(module, name, x, offsets):
    out = np.full(x.shape if name in MAPS else (len(x), len(offsets) - 1, x.shape[2]), np.nan, x.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if module is chosen else "ignore")
        getattr(module, name)(x, offsets, out)
    return out


def check(name, x, lengths):
    offsets = np.cumsum([0, *lengths])
    got, expected = segment_results(chosen, name, x, offsets), segment_results(reference, name, x, offsets)
    eps = np.finfo(x.dtype).eps
    added = 12 * (16 + max(lengths, default=0))  # so much at most: the numbers of which sums are made are below 12
    np.testing.assert_allclose(got, expected, rtol=16 * eps, atol=added * eps)
    before = kernels.get_num_threads()
    for threads in (1, 3):
        kernels.set_num_threads(threads)
        np.testing.assert_array_equal(segment_results(chosen, name, x, offsets), got)
    kernels.set_num_threads(before)


@group_cases
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*REDUCTIONS, *MAPS])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(("batch", "columns"), [(1, 1), (3, 1), (1, 5), (2, 64), (1, 130), (0, 3), (2, 0)])
def test_segments_are_those_of_the_reference(name, lengths, batch, columns, dtype):
    x = np.random.default_rng(0).standard_normal((batch, sum(lengths), columns)) * 3
    check(name, x.astype(dtype), lengths)


@group_cases
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*REDUCTIONS, *MAPS])
@pytest.mark.parametrize("columns", [1, 3, 70])
def test_hard_numbers_are_those_of_the_reference(name, columns, dtype):
    rows = [1.0, np.nan, 2.0], [np.inf, 1.0], [-np.inf, 1.0], [-np.inf] * 3, [1e30, -1e30, 0.0], [np.nan] * 20
    x = np.repeat(np.concatenate(rows).astype(dtype)[None, :, None], columns, 2)
    check(name, x, [len(row) for row in rows])


@pytest.mark.parametrize("name", [*REDUCTIONS, *MAPS])
@pytest.mark.parametrize("offsets", [[0, 3], [1, 4], [0, 5, 4], [0, -1, 4], []])
def test_offsets_that_are_none_are_refused(name, offsets):
    x = np.zeros((1, 4, 2))
    out = x if name in MAPS else np.zeros((1, max(len(offsets) - 1, 0), 2))
    with pytest.raises(ValueError, match="the arrays do not fit"):
        getattr(chosen, name)(x, np.array(offsets, np.int64), out)


@pytest.mark.parametrize("spoil", [lambda a: a[:, :1], lambda a: a.astype("f"), lambda a: a.astype(">f8"), np.squeeze])
def test_arrays_that_do_not_fit_are_refused(spoil):
    x, offsets = np.zeros((1, 4, 2)), np.array([0, 4])
    for name in (*REDUCTIONS, *MAPS):
        out = np.zeros_like(x) if name in MAPS else np.zeros((1, 1, 3))
        with pytest.raises(ValueError, match="the arrays do not fit"):
            getattr(chosen, name)(x, offsets, spoil(out))
