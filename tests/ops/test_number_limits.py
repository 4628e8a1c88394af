"""Python integers beyond the dtype of a tensor: operands wrap around, fill values and exponents are refused."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg

from ..tables import BOOLEANS_AND_INTEGERS

INTEGERS = [dtype for dtype in BOOLEANS_AND_INTEGERS if dtype != "bool"]
ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor)


def wrapped(values, dtype):
    """Return Python integers in a dtype, modulo its range."""
    return np.array([value % 2**64 for value in values], np.uint64).astype(dtype)


@given(dtype=st.sampled_from(INTEGERS), number=st.integers(-(2**63), 2**64 - 1), apply=st.sampled_from(ARITHMETIC))
def test_an_operand_wraps_around_as_if_exact_results_were_stored_in_the_dtype(dtype, number, apply):
    values = [int(value) for value in (np.iinfo(dtype).min, 0, 3, np.iinfo(dtype).max)]
    x = rg.tensor(values, dtype=dtype)
    for result, exact in (
        (apply(x, number), [apply(value, number) for value in values]),
        (apply(number, x), [apply(number, value) for value in values]),
    ):
        assert str(result.dtype) == dtype
        np.testing.assert_array_equal(result.numpy(), wrapped(exact, dtype))


def test_an_operand_beyond_64_bits_is_refused():
    with pytest.raises(OverflowError, match=r"add: 18446744073709551616 is too big"):
        rg.tensor([1, 2]) + 2**64


def test_writes_of_a_wrapped_operand_stay_in_the_dtype():
    x = rg.tensor([5, 6], dtype="uint8")
    assert x.add_(-3).tolist() == [2, 3]
    x *= 300
    assert x.tolist() == [88, 132]


FILLS = {
    "full": lambda n: rg.full((2,), n, dtype="uint8"),
    "full_like": lambda n: rg.full_like(rg.tensor([1, 2], dtype="uint8"), n),
    "where": lambda n: rg.where(rg.tensor([True, True]), n, rg.tensor([1, 2], dtype="uint8")),
    "masked_fill": lambda n: rg.tensor([1, 2], dtype="uint8").masked_fill(rg.tensor([True, True]), n),
    "pad": lambda n: rg.nn.functional.pad(rg.tensor([], dtype="uint8"), (1, 1), value=n),
}


@pytest.mark.parametrize("name", FILLS)
def test_a_fill_value_wraps_below_0_only_and_is_refused_above(name):
    assert FILLS[name](-3).tolist() == [253, 253]
    for number in (300, -256, 2**70):
        with pytest.raises(RuntimeError, match=f"{number}: value cannot be converted to type uint8 without overflow"):
            FILLS[name](number)


def test_an_exponent_beyond_the_dtype_is_refused_since_a_smaller_one_would_give_another_power():
    with pytest.raises(RuntimeError, match="pow: 300: value cannot be converted to type uint8 without overflow"):
        rg.tensor([7], dtype="uint8") ** 300
    assert (300 ** rg.tensor([2], dtype="uint8")).tolist() == [44 * 44 % 256]


def test_a_range_is_stored_in_a_dtype_that_does_not_hold_its_ends():
    assert rg.arange(-3, 2, dtype="uint8").tolist() == [253, 254, 255, 0, 1]


CONVERSIONS = {
    "add": lambda x, n: rg.add(x, x, alpha=n),
    "addcmul": lambda x, n: rg.addcmul(x, x, x, value=n),
    "addmm": lambda x, n: rg.addmm(x, x, x, beta=n),
    "clamp": lambda x, n: x.clamp(max=n),
    "fill_": lambda x, n: x.fill_(n),
    "index_add": lambda x, n: rg.index_add(x, 0, rg.tensor([0, 1]), x, alpha=n),
    "lerp_": lambda x, n: x.lerp_(x, n),
    "masked_fill": lambda x, n: x.masked_fill(x > 0, n),
    "pad": lambda x, n: rg.nn.functional.pad(x, (1, 1), value=n),
    "scatter": lambda x, n: rg.scatter(x, 0, rg.tensor([[0]]), n),
    "threshold": lambda x, n: rg.nn.functional.threshold(x, 0, n),
    "where": lambda x, n: rg.where(x > 0, x, n),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_a_number_too_large_for_the_dtype_is_refused_before_it_becomes_infinite(name):
    x = rg.eye(2)
    with pytest.raises(RuntimeError, match=r"1e\+300: value cannot be converted to type float32 without overflow"):
        CONVERSIONS[name](x, 1e300)
    assert x.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    CONVERSIONS[name](x.double(), 1e300)


@pytest.mark.parametrize("name", ["clamp", "fill_", "masked_fill", "pad", "scatter", "threshold", "where"])
def test_infinity_fits_every_floating_dtype(name):
    for dtype in ("float16", "bfloat16", "float32"):
        CONVERSIONS[name](rg.eye(2, dtype=dtype), float("inf"))


def test_the_factor_of_integers_is_truncated_in_addcmul():
    x = rg.tensor([2, 3])
    assert rg.addcmul(x, x, x, value=2.9).tolist() == [10, 21]
    assert rg.addcmul(x, x, x, value=2.9).dtype is rg.int64
