"""Pooling: ties, NaN, truncated windows, named tuples, refused arguments."""

import math

import numpy as np
import pytest

import retrograd as rg

F = rg.nn.functional
NAN, INF = float("nan"), float("inf")


def gradient(function, values):
    x = rg.tensor(values, requires_grad=True)
    function(x).sum().backward()
    return x.grad.tolist()


def test_the_first_of_equals_gets_the_gradient():
    assert gradient(lambda x: F.max_pool1d(x, 3), [[2.0, 2.0, 2.0]]) == [[1.0, 0.0, 0.0]]
    assert gradient(lambda x: F.adaptive_max_pool1d(x, 2), [[1.0, 1.0, 1.0]]) == [[1.0, 1.0, 0.0]]


def test_overlapping_windows_add_up():
    assert gradient(lambda x: F.max_pool1d(x, 2, stride=1), [[1.0, 5.0, 2.0]]) == [[0.0, 2.0, 0.0]]


def test_nan_wins_and_the_last_one_is_named():
    values, indices = F.max_pool1d(rg.tensor([[NAN, 1.0, NAN, 0.0, INF]]), 3, stride=1, return_indices=True)
    assert np.isnan(values.numpy()).all()
    assert indices.tolist() == [[2, 2, 2]]


def test_padding_is_never_the_largest():
    x = rg.tensor([[-INF, -INF]])
    values, indices = F.max_pool1d(x, 3, stride=1, padding=1, return_indices=True)
    assert values.tolist() == [[-INF, -INF]]
    assert indices.tolist() == [[0, 0]]
    values, indices = F.max_pool1d(rg.tensor([[0, 0]], dtype="uint8"), 3, stride=1, padding=1, return_indices=True)
    assert indices.tolist() == [[0, 0]]
    assert values.dtype == np.uint8


def test_indices_are_flat_indices_of_the_image():
    x = rg.arange(24.0).reshape(1, 2, 3, 4)
    values, indices = F.max_pool2d(x, (2, 3), stride=1, return_indices=True)
    assert indices[0, 0].tolist() == [[6, 7], [10, 11]]
    flat = x.reshape(1, 2, 12)
    assert flat.gather(2, indices.reshape(1, 2, 4)).reshape(values.shape).tolist() == values.tolist()


def test_with_indices_the_values_have_the_same_gradient():
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 5))
    plain = gradient(lambda x: F.max_pool2d(x, 3, 2, 1), x)
    assert gradient(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)[0], x) == plain


def test_in_ceil_mode_no_window_begins_in_the_padding_at_the_end():
    assert F.max_pool1d(rg.arange(5.0)[None], 2, 2, ceil_mode=True).tolist() == [[1.0, 3.0, 4.0]]
    assert F.max_pool1d(rg.arange(3.0)[None], 2, 3, padding=1, ceil_mode=True).shape == (1, 2)


def test_elements_cut_off_do_not_count_in_the_mean():
    x = rg.tensor([[3.0, 3.0, 3.0]])
    assert F.avg_pool1d(x, 2, 2, ceil_mode=True).tolist() == [[3.0, 3.0]]
    assert F.avg_pool1d(x, 3, 2, padding=1).tolist() == [[2.0, 2.0]]
    assert F.avg_pool1d(x, 3, 2, padding=1, count_include_pad=False).tolist() == [[3.0, 3.0]]


def test_adaptive_windows_of_several_sizes_overlap():
    x = rg.arange(5.0)[None]
    assert F.adaptive_avg_pool1d(x, 3).tolist() == [[0.5, 2.0, 3.5]]
    assert F.adaptive_max_pool1d(x, 3).tolist() == [[1.0, 3.0, 4.0]]
    assert F.adaptive_avg_pool1d(x, 7).shape == (1, 7)


def test_adaptive_pooling_to_nothing_is_empty():
    assert F.adaptive_avg_pool2d(rg.ones(2, 3, 4, 4), 0).shape == (2, 3, 0, 0)


def test_unpooling_puts_back_what_was_largest():
    x = rg.tensor([[1.0, 4.0, 3.0, 2.0]])
    values, indices = F.max_pool1d(x, 2, return_indices=True)
    assert F.max_unpool1d(values, indices, 2).tolist() == [[0.0, 4.0, 3.0, 0.0]]
    assert F.max_unpool1d(values, indices, 2, output_size=(5,)).tolist() == [[0.0, 4.0, 3.0, 0.0, 0.0]]


def test_a_norm_of_nothing_but_zeros_has_the_slope_zero():
    assert gradient(lambda x: F.lp_pool1d(x, 2, 2), [[0.0, 0.0, 3.0, 4.0]]) == pytest.approx(
        np.array([[0.0, 0.0, 0.6, 0.8]])
    )


def test_no_images_are_pooled_to_none():
    assert F.max_pool2d(rg.ones(0, 3, 4, 4), 2).shape == (0, 3, 2, 2)
    with pytest.raises(ValueError, match=r"max_pool2d: .*nothing is left"):
        F.max_pool2d(rg.ones(1, 3, 0, 4), 2)


@pytest.mark.parametrize("pool", [F.max_pool2d, F.avg_pool2d])
def test_complex_numbers_are_refused(pool):
    with pytest.raises(TypeError, match=f"{pool.name}: expected .*real.*, got complex64"):
        pool(rg.ones(1, 2, 2, dtype="complex64"), 2)


def test_the_infinite_norms_of_windows_are_the_largest_and_smallest_absolute_values():
    x = [[1.0, -3.0, 2.0, -0.5]]
    assert F.lp_pool1d(rg.tensor(x), math.inf, 2).tolist() == [[3.0, 2.0]]
    assert F.lp_pool1d(rg.tensor(x), -math.inf, 2).tolist() == [[1.0, 0.5]]
    assert gradient(lambda x: F.lp_pool1d(x, math.inf, 2), x) == [[0.0, -1.0, 1.0, 0.0]]


def test_indices_of_another_shape_are_refused_by_their_shape():
    with pytest.raises(ValueError, match=r"indices must be integers of shape \(1, 2\), got int64 of shape \(1, 3\)"):
        F.max_unpool1d(rg.ones(1, 2), rg.tensor([[0, 1, 2]]), 2)
