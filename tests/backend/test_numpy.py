"""Kernels that agree with NumPy's functions but use another algorithm for large arrays."""

import numpy as np
import pytest

from retrograd.backend import numpy as xp

from ..case_groups import group_cases


@group_cases
@pytest.mark.parametrize("dtype", ["?", "b", "h", "i", "q", "e", "f", "d", "F", "D"])
@pytest.mark.parametrize("shapes", [[(30_000,)] * 3, [(200, 1), (1, 100), ()], [(1,), (), (30_000,)], [(), (7,), (7,)]])
def test_where_chooses_bit_for_bit(dtype, shapes):
    rng = np.random.default_rng(0)
    condition = np.asarray(rng.random(shapes[0]) < 0.5)
    x, other = (np.asarray(rng.normal(size=shape) * 3).astype(dtype) for shape in shapes[1:])
    if dtype in "efd" and x.ndim:
        x.flat[:3] = np.nan, -0.0, np.inf
    found, expected = xp.where(condition, x, other), np.where(condition, x, other)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


def test_where_takes_booleans_of_python():
    condition = np.arange(20_000) % 3 == 0
    assert xp.where(condition, True, False).tolist() == condition.tolist()


def test_where_takes_arrays_that_are_not_contiguous_and_leaves_them_as_they_are():
    x = np.arange(40_000.0).reshape(2, -1).T
    kept = x.copy()
    assert np.array_equal(xp.where(x > 5, x, -x), np.where(x > 5, x, -x))
    assert np.array_equal(x, kept)


def arrays_to_expand():
    x = np.arange(24.0).reshape(2, 3, 4)
    return [x[:, :1], x[:, :1, ::-2], x.T[:, :1], x[0, 0, 0], np.float32(2).reshape(1), x[:0, :1], x > 3]


def test_broadcast_to_returns_numpys_views():
    for x in map(np.asarray, arrays_to_expand()):
        for shape in ((2, 3, 4), x.shape, (5, *x.shape), (0, *x.shape), (3, 2, 3, 4)):
            try:
                expected = np.broadcast_to(x, shape)
            except ValueError:
                with pytest.raises(ValueError, match="broadcast"):
                    xp.broadcast_to(x, shape)
                continue
            found = xp.broadcast_to(x, shape)
            assert found.dtype == expected.dtype
            assert not found.flags.writeable
            assert np.array_equal(found, expected)
            assert np.shares_memory(found, x) == (expected.size > 0)
            assert found.base is (x if x.base is None else x.base)


def test_broadcast_to_refuses_fewer_dimensions_and_negative_sizes():
    for shape in ((3,), (-1, 3), (2, -3)):
        with pytest.raises(ValueError, match=r"broadcast|dimensions|negative"):
            xp.broadcast_to(np.zeros((1, 3)), shape)


def test_a_view_of_an_expanded_array_keeps_its_memory():
    view = xp.broadcast_to(np.full((1, 3), 7.0), (1000, 3))
    assert view.sum() == 21_000


def test_functions_imported_on_first_use_are_those_of_their_modules():
    for names, module in xp._FUNCTIONS.items():
        assert sorted(names.split()) == sorted(module().__all__)
        assert all(getattr(xp, name) is getattr(module(), name) for name in names.split())


@pytest.mark.parametrize("columns", [0, 1, 3, 100])
def test_rows_are_summed_by_number(columns):
    rng = np.random.default_rng(0)
    src, ids = rng.normal(size=(4, 500, columns)), rng.integers(0, 7, (4, 500))
    expected = np.array([src[ids == i].sum(0) for i in range(7)])
    np.testing.assert_allclose(xp.sum_rows(src, ids, 7), expected)
