"""Ufuncs give the same results for every layout of operands; test_overlap.py covers results in operands' memory."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrograd import kernels
from retrograd.kernels import chosen

from .layouts import LAYOUTS, WRITABLE, plain

pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

UFUNCS = [name for name, found in vars(chosen).items() if isinstance(found, np.ufunc)]
SIZES = [1, 0, 2, 3, 5, 8, 15, 16, 17, 33, 64, 65]
MOST = 1 << 14  # elements of an array
IGNORED = -100  # of classes


@pytest.fixture(autouse=True, scope="module")
def two_threads():
    before = kernels.get_num_threads()
    kernels.set_num_threads(2)
    yield
    kernels.set_num_threads(before)


def sizes(draw, count):
    """Draw `count` sizes whose product is at most MOST."""
    found = []
    for _ in range(count):
        left = MOST // max(math.prod(found), 1)
        found.append(draw(st.sampled_from([size for size in SIZES if size <= left])))
    return found


class Call:
    """A ufunc with operands of random sizes and layouts."""

    def __init__(self, name, draw):
        self.ufunc, self.draw, self.r = getattr(chosen, name), draw, np.random.default_rng(0)
        self.types = draw(st.sampled_from(self.ufunc.types)).replace("->", "")
        signature = self.ufunc.signature or ",".join(["()"] * self.ufunc.nargs)
        self.core = [re.findall(r"\w+", dims) for dims in re.findall(r"\(([^)]*)\)", signature)]
        dims = sorted({dim for dims in self.core for dim in dims})
        drawn = sizes(draw, len(dims) + draw(st.integers(0, 2)))
        self.sizes, self.front = dict(zip(dims, drawn, strict=False)), tuple(drawn[len(dims) :])
        self.operands = [self.laid(k, LAYOUTS, self.broadcast()) for k in range(self.ufunc.nin)]

    def broadcast(self):
        """Return loop dimensions for an operand's core, which broadcast with the others'."""
        front = [self.draw(st.sampled_from([n, 1])) if n else n for n in self.front]
        return tuple(front[self.draw(st.integers(0, len(front))) :])

    def laid(self, k, layouts, front):
        shape = (*front, *(self.sizes[dim] for dim in self.core[k]))
        numbers = self.r.standard_normal(shape).astype(self.types[k].replace("l", "d").replace("?", "d"))
        if self.types[k] == "l":
            numbers = self.classes(k, shape)
        return self.draw(st.sampled_from(layouts))(np.asarray(numbers > 0 if self.types[k] == "?" else numbers))

    def classes(self, k, shape):
        """Return classes of rows, or the one class to ignore."""
        n = self.sizes.get("n", 4)
        return np.full(shape, IGNORED) if n == 0 or k == 2 else self.r.integers(0, n, shape)

    def expected(self):
        found = self.ufunc(*map(plain, self.operands))
        return found if isinstance(found, tuple) else (found,)

    def close(self, got, expected):
        for one, other in zip(got, expected, strict=True):
            tolerance = 1e-5 if self.types[0] == "f" or self.types[-1] == "f" else 1e-13
            scale = np.abs(other).max(initial=1, where=np.isfinite(other))
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.filterwarnings("ignore:invalid value encountered in flag_")  # how a check says that it fails
@pytest.mark.parametrize("name", UFUNCS)
@settings(max_examples=20)
@given(data=st.data())
def test_operands_and_results_may_have_any_layout(name, data):
    call = Call(name, data.draw)
    expected = call.expected()
    inputs = [x.copy() for x in call.operands]
    out = [data.draw(st.sampled_from([None, *WRITABLE])) for _ in expected]
    out = tuple(lay and lay(np.zeros_like(x)).reshape(np.shape(x)) for lay, x in zip(out, expected, strict=True))
    got = call.ufunc(*call.operands, out=out)
    call.close(got if isinstance(got, tuple) else (got,), expected)
    for x, before in zip(call.operands, inputs, strict=True):
        np.testing.assert_array_equal(x, before)


def operand(draw, shape):
    if draw(st.booleans()):
        return draw(st.sampled_from([0, 3, -2.5, 2**70, 1e300, True, np.float32(2), np.float64(0.1)]))
    numbers = np.random.default_rng(1).standard_normal(shape) + 4
    return draw(st.sampled_from(LAYOUTS))(numbers.astype(draw(st.sampled_from(["f4", "f8", "i8", "c16"]))))


def outcome(function, pair):
    """Return the dtype and the values, or the kind of error."""
    try:
        with np.errstate(all="ignore"):
            out = function(*pair)
    except (TypeError, OverflowError) as error:
        return type(error), 0
    return out.dtype, out


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "true_divide"])
@settings(max_examples=50)
@given(data=st.data())
def test_arithmetic_is_that_of_numpy_for_every_layout_of_operands(name, data):
    shape = tuple(sizes(data.draw, data.draw(st.integers(0, 2))))
    pair = [operand(data.draw, shape) for _ in range(2)]
    got, expected = (outcome(getattr(module, name), pair) for module in (chosen, np))
    assert got[0] == expected[0]
    np.testing.assert_array_equal(got[1], expected[1])
