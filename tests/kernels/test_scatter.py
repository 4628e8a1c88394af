"""Gather and scatter-add kernels agree with the reference, and add in one order for any number of threads."""

import numpy as np
import pytest

from retrograd import kernels
from retrograd.kernels import chosen, reference

pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

DTYPES = (np.float32, np.float64)
SHAPES = [  # batch, size, count, columns
    (1, 5, 7, 1),
    (1, 5, 7, 3),
    (3, 5, 0, 4),
    (3, 5, 11, 20),
    (0, 5, 7, 9),
    (2, 1, 9, 70),
    (1, 40, 1000, 129),
    (2, 3000, 50, 65),
    (60, 700, 900, 1),
]


def numbers(dtype, *shape):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def random_indices(size, *shape):
    return np.random.default_rng(1).integers(0, size, shape)


def both(name, first, second, shape):
    """Return what the kernel and its reference implementation write."""
    out = np.full((2, *shape), np.nan, first.dtype)
    assert getattr(chosen, name)(first, second, out[0])
    assert getattr(reference, name)(first, second, out[1])
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("batch", "size", "count", "columns"), SHAPES)
def test_rows_are_summed_in_the_order_of_the_reference(batch, size, count, columns, dtype, threads):
    rows = numbers(dtype, batch, count, columns)
    np.testing.assert_array_equal(*both("sum_rows", rows, random_indices(size, count), (batch, size, columns)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("batch", "size", "count", "columns"), SHAPES)
def test_rows_are_added_as_by_the_reference(batch, size, count, columns, dtype, threads):
    rows, x, ids = (
        numbers(dtype, batch, count, columns),
        numbers(dtype, batch, size, columns),
        random_indices(size, count),
    )
    outs = [np.full_like(x, np.nan) for _ in range(2)]
    assert all(module.add_rows(rows, ids, x, out) for module, out in zip((chosen, reference), outs, strict=True))
    np.testing.assert_array_equal(*outs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("batch", "size", "count", "columns"), SHAPES)
def test_elements_are_summed_in_the_order_of_the_reference(batch, size, count, columns, dtype, threads):
    values, index = numbers(dtype, batch, count, columns), random_indices(size, batch, count, columns)
    np.testing.assert_array_equal(*both("sum_along", values, index, (batch, size, columns)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("batch", "size", "count", "columns"), SHAPES)
def test_elements_are_those_at_the_indices(batch, size, count, columns, dtype, threads):
    x, index = numbers(dtype, batch, size, columns), random_indices(size, batch, count, columns)
    np.testing.assert_array_equal(*both("take_along", x, index, index.shape))


@pytest.mark.parametrize("columns", [2, 30])
def test_numbers_that_are_none_go_where_they_belong(columns):
    rows = np.ones((1, 4, columns))
    rows[0, :3, 0] = np.nan, np.inf, -0.0
    out = both("sum_rows", rows, np.array([0, 1, 3, 1]), (1, 4, columns))
    np.testing.assert_array_equal(*out)
    assert np.isnan(out[0, 0, 0, 0])
    assert out[0, 0, 1, 0] == np.inf


@pytest.mark.parametrize("module", [chosen, reference])
@pytest.mark.parametrize("wrong", [-1, 3, 2**40])
@pytest.mark.parametrize("columns", [1, 20])
def test_an_index_out_of_range_is_reported(module, wrong, columns):
    x, index = np.zeros((1, 3, columns)), np.zeros((1, 4, columns), np.int64)
    index[0, 2, -1] = wrong
    assert not module.sum_rows(index.astype(float), index[0, :, -1].copy(), x)
    assert not module.add_rows(index.astype(float), index[0, :, -1].copy(), x, x.copy())
    assert not module.sum_along(index.astype(float), index, x)
    assert not module.take_along(x, index, index.astype(float))
    assert not module.take_along(x[:, :0].copy(), np.zeros_like(index), index.astype(float))


@pytest.mark.parametrize("spoil", [lambda a: a[:, ::2], lambda a: a.astype("f"), lambda a: a.astype(">f8"), np.squeeze])
def test_arrays_that_do_not_fit_are_refused(spoil):
    x, index, out = np.zeros((1, 4, 3)), np.zeros((1, 4, 3), np.int64), np.zeros((1, 5, 3))
    for first, second in ((spoil(x), out), (x, spoil(out))):
        for kernel, ids in ((chosen.sum_rows, index[0, :, 0].copy()), (chosen.sum_along, index)):
            with pytest.raises(ValueError, match="the arrays do not fit"):
                kernel(first, ids, second)
    for ids in (index[:, :2].copy(), index[..., :2].copy(), index.astype(np.int32), index[0]):
        with pytest.raises(ValueError, match="the arrays do not fit"):
            chosen.take_along(out, ids, x)
