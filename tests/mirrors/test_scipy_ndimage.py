"""Splines of images have SciPy's values in all modes and orders, and derivatives in pixels and coordinates."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck

theirs = pytest.importorskip("scipy.ndimage")
from retrograd.scipy import ndimage as ours  # noqa: E402

R = np.random.default_rng(0)
IMAGE = R.standard_normal((6, 5))
MODES = ("reflect", "grid-mirror", "constant", "grid-constant", "nearest", "mirror", "grid-wrap", "wrap")
LARGE = R.standard_normal((26, 24))  # SciPy truncates a series on shorter axes
# Inside, just outside, several widths away, and at elements.
AT = np.concatenate([R.uniform(-1, 27, (2, 30)), R.uniform(-90, 90, (2, 30)), np.indices((3, 3)).reshape(2, 9) * 25], 1)
WITHIN = R.uniform(0.2, 3.8, (2, 3))


@pytest.mark.parametrize("order", range(6))
@pytest.mark.parametrize("mode", MODES)
def test_values_are_scipys_in_all_modes_and_orders(mode, order):
    at = AT + (0.01 if order == 0 else 0.0)  # halves are rounded by the last bit
    if mode == "nearest":
        at = np.clip(at, -2, 27)
    for image, given in ((LARGE, at), (LARGE[0], 0.8 * at[:1]), (LARGE[:, :1], at)):
        expected = theirs.map_coordinates(image, given, order=order, mode=mode, cval=0.7)
        found = ours.map_coordinates(rg.tensor(image), rg.tensor(given), order=order, mode=mode, cval=0.7)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("order", range(6))
def test_splines_pass_through_elements_and_continue_as_the_mode_says(order):
    line, n = IMAGE[:2, 0], 2
    at = np.arange(-25, 26)
    pads = {"reflect": "symmetric", "mirror": "reflect", "grid-wrap": "wrap"}
    for mode, pad in pads.items():
        found = ours.map_coordinates(rg.tensor(line), at[None], order=order, mode=mode)
        np.testing.assert_allclose(found.numpy(), np.pad(line, (25, 26 - n), pad), atol=1e-12)
    far = ours.map_coordinates(rg.tensor(line), [[-40.0, 60.0]], order=order, mode="nearest")
    np.testing.assert_allclose(far.numpy(), line, atol=1e-12)


@pytest.mark.parametrize("order", range(2, 6))
def test_filtered_images_need_no_filter(order):
    for mode in ("mirror", "reflect", "grid-wrap"):
        filtered = ours.spline_filter(rg.tensor(LARGE), order, mode=mode)
        np.testing.assert_allclose(filtered.numpy(), theirs.spline_filter(LARGE, order, mode=mode), atol=1e-11)
        found = ours.map_coordinates(filtered, AT, order=order, mode=mode, prefilter=False)
        np.testing.assert_allclose(found.numpy(), theirs.map_coordinates(LARGE, AT, order=order, mode=mode), atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_derivatives_to_second_order(mode):
    image = rg.tensor(IMAGE, requires_grad=True)
    at = rg.tensor(np.concatenate([WITHIN, [[-0.3], [4.4]]], 1), requires_grad=True)
    edge = rg.tensor(0.7, dtype=rg.float64, requires_grad=True)
    for order in (1, 3, 4):

        def function(image, at, edge, order=order):
            return ours.map_coordinates(image, at, order=order, mode=mode, cval=edge)

        assert gradcheck(function, (image, at, edge), check_forward_ad=True, check_batched_grad=True)
        assert gradgradcheck(function, (image, at, edge))


def test_batches_are_loops():
    images, ats = rg.tensor(np.stack([IMAGE, 2 * IMAGE])), rg.tensor(np.stack([WITHIN, WITHIN[::-1]]))
    both = rg.vmap(ours.map_coordinates)(images, ats)
    np.testing.assert_allclose(both, rg.stack([ours.map_coordinates(*pair) for pair in zip(images, ats, strict=True)]))


def test_dtypes_are_those_of_the_image():
    at = rg.tensor(WITHIN)
    assert ours.map_coordinates(rg.tensor(IMAGE, dtype=rg.float32), at).dtype == rg.float32
    assert ours.map_coordinates(np.arange(30).reshape(6, 5), at).dtype == rg.get_default_dtype()
    turned = IMAGE * np.exp(1j)
    found = ours.map_coordinates(rg.tensor(turned), at)
    np.testing.assert_allclose(found.numpy(), theirs.map_coordinates(turned, WITHIN), rtol=1e-12)


def test_refusals_name_the_function():
    image = rg.tensor(IMAGE)
    with pytest.raises(RuntimeError, match=r"map_coordinates: spline order not supported: 0 to 5, got 6"):
        ours.map_coordinates(image, AT, order=6)
    with pytest.raises(RuntimeError, match=r"map_coordinates: boundary mode not supported: 'edge'"):
        ours.map_coordinates(image, AT, mode="edge")
    with pytest.raises(RuntimeError, match=r"the first dimension must be 2, got \(3, 1\)"):
        ours.map_coordinates(image, np.zeros((3, 1)))
    with pytest.raises(TypeError, match="map_coordinates: output='float64' is not supported"):
        ours.map_coordinates(image, AT, output="float64")
    with pytest.raises(RuntimeError, match="spline_filter: spline order not supported"):
        ours.spline_filter(image, 1)


def test_arrays_and_other_names_are_scipys():
    assert type(ours.map_coordinates(IMAGE, AT)) is np.ndarray
    assert ours.gaussian_filter is theirs.gaussian_filter
