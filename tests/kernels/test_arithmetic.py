"""Sums, differences, products and quotients equal NumPy's, to the last bit, warning and error."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrograd import kernels

from ..case_groups import group_cases

pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

NAMES = ("add", "subtract", "multiply", "true_divide")
NUMBERS = [0.0, -0.0, 1.5, -2.25, 1e-30, 3e38, -3e38, 1e300, 1e-310, np.inf, -np.inf, np.nan]
SHAPES = [(), (0,), (1,), (4,), (3, 5), (1, 5), (1024,), (1025,), (700, 101)]


def outcome(function, *args):
    """Return the result, or the error, and the warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = function(*args)
        except Exception as error:
            return type(error), str(error)
    texts = sorted({str(w.message) for w in told})
    return type(found), found.dtype, found.shape, found.strides, np.asarray(found).tobytes(), texts


def check(name, a, b):
    got, expected = outcome(getattr(kernels, name), a, b), outcome(getattr(np, name), a, b)
    if expected[1:3] == (np.dtype("f4"), ()) or expected[1:3] == (np.dtype("f8"), ()):
        got, expected = got[1:], expected[1:]  # an array of no dimensions, or a scalar: both will do
    assert got == expected


def filled(shape, dtype, seed):
    return (np.random.default_rng(seed).standard_normal(shape) * 10).astype(dtype)


@group_cases
@pytest.mark.parametrize("dtypes", ["ff", "dd", "fd", "lf", "ll", "ef", "FF", "?f"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_pairs_are_numpys(name, shape, dtypes):
    a, b = (filled(shape, dtype, seed) for seed, dtype in enumerate(dtypes))
    check(name, a, b)
    check(name, a, a)
    check(name, a, filled((), dtypes[1], 3))
    check(name, filled((), dtypes[0], 3), b)


@group_cases
@pytest.mark.parametrize(
    "number", [*NUMBERS, 0, 3, -7, 1 << 24, (1 << 24) + 1, 1 << 70, True, 2 + 1j, np.float64(0.1), np.int64(3)]
)
@pytest.mark.parametrize("dtype", ["f", "d", "l"])
@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_as_weak_as_with_numpy(name, dtype, number):
    for shape in ((), (5,), (3000,)):
        a = filled(shape, dtype, 1)
        check(name, a, number)
        check(name, number, a)


@given(
    st.lists(st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)), min_size=1, max_size=9),
    st.sampled_from("fd"),
)
def test_floating_point_warnings_are_those_of_numpy(pairs, dtype):
    with np.errstate(all="ignore"):
        a, b = np.array(pairs, "d").astype(dtype).T.copy()
    for name in NAMES:
        check(name, a, b)
        check(name, np.tile(a, 70_000 // len(a)), np.tile(b, 70_000 // len(a)))
        with np.errstate(all="ignore"):
            check(name, a, b)


BROADCAST = [
    ((3,), (4,)), ((2, 3), (3, 2)), ((3, 1), (4,)), ((1,), (5,)), ((2, 3), (3,)),
    ((3, 1), (40,)), ((1, 9), (9,)), ((1,), (9,)), ((5, 3, 1), (5, 1, 9)), ((4, 1, 9), (1, 3, 1)), ((0, 1), (1, 9)),
    ((2, 3, 4, 10), (3, 1, 10)), ((7, 2, 3, 8), (1, 2, 3, 1)), ((2, 1, 3, 1, 8), (1, 4, 1, 2, 1)), ((5, 9), (4, 1)),
    ((2, 1) * 4 + (8,), (1, 2) * 4 + (1,)), ((2, 1) * 5 + (8,), (1, 2) * 5 + (1,)),
]  # fmt: skip


@group_cases
@pytest.mark.parametrize("shapes", BROADCAST)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_other_shapes_broadcast_or_are_refused_as_numpy_does(name, shapes, dtype):
    a, b = (filled(shape, dtype, seed) for seed, shape in enumerate(shapes))
    check(name, a, b)
    check(name, b, a)


def test_rows_warn_as_with_numpy():
    column, row = np.array([[1e30], [0.0]], "f"), np.full(9, 1e30, "f")
    for name in NAMES:
        check(name, column, row)
        check(name, row, column)


def test_any_layout_gives_numpys_numbers_in_numpys_layout():
    x, swapped = filled((40, 30), "f", 0), filled((40, 30), ">f4", 0)
    misaligned = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view("f").reshape(x.shape)
    for a in (x.T, x[::2], x[:, ::-1], swapped, misaligned, np.asfortranarray(x), x.view(np.matrix)):
        for b in (a, a.copy(), 2.5):
            check("multiply", a, b)
            assert kernels.multiply(a, b).strides == np.multiply(a, b).strides


def test_further_arguments_of_binary_ufuncs_go_to_numpy():
    a, b, out = filled((4,), "f", 0), filled((4,), "f", 1), np.zeros(4, "f")
    assert kernels.add(a, b, out=out) is out
    np.testing.assert_array_equal(out, a + b)
    assert kernels.add(a, b, dtype="f8").dtype == np.float64
    with pytest.raises(TypeError):
        kernels.add(a)
    with pytest.raises(TypeError):
        kernels.add(a, object())


def test_several_threads_compute_what_one_does():
    a, b = filled((1 << 20,), "f", 0), filled((1 << 20,), "f", 1)
    before = kernels.get_num_threads()
    try:
        for name in NAMES:
            results = []
            for count in (1, 2, 5):
                kernels.set_num_threads(count)
                results.append(getattr(kernels, name)(a, b).tobytes())
                results[-1] += getattr(kernels, name)(a.reshape(-1, 1, 64)[:3000], b[:192].reshape(3, 64)).tobytes()
            assert len(set(results)) == 1
    finally:
        kernels.set_num_threads(before)
