"""solve_bvp, integrals over several variables and integrals of samples: SciPy's values, and derivatives."""

import math

import numpy as np
import pytest
import scipy.integrate

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.core import Tensor
from retrograd.func import hessian, jvp, vmap
from retrograd.scipy import integrate

from ..case_groups import group_cases

MESH, START = np.linspace(0, 1, 5), np.ones((2, 5))


def float64(x):
    return rg.tensor(x, dtype=rg.float64, requires_grad=True)


def oscillation(k, b=1.0, end=1.0, tol=1e-3):
    """Return the solution of y'' = -k y with y = 0 at 0 and y = b at the end, b sin(sqrt(k) x) / sin(sqrt(k) end)."""
    mesh = rg.linspace(0, 1, 5, dtype=rg.float64) * end
    return integrate.solve_bvp(lambda x, y: [y[1], -k * y[0]], lambda a, z: [a[0], z[0] - b], mesh, START, tol=tol)


def eigenvalue(c):
    """Return the frequency w of y'' = -w² c y with two zeros at the ends, 2π / sqrt(c)."""
    start = np.array([[0.0, 1, 0, -1, 0], np.zeros(5)])
    return integrate.solve_bvp(
        lambda x, y, p: [y[1], -(p[0] ** 2) * c * y[0]], lambda a, z, p: [a[0], z[0], a[1] - p[0]], MESH, start, [6.0]
    ).p


def test_a_boundary_value_problem_has_scipys_solution():
    expected = scipy.integrate.solve_bvp(
        lambda x, y: np.vstack([y[1], -y[0]]), lambda a, z: np.array([a[0], z[0] - 1]), MESH, START
    )
    found = oscillation(rg.tensor(1.0, dtype=rg.float64))
    for name in ("x", "y", "yp"):
        np.testing.assert_allclose(getattr(found, name).numpy(), getattr(expected, name), atol=1e-12)
    for order in (0, 1):
        np.testing.assert_allclose(found.sol(0.3, order).numpy(), expected.sol(0.3, order), atol=1e-12)
        points = np.array([0.1, 0.8])
        np.testing.assert_allclose(found.sol(points, order).numpy(), expected.sol(points, order), atol=1e-12)
    assert found.niter == expected.niter
    assert found.p is None


def test_a_boundary_value_problem_without_tensors_is_scipys():
    found = integrate.solve_bvp(lambda x, y: np.vstack([y[1], -y[0]]), lambda a, z: [a[0], z[0] - 1], MESH, START)
    assert type(found.y) is np.ndarray


def test_derivatives_of_a_boundary_value_problem_are_right_to_second_order():
    def at_points(k, b, end):
        return oscillation(k, b, end, 1e-6).sol(np.array([0.3, 0.5]))[0]

    given = [float64(x) for x in (1.0, 2.0, 1.1)]
    assert gradcheck(at_points, given, check_forward_ad=True, atol=1e-5)
    assert gradgradcheck(at_points, given, atol=1e-3)
    (slope,) = rg.autograd.grad(oscillation(given[0], tol=1e-8).sol(0.5)[0], given[0])
    exact = [math.sin(math.sqrt(k) / 2) / math.sin(math.sqrt(k)) for k in (1 + 1e-5, 1 - 1e-5)]
    assert slope.item() == pytest.approx((exact[0] - exact[1]) / 2e-5, rel=1e-6)


def test_unknown_parameters_are_differentiable_and_batches_are_solved_one_by_one():
    c = float64(1.0)
    assert rg.autograd.grad(eigenvalue(c)[0], c)[0].item() == pytest.approx(-math.pi, rel=1e-3)
    batch = rg.tensor([1.0, 1.5], dtype=rg.float64)
    found = vmap(lambda c: eigenvalue(c))(batch)[:, 0]
    np.testing.assert_allclose(found.numpy(), 2 * np.pi / np.sqrt(batch.numpy()), rtol=1e-3)


def test_refusals_of_boundary_value_problems_have_a_reason():
    k = float64(1.0)
    arguments = (lambda x, y: [y[1], -k * y[0]], lambda a, z: [a[0], z[0] - 1], MESH)
    with pytest.raises(TypeError, match=r"solve_bvp"):
        integrate.solve_bvp(*arguments, START, S=np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"solve_bvp: expected x \(points,\) and y \(n, points\), got \(5,\)"):
        integrate.solve_bvp(*arguments[:2], np.arange(5.0), START[:, 0])
    with pytest.raises(TypeError, match=r"solve_bvp: y is complex"):
        integrate.solve_bvp(*arguments, START + 0j)
    with pytest.raises(RuntimeError, match=r"solve_bvp: The maximum number of mesh nodes is exceeded"):
        integrate.solve_bvp(*arguments, START, tol=1e-9, max_nodes=6)


# ------------------------------------------------------------------------------------------ several variables

MULTIPLE = {
    "dblquad": lambda m, a: m.dblquad(lambda y, x: np.exp(-a * x * y), 0, 1, 0, lambda x: x)[0],
    "limits": lambda m, a: m.dblquad(lambda y, x: x * y, 0, a, 0, lambda x: x)[0],
    "nquad": lambda m, a: m.nquad(lambda x, y, b: b * x * y, [lambda y, b: (0, y), (0, 1)], args=(a,))[0],
    "tplquad": lambda m, a: m.tplquad(lambda z, y, x: a * z, 0, 1, 0, 1, 0, lambda x, y: x + y)[0],
    "fixed_quad": lambda m, a: m.fixed_quad(lambda x: np.exp(-a * x), 0.0, 1.0)[0],
}


@group_cases
@pytest.mark.parametrize("name", [name for name in MULTIPLE if name != "tplquad"])
def test_integrals_over_several_variables_are_scipys_with_derivatives(name):
    a = float64(1.3)
    ours = lambda a: MULTIPLE[name](integrate, a)  # noqa: E731
    assert ours(a).item() == pytest.approx(MULTIPLE[name](scipy.integrate, 1.3), rel=1e-10)
    assert not isinstance(MULTIPLE[name](integrate, 1.3), Tensor)
    assert gradcheck(ours, a, atol=1e-6)
    slope = rg.autograd.grad(ours(a), a)[0].item()
    assert jvp(ours, (a,), (rg.ones_like(a),))[1].item() == pytest.approx(slope, rel=1e-10)
    step = 1e-4
    around = [MULTIPLE[name](scipy.integrate, 1.3 + k * step) for k in (-1, 0, 1)]
    second = (around[0] - 2 * around[1] + around[2]) / step**2
    assert hessian(ours)(a.detach()).item() == pytest.approx(second, abs=1e-5)


def test_an_integral_over_three_variables_has_a_gradient():
    a = float64(2.0)
    found = MULTIPLE["tplquad"](integrate, a)
    assert found.item() == pytest.approx(2 * 7 / 12)
    assert rg.autograd.grad(found, a)[0].item() == pytest.approx(7 / 12)


def test_details_of_nested_integrals_are_refused():
    with pytest.raises(TypeError, match=r"integrate\.nquad: full_output and lists of opts"):
        integrate.nquad(lambda x: x * float64(1.0), [(0, 1)], full_output=True)


# --------------------------------------------------------------------------------------------------- samples

_r = np.random.default_rng(6)
SAMPLES, POINTS = _r.normal(size=(2, 9)), np.sort(_r.random(9))
RULES = [
    ("trapezoid", {}), ("trapezoid", {"x": POINTS}), ("trapezoid", {"dx": 0.5, "axis": 0}),
    ("cumulative_simpson", {}), ("cumulative_simpson", {"x": POINTS, "initial": 0}),
    ("cumulative_simpson", {"dx": 0.5, "initial": 2.0}), ("romb", {"dx": 0.5}),
]  # fmt: skip


@group_cases
@pytest.mark.parametrize(("name", "options"), RULES)
def test_integrals_of_samples_are_scipys_with_derivatives(name, options):
    expected = getattr(scipy.integrate, name)(SAMPLES, **options)
    function = getattr(integrate, name)
    np.testing.assert_allclose(function(rg.tensor(SAMPLES), **options).numpy(), expected, rtol=1e-12)
    np.testing.assert_array_equal(function(SAMPLES, **options), expected)
    assert gradcheck(lambda y: function(y, **options), rg.tensor(SAMPLES, requires_grad=True), check_forward_ad=True)
    if "x" in options:
        rest = {k: v for k, v in options.items() if k != "x"}
        points = rg.tensor(POINTS, requires_grad=True)
        assert gradcheck(lambda x: function(SAMPLES, x=x, **rest), points, check_forward_ad=True)


def test_integrals_of_unfit_samples_are_errors():
    with pytest.raises(ValueError, match=r"integrate\.romb: expected one more sample than a power of two, got 4"):
        integrate.romb(rg.ones(4))
    with pytest.raises(ValueError, match=r"integrate\.trapezoid: 3 points for 4 samples"):
        integrate.trapezoid(rg.ones(4), rg.ones(3))
