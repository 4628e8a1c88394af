"""Splines of images have SciPy's values in all modes and orders, and derivatives in pixels and coordinates."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck

from ..tables import FAST_MODE

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
    flags = {"check_forward_ad": True, "check_batched_grad": True}
    for order in (1, 3, 4):

        def function(image, at, edge, order=order):
            return ours.map_coordinates(image, at, order=order, mode=mode, cval=edge)

        assert gradcheck(function, (image, at, edge), **flags, fast_mode=FAST_MODE)
        assert gradgradcheck(function, (image, at, edge), fast_mode=True)


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
    np.testing.assert_array_equal(ours.median_filter(IMAGE, 3), theirs.median_filter(IMAGE, 3))


# ------------------------------------------------------------------------------------------------------ filters

WEIGHTS, WINDOW = R.standard_normal(4), R.standard_normal((3, 2))
FILTERS = [
    *[("correlate1d", (IMAGE, WEIGHTS), {"mode": mode, "cval": 0.4}) for mode in MODES],
    ("correlate1d", (IMAGE, WEIGHTS, 0), {"origin": 1}), ("correlate1d", (IMAGE, WEIGHTS[:3]), {"origin": -1}),
    ("correlate1d", (IMAGE[:2], R.standard_normal(9), 0), {}),
    ("convolve1d", (IMAGE, WEIGHTS), {}), ("convolve1d", (IMAGE, WEIGHTS[:3], 0), {"origin": 1}),
    ("convolve1d", (IMAGE, WEIGHTS), {"origin": 1}),
    ("correlate", (IMAGE, WINDOW), {"origin": (1, 0)}), ("correlate", (IMAGE, WINDOW), {"mode": "wrap"}),
    ("convolve", (IMAGE, WINDOW), {}), ("convolve", (IMAGE, WINDOW), {"origin": (-1, 0), "mode": "constant"}),
    ("uniform_filter1d", (IMAGE, 4), {"origin": 1}), ("uniform_filter", (IMAGE,), {"mode": ["wrap", "mirror"]}),
    ("uniform_filter", (IMAGE, (3, 2)), {}), ("uniform_filter", (IMAGE, 3), {"axes": 0}),
    *[("gaussian_filter1d", (IMAGE, np.float64(0.8)), {"order": order}) for order in range(4)],
    ("gaussian_filter1d", (IMAGE, np.float64(1.3), 0), {"radius": 2}),
    ("gaussian_filter", (IMAGE, np.array([0.7, 1.1])), {}), ("gaussian_filter", (IMAGE, 0.9), {"order": (1, 0)}),
    ("gaussian_filter", (IMAGE, np.float64(0.9)), {"axes": (1,), "truncate": 2.0}),
    ("sobel", (IMAGE, 0), {}), ("prewitt", (IMAGE,), {"mode": "nearest"}), ("laplace", (IMAGE,), {}),
    ("gaussian_laplace", (IMAGE, np.array([0.7, 1.1])), {}), ("gaussian_gradient_magnitude", (IMAGE, 0.8), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "options"), FILTERS)
def test_filters_have_scipys_values_and_derivatives(name, args, options):
    places = [i for i, a in enumerate(args) if isinstance(a, (np.ndarray, np.floating))]

    def function(*given):
        filled = list(args)
        for i, x in zip(places, given, strict=True):
            filled[i] = x
        return getattr(ours, name)(*filled, **options)

    given = [rg.tensor(args[i], requires_grad=True) for i in places]
    expected = getattr(theirs, name)(*args, **options)
    np.testing.assert_allclose(function(*given).detach().numpy(), expected, rtol=1e-9, atol=1e-12)
    assert gradcheck(function, given, check_forward_ad=True, fast_mode=True)
    assert gradgradcheck(function, given, fast_mode=True)
    fixed = [x.detach() for x in given[1:]]
    both = rg.func.vmap(lambda x: function(x, *fixed))(rg.stack([given[0].detach(), 2 * given[0].detach()]))
    np.testing.assert_allclose(both[0].numpy(), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(getattr(ours, name)(*args, **options), expected)


def test_filters_refuse_by_name():
    x = rg.tensor(IMAGE, requires_grad=True)
    for call, error, match in (
        (lambda: ours.correlate1d(x, WEIGHTS, mode="other"), ValueError, r"ndimage\.correlate1d: mode must be one of"),
        (lambda: ours.correlate1d(x, WEIGHTS, origin=3), ValueError, "invalid origin 3 for 4 weights"),
        (lambda: ours.correlate1d(x, WEIGHTS, mode="constant", cval=x[0, 0]), TypeError, "cval must be a number"),
        (
            lambda: ours.correlate(x, WEIGHTS),
            RuntimeError,
            r"correlate: weights must have 2 dimensions, got shape \(4,\)",
        ),
        (lambda: ours.sobel(x, output=np.zeros(3)), TypeError, r"ndimage\.sobel"),
        (lambda: ours.gaussian_filter1d(x, 1.0, order=-1), ValueError, "must not be negative, got -1"),
        (lambda: ours.median_filter(x, 3), TypeError, r"scipy\.ndimage\.median_filter: retrograd knows no derivative"),
    ):
        with pytest.raises(error, match=match):
            call()
