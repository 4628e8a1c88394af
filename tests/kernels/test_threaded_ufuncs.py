"""NumPy's elementwise functions share large arrays among threads, with their own results and warnings."""

import warnings

import numpy as np
import pytest

from retrograd import kernels

SIZE = 3 * 65536 + 77  # several chunks, the last one not full


FUNCTIONS = {name: f for name, f in vars(np).items() if type(f) is np.ufunc and f.signature is None}


@pytest.fixture(params=["threads", "chunks"])
def shared(request):
    """Let three threads share arrays, or the caller run all chunks from the last to the first."""
    before = kernels.get_num_threads()
    kernels.set_num_threads(3)
    kernels.set_grain_size(0 if request.param == "threads" else -7)
    yield
    kernels.set_grain_size(0)
    kernels.set_num_threads(before)


def operands(types):
    """Return arrays of these types: numbers of all sizes, zeros, infinities and NaN."""
    random = np.random.default_rng(len(types))
    made = []
    for letter in types:
        dtype = np.dtype(letter)
        x = random.standard_normal(SIZE) * np.exp2(random.integers(-8, 9, SIZE))
        if dtype.kind in "fc":
            x[:: SIZE // 40] = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan], x[:: SIZE // 40].size)
        else:
            x = np.abs(x) % 100
        made.append(x.astype(dtype))
    return made


def numbers_only(types):
    return not set(types) - set("?bhilqBHILQefdgFDG->")


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@pytest.mark.parametrize("letter", "fd")
def test_bits_are_those_of_the_function(name, letter, shared):
    ufunc = FUNCTIONS[name]
    types = [t for t in ufunc.types if numbers_only(t) and letter in t.partition("->")[0]]
    if not types:
        pytest.skip("the function has no loop over such numbers")
    given = operands(types[0].partition("->")[0])
    with np.errstate(all="ignore"):
        expected = ufunc(*given)
        found = kernels.threaded(ufunc)(*given)
    for want, have in zip(np.atleast_2d(expected), np.atleast_2d(found), strict=True):
        assert have.dtype == want.dtype
        assert have.tobytes() == want.tobytes()


NOT_DEFINED = [("absolute", "M8[s]"), ("sign", "?"), ("sign", "M8[s]"), ("isfinite", "O")]


@pytest.mark.parametrize("dtype", ["e", "f", "d", "F", "i", "B", "?", "O", "M8[s]", ">f4"])
@pytest.mark.parametrize("name", ["absolute", "maximum", "equal", "isfinite", "sign"])
def test_other_dtypes_have_the_function_s_results_or_errors(name, dtype, shared):
    ufunc = FUNCTIONS[name]
    x = (np.arange(SIZE) % 100).astype("i8").astype(dtype)
    given = [x, x[::-1]][: ufunc.nin]
    if (name, dtype) in NOT_DEFINED:
        for function in (ufunc, kernels.threaded(ufunc)):
            with pytest.raises(TypeError, match=f"ufunc '{name}' (not supported|did not contain a loop)"):
                function(*given)
        return
    expected = ufunc(*given)
    found = kernels.threaded(ufunc)(*given)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("where", [0, SIZE // 2, SIZE - 1])
def test_warnings_are_raised_whichever_thread_meets_their_cause(where, shared):
    x = np.ones(SIZE, np.float32)
    x[where] = -1
    with pytest.warns(RuntimeWarning, match="invalid value encountered in log"):
        kernels.threaded(np.log)(x)
    x[where] = 0
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        kernels.threaded(np.log)(x)
    x[where] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernels.threaded(np.log)(x)


def test_out_may_be_an_operand_or_overlap_it(shared):
    x = np.random.default_rng(0).standard_normal(SIZE + 1).astype(np.float32)
    expected = np.exp(x[:-1])
    for first in (0, 1):
        own = x.copy()
        out = own[first : SIZE + first]
        assert kernels.threaded(np.exp)(own[:SIZE], out) is out
        assert np.array_equal(out, expected)


def test_operands_of_any_layout(shared):
    x = np.random.default_rng(0).standard_normal((600, 700)).astype(np.float32)
    hypot = kernels.threaded(np.hypot)
    for a, b in [
        (x, x[:, :1]),
        (x.T, x.T),
        (x[::-1], x),
        (x[:, ::2], x[:, ::2]),
        (x, 2.0),
        (x, np.float32(3)),
        (x, x[0]),
    ]:
        assert np.array_equal(hypot(a, b), np.hypot(a, b))
    assert hypot(x.T, x.T).strides == np.hypot(x.T, x.T).strides


@pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")
def test_only_ufuncs_are_shared():
    with pytest.raises(TypeError, match="a ufunc expected"):
        kernels.threaded(np.sum)
