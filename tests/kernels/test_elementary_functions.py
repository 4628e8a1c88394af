"""Our loops of elementary functions are accurate, and leave infinities, NaN, warnings and other types to NumPy."""

import warnings

import numpy as np
import pytest

from retrograd import kernels

pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

EXPONENTIALS = ["exp", "exp2", "expm1", "sinh", "cosh"]
LOGARITHMS = ["log", "log2", "log10", "log1p"]
TURNS = ["sin", "cos", "tan"]
NAMES = [*EXPONENTIALS, *LOGARITHMS, *TURNS, "tanh", "arcsinh", "arccosh", "arctanh", "arctan", "arcsin", "arccos"]
DTYPES = [np.float32, np.float64]
MOST_ULPS = 2.6  # units in the last place
MORE_ULPS = {"tan": 3.2}  # a quotient of two rounded numbers
HARD = [
    *(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1e-42, -1e-42, 1e-320, 1e-30, -1e-30, 1e30),
    *(-1e30, 1e300, 88.9, -88.9, -103.5, -150.0, 89.3, 128.0, 709.8, 710.4, -745.2, 1024.0, 2.0**20, 2.0**20 + 1, 1e7),
]


def numbers(name, dtype):
    """Return numbers of all sizes from the domain of a function, and more of those where its formulas change."""
    random, limits, n = np.random.default_rng(0), np.finfo(dtype), 20_000
    log_sizes = random.uniform(np.log(limits.tiny) + 1, np.log(limits.max) - 1, n)
    near, small, sizes = random.normal(size=n), random.normal(size=n) * 1e-3, np.exp(log_sizes)
    if name in EXPONENTIALS:
        found = [near, small, random.uniform(-1, 1, n) * np.log(limits.max)]
    elif name == "log1p":
        found = [near[near > -0.99], small, random.uniform(0, 0.01, n) - 1, sizes]
    elif name in LOGARITHMS:
        found = [np.abs(near) + limits.eps, 1 + small, random.uniform(0.5, 2, n), sizes]
    elif name in TURNS:
        found = [near, small, random.uniform(-1, 1, n) * 2**20, np.arange(1, n) * np.pi / 2]
    elif name in ("arcsin", "arccos", "arctanh"):
        found = [random.uniform(-1, 1, n), 1 - np.abs(small[np.abs(small) < 1]), small]
    elif name == "arccosh":
        found = [1 + np.abs(near), 1 + np.abs(small), 1 + np.sqrt(sizes)]
    else:
        found = [near, 3 * near, small, np.sqrt(sizes), -np.sqrt(sizes)]
    return np.concatenate(found).astype(dtype)


def finer(dtype):
    return np.float64 if dtype == np.float32 else np.longdouble


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture(params=DTYPES, ids=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="there is nothing more precise to compare with")
def test_results_are_accurate(name, dtype, width):
    if width != 32:
        pytest.skip("NumPy's loops compute most functions")
    function, x = getattr(np, name), numbers(name, dtype)
    expected = function(x.astype(finer(dtype)))
    normal = np.abs(expected) >= np.finfo(dtype).tiny
    unit = np.spacing(np.abs(expected.astype(dtype))).astype(finer(dtype))
    errors = np.abs(kernels.with_own_loops(function)(x) - expected) / unit
    assert errors[normal].max() <= MORE_ULPS.get(name, MOST_ULPS)


def test_powers_of_the_base_have_exact_logarithms(dtype, width):
    k = np.arange(-30, 31)
    assert np.array_equal(kernels.with_own_loops(np.log2)(np.exp2(k).astype(dtype)), k)
    if width == 32:
        assert np.array_equal(kernels.with_own_loops(np.log10)((10.0**k).astype(dtype)), k)


def results_and_warnings(function, x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return function(x), sorted({str(one.message) for one in caught})


def test_hard_numbers_have_the_kinds_and_warnings_of_numpy(name, dtype, width):
    function, limits = getattr(np, name), np.finfo(dtype)
    with np.errstate(over="ignore", under="ignore"):
        hard = np.array(HARD).astype(dtype)
    for number in hard:
        for x in (np.array([number]), np.insert(np.full(1000, 0.25 + (name == "arccosh"), dtype), 700, number)):
            found, said = results_and_warnings(kernels.with_own_loops(function), x)
            expected, wanted = results_and_warnings(function, x)
            assert said == wanted, number
            np.testing.assert_allclose(found, expected, rtol=8 * limits.eps, atol=2 * limits.smallest_subnormal)
            assert np.array_equal(np.signbit(found), np.signbit(expected)) or np.isnan(number), number


def test_an_element_has_the_same_bits_in_every_array(name, dtype, width):
    x = numbers(name, dtype)[:2077]
    x[::50] = np.nan  # blocks of which some elements are left to NumPy, and others
    function = kernels.with_own_loops(getattr(np, name))
    with np.errstate(all="ignore"):
        whole = function(x)
        parts = np.concatenate([function(x[i : i + 13]) for i in range(0, x.size, 13)])
        strided = function(np.repeat(x, 3)[::3])
        spread = np.zeros(2 * x.size, dtype)
        function(x, out=spread[::2])
        own, backward = x.copy(), x[::-1].copy()
        function(own, out=own)
        function(backward[::-1], out=backward[::-1])
    for other in (parts, strided, spread[::2], own, backward[::-1]):
        assert other.tobytes() == whole.tobytes()


@pytest.mark.parametrize("given", ["e", "g", "F", "D", "b", "i8", "?"])
def test_other_types_are_left_to_numpy(given, name):
    x = np.ones(5, given)
    with np.errstate(all="ignore"):
        expected, found = getattr(np, name)(x), kernels.with_own_loops(getattr(np, name))(x)
    assert found.dtype == expected.dtype
    if expected.dtype not in DTYPES:
        assert np.array_equal(found, expected, equal_nan=True)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_objects_are_left_to_numpy():
    class Number:
        def exp(self):
            return "e"

    assert kernels.with_own_loops(np.exp)(np.array([Number()], object))[0] == "e"


def test_functions_without_loops_of_ours_are_left_alone():
    for ufunc in (np.sqrt, np.add, np.matmul):
        assert kernels.with_own_loops(ufunc) is ufunc
    with pytest.raises(TypeError, match="with_own_loops: a ufunc expected"):
        kernels.with_own_loops(len)
