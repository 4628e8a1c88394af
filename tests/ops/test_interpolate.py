"""Resizing and sampling: edges, infinite values, positions outside, refused arguments."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.core import registry
from retrograd.testing.references.interpolate import matrix

from ..case_groups import group_cases

F = rg.nn.functional
NAN, INF = float("nan"), float("inf")


def test_infinite_elements_spread_no_further_than_their_neighbours():
    x = rg.tensor([[[0.0, INF, 0.0, 0.0, 1.0, 2.0]]])
    assert np.isfinite(F.interpolate(x, size=12, mode="linear").numpy()[0, 0, 6:]).all()
    assert F.interpolate(x, size=3).tolist() == [[[0.0, 0.0, 1.0]]]
    assert F.adaptive_avg_pool1d(x, 4)[0, 0, 2:].tolist() == [0.5, 1.5]
    assert F.interpolate(x, size=6, mode="linear").tolist() == x.tolist()


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_finite_elements_are_unaffected_by_infinite_ones(mode):
    x = np.random.default_rng(0).standard_normal((1, 2, 40, 30))
    spoiled = x.copy()
    spoiled[..., 0, 0] = INF
    finite, beside = (F.interpolate(rg.tensor(a), size=(25, 45), mode=mode).numpy() for a in (x, spoiled))
    np.testing.assert_allclose(beside[..., 5:, 5:], finite[..., 5:, 5:])


def test_antialiasing_averages_what_plain_interpolation_skips():
    x = rg.tensor([[[[0.0, 1.0] * 8] * 16]])
    plain, smooth = (F.interpolate(x, size=(4, 4), mode="bilinear", antialias=a) for a in (False, True))
    assert plain[0, 0, 1].tolist() == [0.5] * 4
    assert smooth[0, 0, 1, 1:3].tolist() == pytest.approx([0.5] * 2)
    spike = rg.zeros(1, 1, 16, 16)
    spike[0, 0, 8, 8] = 16.0
    assert F.interpolate(spike, size=(4, 4), mode="bilinear").sum().item() == 0
    assert F.interpolate(spike, size=(4, 4), mode="bilinear", antialias=True).sum().item() == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bool"])
def test_the_nearest_of_any_dtype(dtype):
    out = F.interpolate(rg.tensor([[[0, 1]]], dtype=dtype), scale_factor=2)
    assert out.tolist() == [[[0, 0, 1, 1]]]
    assert out.dtype == np.dtype(dtype)


MAPS = [
    *[("nearest", size, out, 0.0, 0.0) for size in (1, 2, 5) for out in (1, 2, 4, 5, 10, 15, 25)],
    *[("replicate", 3, 3 + before + after, before) for before in (0, 1, 4) for after in (0, 2)],
    *[("reflect", 4, 4 + before + after, before) for before in (0, 1, 3) for after in (0, 1, 3)],
    *[("circular", 3, 3 + before + after, before) for before in (0, 1, 3) for after in (0, 2)],
    *[("area", size, out) for size in (1, 4, 6) for out in (1, 3, 4, 7)],
    *[("linear", size, out, 0.0, align) for size in (1, 4, 40) for out in (1, 3, 70) for align in (False, True)],
    *[("cubic", 40, 70, scale, False) for scale in (0.0, 1.75)],
    *[(f"smooth {kind}", size, 16, 0.0, False) for kind in ("linear", "cubic") for size in (1, 5, 40)],
]


@group_cases
@pytest.mark.parametrize("how", MAPS, ids=str)
def test_maps_and_their_transposes_are_matrices(how):
    rows = matrix(*how)
    for dim in (0, 1):
        x, y = rg.tensor(np.eye(how[1])), rg.tensor(np.eye(how[2]))
        np.testing.assert_allclose(
            registry["resample"](x, dim=dim, how=how).numpy(), rows if dim == 0 else rows.T, atol=1e-12
        )
        back = registry["resample_backward"](y, dim=dim, how=how).numpy()
        np.testing.assert_allclose(back, rows.T if dim == 0 else rows, atol=1e-12)


def test_a_scale_factor_is_used_for_coordinates_unless_it_is_recomputed():
    x = rg.arange(4.0).reshape(1, 1, 4)
    kept = F.interpolate(x, scale_factor=2.6, mode="linear")
    again = F.interpolate(x, scale_factor=2.6, mode="linear", recompute_scale_factor=True)
    assert kept.shape == again.shape == (1, 1, 10)
    assert kept[0, 0, 2].item() == pytest.approx(2.5 / 2.6 - 0.5)
    assert again[0, 0, 2].item() == pytest.approx(2.5 * 0.4 - 0.5)


def test_the_same_size_changes_nothing():
    x = rg.tensor(np.random.default_rng(0).standard_normal((1, 2, 3, 4)))
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area"):
        assert F.interpolate(x, size=(3, 4), mode=mode).tolist() == x.tolist()


def sample(values, *places, **params):
    """Sample a row of values at positions along it."""
    grid = rg.tensor([[[[p, 0.0] for p in places]]])
    return F.grid_sample(rg.tensor([[[values]]]), grid, **params)[0, 0, 0].tolist()


def test_coordinates_outside_are_zero_or_the_border_or_mirrored():
    given = {"align_corners": True}
    assert sample([1.0, 2.0, 3.0], -3.0, 3.0, **given) == [0.0, 0.0]
    assert sample([1.0, 2.0, 3.0], -3.0, 3.0, padding_mode="border", **given) == [1.0, 3.0]
    assert sample([1.0, 2.0, 3.0], -2.0, 3.0, padding_mode="reflection", **given) == [2.0, 1.0]


def test_nearest_rounds_half_to_even():
    assert sample([1.0, 2.0, 3.0], -0.5, 0.5, mode="nearest", align_corners=True) == [1.0, 3.0]


def test_a_coordinate_that_is_nan_gives_nan():
    assert np.isnan(sample([1.0, 2.0], NAN)).all()
    assert sample([1.0, 2.0], 1e30, -1e30, INF, mode="nearest") == [0.0, 0.0, 0.0]


def test_a_grid_of_the_identity_gives_the_image():
    x = rg.tensor(np.random.default_rng(0).standard_normal((1, 2, 3, 4)))
    theta = rg.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], dtype="float64")
    for align in (True, False):
        grid = F.affine_grid(theta, x.shape, align_corners=align)
        rg.testing.assert_close(F.grid_sample(x, grid, align_corners=align), x)


def test_a_single_element_is_in_the_middle():
    theta = rg.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    assert F.affine_grid(theta, (1, 1, 1, 1), align_corners=True).tolist() == [[[[0.0, 0.0]]]]


def test_pixels_shuffled_and_unshuffled_are_where_they_were():
    x = rg.arange(48.0).reshape(1, 12, 2, 2)
    assert rg.pixel_unshuffle(rg.pixel_shuffle(x, 2), 2).tolist() == x.tolist()
