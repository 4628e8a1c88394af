"""Interpolation with tensors has SciPy's values, and derivatives in the data and in the points."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck

theirs = pytest.importorskip("scipy.interpolate")
from retrograd.scipy import interpolate as ours  # noqa: E402

R = np.random.default_rng(0)
X = np.cumsum(R.random(8) + 0.2)
Y = R.standard_normal((8, 2))
AROUND = np.linspace(X[0] - 0.5, X[-1] + 0.5, 41)
WITHIN = np.linspace(X[0] + 0.1, X[-1] - 0.1, 7)
GRID = tuple(np.sort(R.random(n)) for n in (4, 5, 3))
TABLE = R.standard_normal((4, 5, 3, 2))


def tensors(*arrays):
    return tuple(rg.tensor(a, requires_grad=True) for a in arrays)


def agree(mine, its, points=AROUND):
    """Assert that two interpolants have the same values."""
    expected = its(points)
    found = mine(rg.tensor(points)).detach().numpy()
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


CONDITIONS = [
    *[(bc, n) for bc in ("not-a-knot", "natural", "clamped", ((1, 0.5), (2, 0.25))) for n in (3, 4, 8)],
    *[(bc, n) for bc in (("natural", "not-a-knot"), ("not-a-knot", (1, 2.0))) for n in (4, 8)],
    ("not-a-knot", 2),
]


@pytest.mark.parametrize(("conditions", "count"), CONDITIONS)
def test_cubic_splines_are_scipys_for_all_conditions(conditions, count):
    pair = conditions if isinstance(conditions, str) else [o if isinstance(o, str) else (o[0], np.full(2, o[1])) for o in conditions]  # fmt: skip  # noqa: E501
    x, y = tensors(X[:count], Y[:count])
    agree(ours.CubicSpline(x, y, bc_type=conditions), theirs.CubicSpline(X[:count], Y[:count], bc_type=pair))


def test_periodic_splines_are_scipys():
    closed = np.concatenate([Y[:-1], Y[:1]])
    agree(ours.CubicSpline(X, *tensors(closed), bc_type="periodic"), theirs.CubicSpline(X, closed, bc_type="periodic"))
    with pytest.raises(ValueError, match="first and last values of y must be equal"):
        ours.CubicSpline(X, *tensors(Y), bc_type="periodic")


def test_splines_have_derivatives_integrals_axes_and_bounds():
    mine, its = ours.CubicSpline(*tensors(X, Y)), theirs.CubicSpline(X, Y)
    for nu in (1, 2, 3, 4):
        agree(lambda p, nu=nu: mine(p, nu), lambda p, nu=nu: its(p, nu))
    agree(mine.antiderivative(), its.antiderivative())
    np.testing.assert_allclose(mine.integrate(1, 3).detach().numpy(), its.integrate(1, 3), rtol=1e-12)
    table = AROUND.reshape(1, 41)
    agree(ours.CubicSpline(X, *tensors(Y.T), axis=1), theirs.CubicSpline(X, Y.T, axis=1), table)
    agree(ours.CubicSpline(*tensors(X, Y), extrapolate=False), theirs.CubicSpline(X, Y, extrapolate=False))
    slopes = R.standard_normal(Y.shape)
    agree(ours.CubicHermiteSpline(*tensors(X, Y), slopes), theirs.CubicHermiteSpline(X, Y, slopes))


@pytest.mark.parametrize("name", ["PchipInterpolator", "Akima1DInterpolator"])
@pytest.mark.parametrize("count", [2, 3, 8])
def test_cubics_that_keep_the_shape_are_scipys(name, count):
    for y in (Y, np.round(Y), np.sort(np.round(Y), 0)):  # with flat parts and turns
        mine, its = getattr(ours, name), getattr(theirs, name)
        for extrapolate in (None, True):
            agree(
                mine(*tensors(X[:count], y[:count]), extrapolate=extrapolate),
                its(X[:count], y[:count], extrapolate=extrapolate),
            )


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_splines_of_a_degree_are_scipys(k):
    mine, its = ours.make_interp_spline(*tensors(X, Y), k), theirs.make_interp_spline(X, Y, k)
    agree(mine, its)
    for nu in range(1, k + 2):
        agree(lambda p, nu=nu: mine(p, nu), lambda p, nu=nu: its(p, nu))
    np.testing.assert_allclose(mine.t.detach().numpy(), its.t)


@pytest.mark.parametrize(
    "kind", ["linear", "slinear", "nearest", "nearest-up", "previous", "next", "zero", "quadratic", "cubic"]
)
def test_lines_are_scipys_within_outside_and_between(kind):
    x, y = tensors(X, Y)
    given = {"axis": 0, "fill_value": "extrapolate"}
    agree(ours.interp1d(x, y, kind, **given), theirs.interp1d(X, Y, kind, **given))
    given = {"fill_value": (1.0, 2.0), "bounds_error": False}
    agree(ours.interp1d(x, y.T, kind, **given), theirs.interp1d(X, Y.T, kind, **given))
    middles = np.concatenate([(X[1:] + X[:-1]) / 2, X])
    agree(ours.interp1d(x, y, kind, axis=0), theirs.interp1d(X, Y, kind, axis=0), middles)
    order = R.permutation(8)
    agree(ours.interp1d(X[order], y[order], kind, axis=0), theirs.interp1d(X[order], Y[order], kind, axis=0), WITHIN)


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill", [None, 7.0])
def test_grids_are_scipys(method, fill):
    points = R.random((7, 2, 3)) * 1.2 - 0.1
    agree(
        ours.RegularGridInterpolator(GRID, *tensors(TABLE), method, False, fill),
        theirs.RegularGridInterpolator(GRID, TABLE, method, False, fill),
        points,
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda x, y: ours.CubicSpline(x, y, bc_type="natural"),
        lambda x, y: ours.PchipInterpolator(x, y),
        lambda x, y: ours.Akima1DInterpolator(x, y),
        lambda x, y: ours.make_interp_spline(x, y, 2),
        lambda x, y: ours.interp1d(x, y, axis=0),
    ],
    ids=["CubicSpline", "Pchip", "Akima", "make_interp_spline", "interp1d"],
)
def test_interpolants_have_derivatives_in_data_and_points(make):
    x, y, points = tensors(X[:6], Y[:6], np.linspace(X[0] + 0.1, X[5] - 0.1, 3))
    assert gradcheck(lambda x, y, p: make(x, y)(p), (x, y, points), check_forward_ad=True)
    assert gradgradcheck(lambda x, y, p: make(x, y)(p), (x, y, points))


def test_grids_have_derivatives_in_lines_values_and_points():
    corner = np.array([line[:2].mean() for line in GRID])
    points, table, *lines = tensors(corner + 0.01 * R.random((2, 3)), TABLE[..., 0], *GRID)

    def value(points, table, *lines):
        return ours.RegularGridInterpolator(lines, table, bounds_error=False, fill_value=None)(points)

    assert gradcheck(value, (points, table, *lines))


def test_examples_are_interpolated_together_under_vmap():
    many = rg.tensor(R.standard_normal((3, 8)))
    found = rg.func.vmap(lambda y: ours.CubicSpline(X, y)(AROUND))(many)
    expected = np.stack([theirs.CubicSpline(X, y)(AROUND) for y in many.numpy()])
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-10)


def test_what_does_not_fit_is_refused():
    x, y = tensors(X, Y)
    with pytest.raises(ValueError, match="must be strictly increasing"):
        ours.CubicSpline(x[[1, 0, 2, 3]], y[:4])
    with pytest.raises(ValueError, match="as long as axis 0"):
        ours.PchipInterpolator(x[:4], y)
    with pytest.raises(ValueError, match="bc_type must be"):
        ours.CubicSpline(x, y, bc_type="flat")
    with pytest.raises(NotImplementedError, match="at one end needs at least 4 points"):
        ours.CubicSpline(x[:3], y[:3], bc_type=("natural", "not-a-knot"))
    with pytest.raises(ValueError, match="outside the interpolation range"):
        ours.interp1d(x, y, axis=0)(X[0] - 1)
    with pytest.raises(NotImplementedError, match="'septic' is unsupported"):
        ours.interp1d(x, y, "septic", axis=0)
    with pytest.raises(ValueError, match="out of bounds"):
        ours.RegularGridInterpolator(GRID, *tensors(TABLE))(np.full((1, 3), 9.0))
    with pytest.raises(ValueError, match="do not fit values"):
        ours.RegularGridInterpolator(GRID[:2], *tensors(TABLE[0]))
    with pytest.raises(ValueError, match="do not fit values"):
        ours.RegularGridInterpolator([], *tensors(TABLE))
    with pytest.raises(TypeError, match="CubicSpline: y must be a Tensor or an array or a sequence, got None"):
        ours.CubicSpline(x, None)
    with pytest.raises(NotImplementedError, match="linear or nearest"):
        ours.RegularGridInterpolator(GRID, *tensors(TABLE), "quintic")
    with pytest.raises(NotImplementedError, match="method='akima'"):
        ours.Akima1DInterpolator(x, y, method="makima")


def test_arrays_are_left_to_scipy():
    assert isinstance(ours.CubicSpline(X, Y), theirs.CubicSpline)
    assert ours.BarycentricInterpolator is theirs.BarycentricInterpolator
