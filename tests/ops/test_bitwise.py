"""Integer operators: signs, widths, refused dtypes, in-place forms."""

import pytest

import retrograd as rg


def test_shifts_keep_the_sign_and_the_dtype():
    x = rg.tensor([-5, 5], dtype=rg.int16)
    assert rg.bitwise_right_shift(x, 1).tolist() == [-3, 2]
    assert rg.bitwise_left_shift(x, 2).tolist() == [-20, 20]
    assert rg.bitwise_left_shift(x, 2).dtype == rg.int16


def test_divisors_and_multiples_are_never_negative():
    a, b = rg.tensor([-12, 0, 0]), rg.tensor([18, -4, 0])
    assert rg.gcd(a, b).tolist() == [6, 4, 0]
    assert rg.lcm(a, b).tolist() == [36, 0, 0]


def test_counted_bits_are_those_of_the_absolute_value():
    out = rg.bitwise_count(rg.tensor([-7, 8]))
    assert out.tolist() == [3, 1]
    assert out.dtype == rg.uint8


@pytest.mark.parametrize("name", ["bitwise_left_shift", "bitwise_right_shift", "gcd", "lcm", "bitwise_and"])
def test_floats_are_refused_by_name(name):
    with pytest.raises(TypeError, match=name):
        getattr(rg, name)(rg.ones(2), rg.ones(2))


def test_in_place_forms_write():
    x = rg.tensor([12, 18])
    assert x.gcd_(rg.tensor(8)) is x
    assert x.tolist() == [4, 2]
    assert x.bitwise_left_shift_(1).tolist() == [8, 4]
