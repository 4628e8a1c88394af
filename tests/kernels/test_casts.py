"""Conversions between float32 and the formats of 16 bits give the bits that NumPy and `ml_dtypes` give."""

import ml_dtypes
import numpy as np
import pytest

import retrograd as rg
from retrograd import kernels
from retrograd.backend.stored_dtypes import convert

WORDS = np.arange(1 << 16).astype(np.uint16)
# Every first half of float32's bits with the second halves at which rounding changes, and random ones.
SECOND = np.array(
    [0, 1, 0x7FF, 0xFFF, 0x1000, 0x1001, 0x2000, 0x7FFF, 0x8000, 0x8001, 0xEFFF, 0xF000, 0xFFFF], np.uint32
)
SINGLE = np.concatenate(
    [
        ((np.arange(1 << 16, dtype=np.uint32) << 16)[:, None] | SECOND).reshape(-1),
        np.random.default_rng(0).integers(0, 2**32, 1 << 18, np.uint64).astype(np.uint32),
    ]
).view(np.float32)

# NumPy keeps the bits of NaN where it converts in integers (x86), and changes them where it has the processor's
# instructions (64-bit ARM), which also report a signaling one: there, only signs of NaN are compared.
SIGNALING = np.array(0x7C01, np.uint16).view(np.float16)
with np.errstate(invalid="ignore"):
    NUMPY_CHANGES_NAN = bool(SIGNALING.astype(np.float32).view(np.uint32) & 0x400000)


def bits(x):
    words = x.view({2: np.uint16, 4: np.uint32}[x.itemsize])
    if not NUMPY_CHANGES_NAN or x.dtype == ml_dtypes.bfloat16:
        return words
    return np.where(np.isnan(x), np.copysign(x.dtype.type("nan"), x).view(words.dtype), words)


def assert_same_bits(got, expected):
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(bits(got), bits(expected))


@pytest.mark.usefixtures("width")
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_rounding_has_numpys_bits_for_infinities_nan_and_subnormal_numbers(dtype):
    with np.errstate(all="ignore"):
        assert_same_bits(convert(SINGLE, np.dtype(dtype)), SINGLE.astype(dtype))


@pytest.mark.usefixtures("width")
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_widening_has_numpys_bits_for_every_number(dtype):
    x = WORDS.view(dtype)
    with np.errstate(invalid="ignore"):
        assert_same_bits(convert(x, np.dtype(np.float32)), x.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("change", [np.transpose, np.flip, lambda x: x[:, ::2], np.asfortranarray])
def test_the_order_of_memory_is_preserved(dtype, change):
    x = change(np.random.default_rng(1).standard_normal((64, 65)).astype(np.float32))
    out = convert(x, np.dtype(dtype))
    assert_same_bits(out, x.astype(dtype))
    assert out.strides == x.astype(dtype).strides
    back = convert(out, np.dtype(np.float32))
    assert back.strides == out.astype(np.float32).strides


@pytest.mark.usefixtures("width")
@pytest.mark.parametrize("count", [0, 1, 7, 9, 511, 513, 1031])
def test_a_number_has_the_same_bits_at_every_index(count):
    """Numbers after the last whole vector, and those next to NaN and infinities, are converted by other code."""
    x, half = SINGLE[1234 : 1234 + count], WORDS[0x7BFE : 0x7BFE + count].view(np.float16)
    with np.errstate(all="ignore"):
        assert_same_bits(kernels.float_to_half(x), x.astype(np.float16))
        assert_same_bits(kernels.half_to_float(half), half.astype(np.float32))


@pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")
@pytest.mark.usefixtures("width")
def test_a_result_in_its_operands_memory_has_the_same_bits():
    x = SINGLE[-5000:].copy()
    with np.errstate(all="ignore"):
        expected = x.astype(np.float16)
        assert_same_bits(kernels.float_to_half(x, out=x.view(np.float16)[: x.size]), expected)


@pytest.mark.parametrize("size", [10, 100_000])
def test_an_overflow_warns_for_arrays_of_every_size(size):
    with pytest.warns(RuntimeWarning, match="overflow"):
        rg.full((size,), 1e6).to(rg.float16)


@pytest.mark.parametrize("size", [10, 100_000])
def test_infinities_and_nan_do_not_warn(size):
    x = rg.tensor([1.0, float("inf"), float("nan"), 65519.0]).repeat(size)
    assert x.to(rg.float16).to(rg.float32)[:4].tolist()[:2] == [1.0, float("inf")]


@pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")
def test_other_dtypes_of_one_byte_with_the_same_letter_are_left_to_numpy():
    x = np.zeros(5000, np.float32)
    for dtype in map(np.dtype, (ml_dtypes.int4, ml_dtypes.float8_e5m2)):
        assert convert(x, dtype).dtype == dtype
