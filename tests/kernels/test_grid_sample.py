"""Samples of images at the points of grids do not depend on the number of threads, nor on where work is divided."""

import numpy as np
import pytest

from retrograd import kernels
from retrograd.kernels import chosen

pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

FORMS = {  # settings, and the shape of the images and the number of points
    "bilinear": ([0, 0, 0, 1, 9, 7, 0, 0, 0], (3, 5, 63), 301),
    "bicubic": ([2, 1, 1, 1, 9, 7, 0, 0, 0], (2, 3, 63), 130),
    "nearest": ([1, 2, 0, 1, 9, 7, 0, 0, 0], (1, 40, 63), 128),
    "deep": ([0, 2, 1, 3, 4, 5, 0, 1, 0], (2, 6, 60), 200),
}


def results(form):
    """Return samples, images with numbers added at the points, and slopes."""
    settings, shape, points = FORMS[form]
    r, axes = np.random.default_rng(0), 3 if form == "deep" else 2
    x, y = r.standard_normal(shape), r.standard_normal((*shape[:2], points))
    grid, settings = r.standard_normal((shape[0], points, axes)), tuple(settings)
    out = np.full_like(y, np.nan), np.full_like(x, np.nan), np.full_like(grid, np.nan)
    chosen.sample_points(settings, x, grid, out[0])
    chosen.sample_points_backward(settings, y, grid, out[1])
    chosen.sample_slopes(settings, y, x, grid, out[2])
    return out


@pytest.mark.parametrize("grain", [0, 1, 2, -1])
@pytest.mark.parametrize("form", FORMS)
def test_results_do_not_depend_on_how_the_work_is_divided(form, grain, threads):
    expected = results(form)
    kernels.set_grain_size(grain)
    try:
        found = results(form)
    finally:
        kernels.set_grain_size(0)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("wrong", [(0, 3), (1, -1), (4, 0), (7, -1), (3, 2)])
def test_settings_out_of_range_are_refused(wrong):
    settings, shape, points = FORMS["bilinear"]
    settings = list(settings)
    settings[wrong[0]] = wrong[1]
    with pytest.raises(ValueError, match="do not fit"):
        chosen.sample_points(tuple(settings), np.zeros(shape), np.zeros((3, points, 2)), np.zeros((*shape[:2], points)))
