"""`testing.make_tensor`: random tensors within bounds; tests/parity compares it with PyTorch's."""

import pytest

import retrograd as rg
from retrograd.testing import make_tensor

CPU = {"device": "cpu"}


@pytest.mark.parametrize("dtype", [rg.bool, rg.uint8, rg.int64, rg.float16, rg.bfloat16, rg.float32, rg.complex128])
def test_numbers_are_between_the_bounds_of_the_dtype(dtype):
    rg.manual_seed(0)
    made = make_tensor(20, 30, dtype=dtype, **CPU)
    parts = rg.view_as_real(made) if made.is_complex() else made.double()
    least = 0 if dtype in (rg.bool, rg.uint8) else -9
    assert made.dtype == dtype
    assert least <= parts.min().item() < least + 2
    assert (1 if dtype == rg.bool else 7) <= parts.max().item() <= 9


def test_zeros_are_replaced_where_they_are_excluded():
    rg.manual_seed(0)
    assert bool((make_tensor(500, dtype=rg.int8, exclude_zero=True, **CPU) != 0).all())
    assert bool((make_tensor(500, dtype=rg.int8, **CPU) == 0).any())


def test_the_layout_and_grad_follow_the_arguments():
    assert make_tensor(3, 4, dtype=rg.float32, noncontiguous=True, **CPU).stride() == (8, 2)
    images = make_tensor((2, 3, 4, 5), dtype=rg.float32, memory_format=rg.channels_last, requires_grad=True, **CPU)
    assert images.is_contiguous(memory_format=rg.channels_last)
    assert images.requires_grad
    assert images.is_leaf


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"low": 3, "high": 2}, "`low` must be less than `high`"),
        ({"low": float("nan")}, "cannot be NaN"),
        ({"low": 300, "high": 400, "dtype": rg.uint8}, "only supports \\[0, 256\\)"),
        ({"requires_grad": True, "dtype": rg.int32}, "not supported for boolean and integral dtypes"),
        ({"noncontiguous": True, "memory_format": rg.contiguous_format}, "mutually exclusive"),
    ],
)
def test_settings_that_fit_no_numbers_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        make_tensor(3, **{"dtype": rg.float32, **CPU, **settings})
