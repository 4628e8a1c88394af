"""retrograd.scipy.optimize: SciPy's solutions, and derivatives of all modes and orders compared with differences."""

import numpy as np
import pytest
import scipy.optimize

import retrograd as rg
from retrograd import numpy as rnp
from retrograd.core import Tensor
from retrograd.func import grad, hessian, jacfwd, jacrev, vmap
from retrograd.scipy import optimize

from ..case_groups import group_cases
from .harness import weighted

P = np.array([1.3, 0.7])
MATRIX = np.array([[2.0, 0.3], [0.4, 1.5], [0.2, 1.0]])
SIDE = np.array([1.0, 2.0, -0.5])
TURN = np.array([1.0, -1.0])
TIMES = np.linspace(0, 2, 7)
NOISE = 0.05 * np.cos(7 * TIMES)
TIGHT = {"bisect": {"xtol": 1e-14}, "minimize": {"gtol": 1e-11}}


def bowl(x, p):
    return (x[0] - p[0]) ** 4 + (x[0] - p[0] * p[1]) ** 2 + (x[1] * p[1] - x[0]) ** 2 + rnp.exp(0.1 * x[1])


def pair(x, p):
    return rnp.stack([x[0] ** 3 + x[1] - p[0], x[1] - 0.3 * rnp.sin(x[0]) * p[1]])


def ball(x, p):
    return [p[0] - x[0] ** 2 - x[1] ** 2]


def decay(t, a, b):
    return a * rnp.exp(-b * t)


# Each case is a program of a module, SciPy's or the mirror's, and of the parameters p.
CASES = {
    "minimize": lambda m, p: m.minimize(bowl, [1.0, 1.0], (p,), options=TIGHT["minimize"]).x,
    **{f"minimize by {k}": lambda m, p, k=k: m.minimize(bowl, [1.0, 1.0], (p,), k, tol=1e-13).x
       for k in ("Nelder-Mead", "CG", "L-BFGS-B", "SLSQP")},
    "minimize within bounds": lambda m, p: m.minimize(
        bowl, [0.4, 1.0], (p,), "L-BFGS-B", bounds=[(0, 0.5), (None, 5)], options={"ftol": 1e-16, "gtol": 1e-11}).x,
    "minimize, constrained": lambda m, p: m.minimize(
        bowl, [0.1, 0.1], (p,), constraints={"type": "ineq", "fun": ball, "args": (0.5 * p,)}, tol=1e-14).x,
    "minimize, on a line": lambda m, p: m.minimize(
        bowl, [0.5, 0.5], (p,), constraints=[{"type": "eq", "fun": lambda x: x[0] + x[1] - 1}], tol=1e-14).x,
    "minimize_scalar": lambda m, p: m.minimize_scalar(lambda x: rnp.exp(x * p[0]) - x * p[1], tol=1e-12).x,
    "minimize_scalar within bounds": lambda m, p: m.minimize_scalar(
        lambda x: rnp.exp(x * p[0]) - x * p[1], bounds=(-3, 3), options={"xatol": 1e-11}).x,
    "root": lambda m, p: m.root(pair, [1.0, 0.2], (p,), tol=1e-13).x,
    "root by lm": lambda m, p: m.root(pair, [1.0, 0.2], (p,), "lm", tol=1e-13).x,
    "root by krylov": lambda m, p: m.root(pair, [1.0, 0.2], (p,), "krylov", tol=1e-12).x,
    "fsolve": lambda m, p: m.fsolve(pair, [1.0, 0.2], (p,), xtol=1e-13),
    "fixed_point": lambda m, p: m.fixed_point(lambda x: rnp.cos(x * p) / 2, [0.4, 0.4], xtol=1e-13),
    "root_scalar": lambda m, p: m.root_scalar(lambda x: x**3 + p[1] * x - p[0], bracket=[0, 2]).root,
    "root_scalar by newton": lambda m, p: m.root_scalar(
        lambda x: x**3 + p[1] * x - p[0], x0=1.0, fprime=lambda x: 3 * x**2 + 0.7, rtol=1e-14).root,
    "root_scalar by secant": lambda m, p: m.root_scalar(lambda x: x**3 + p[1] * x - p[0], x0=1.0, x1=1.1).root,
    **{k: lambda m, p, k=k: getattr(m, k)(lambda x: x**3 + p[1] * x - p[0], 0.0, 2.0, xtol=1e-13)
       for k in ("bisect", "brentq", "brenth", "ridder", "toms748")},
    "newton": lambda m, p: m.newton(lambda x: x**3 + x - p[0], 1.0, tol=1e-13),
    "newton, several": lambda m, p: m.newton(lambda x: x**3 + x - p, np.array([1.0, 1.0]), tol=1e-13),
    "least_squares": lambda m, p: m.least_squares(
        lambda x, p: x[0] * rnp.exp(-x[1] * TIMES) - p[0] * np.exp(-TIMES) - p[1] * NOISE, [1.0, 1.0], args=(p,),
        xtol=1e-15, ftol=1e-15, gtol=1e-13).x,
    "least_squares, robust": lambda m, p: m.least_squares(
        lambda x: x[0] * rnp.exp(-x[1] * TIMES) - p[0] * np.exp(-TIMES) - p[1] * NOISE, [1.0, 1.0], loss="soft_l1",
        f_scale=0.1, xtol=1e-15, ftol=1e-15, gtol=1e-13).x,
    "least_squares within bounds": lambda m, p: m.least_squares(
        lambda x, p: x[0] * rnp.exp(-x[1] * TIMES) - p[0] * np.exp(-TIMES) - p[1] * NOISE, [1.0, 0.5], args=(p,),
        bounds=([0, 0], [5, 0.6]), xtol=1e-15, ftol=1e-15, gtol=1e-13).x,
    "curve_fit": lambda m, p: m.curve_fit(
        decay, TIMES, p[0] * rnp.exp(-p[1] * TIMES) + NOISE, xtol=1e-14, ftol=1e-14)[0],
    "curve_fit, covariance": lambda m, p: m.curve_fit(
        decay, TIMES, p[0] * rnp.exp(-p[1] * TIMES) + NOISE, xtol=1e-14, ftol=1e-14)[1],
    "curve_fit with sigma": lambda m, p: m.curve_fit(
        decay, TIMES, rnp.exp(-TIMES) + NOISE, [1.0, 1.0], p[0] + p[1] * TIMES, True, xtol=1e-14, ftol=1e-14)[1],
    "nnls": lambda m, p: m.nnls(MATRIX, SIDE * p[0] + p[1])[0],
    "nnls, the norm": lambda m, p: m.nnls(MATRIX * p, SIDE)[1],
    "lsq_linear": lambda m, p: m.lsq_linear(MATRIX * p, SIDE, ([-1.0, -1.0], [2.0, 0.5])).x,
    "linprog": lambda m, p: m.linprog([-1.0, -2.0], MATRIX[:2] * p[0], SIDE[:2] * p).x,
    "linprog with equations": lambda m, p: m.linprog(
        p * p * TURN, None, None, (p * SIDE[1::-1])[None], [1.0], [(0, None), (0.1, None)]).fun,
}  # fmt: skip
# Solutions that are less accurate than the others, so that they and their differences have more noise.
ROUGH = (
    "minimize by Nelder-Mead",
    "root by krylov",
    "minimize by CG",
    "minimize_scalar",
    "minimize_scalar within bounds",
)
IDS = list(CASES)
# One case of each problem: the others differ in SciPy's method only.
PROBLEMS = (
    "minimize", "minimize within bounds", "minimize, constrained", "root", "fixed_point", "root_scalar",
    "least_squares", "curve_fit, covariance", "curve_fit with sigma", "nnls, the norm", "lsq_linear", "linprog",
)  # fmt: skip
FAR = {"rtol": 1e-3, "atol": 1e-5}


def own(case):
    return lambda p: CASES[case](optimize, p)


def scipys(case):
    """Return SciPy's solution as a function of an array, with the mirror's if SciPy's module takes another gradient."""
    return lambda p: np.asarray(CASES[case](scipy.optimize, p))


def slopes(function, p, step):
    units = np.eye(p.size) * step
    return np.stack([(function(p + u) - function(p - u)) / (2 * step) for u in units], -1)


@pytest.mark.filterwarnings("ignore")
@group_cases
@pytest.mark.parametrize("case", IDS)
def test_solutions_are_scipys(case):
    found = own(case)(rg.tensor(P))
    assert isinstance(found, Tensor)
    tolerance = 1e-4 if case in ROUGH or "minimize" in case else 1e-7
    np.testing.assert_allclose(found.numpy(), scipys(case)(P), rtol=tolerance, atol=tolerance)


@group_cases
@pytest.mark.parametrize("case", [c for c in IDS if c not in ROUGH])
def test_jacobians_of_both_modes_are_the_differences_of_solutions(case):
    expected = slopes(lambda p: own(case)(rg.tensor(p)).numpy(), P, 1e-4)
    assert np.abs(expected).max() > 0
    np.testing.assert_allclose(jacrev(own(case))(rg.tensor(P)).numpy(), expected, **FAR)
    np.testing.assert_allclose(jacfwd(own(case))(rg.tensor(P)).numpy(), expected, **FAR)


def scalar(case):
    return lambda p: weighted(own(case)(p), rnp)


@pytest.mark.parametrize("case", PROBLEMS)
def test_second_derivatives_are_the_differences_of_first_ones(case):
    expected = slopes(lambda p: grad(scalar(case))(rg.tensor(p)).numpy(), P, 1e-4)
    np.testing.assert_allclose(hessian(scalar(case))(rg.tensor(P)).numpy(), expected, **FAR)


@pytest.mark.parametrize("case", PROBLEMS)
def test_a_batch_is_a_loop(case):
    batch = rg.tensor(np.stack([P, 1.1 * P]))
    loop = rg.stack([own(case)(p) for p in batch])
    np.testing.assert_allclose(vmap(own(case))(batch).numpy(), loop.numpy(), rtol=1e-12)
    together = vmap(grad(scalar(case)))(batch).numpy()
    np.testing.assert_allclose(
        together, np.stack([grad(scalar(case))(p).numpy() for p in batch]), rtol=1e-9, atol=1e-12
    )


# ---------------------------------------------------------------------------------------- cases outside the table


@pytest.mark.parametrize("method", [
    "Nelder-Mead", "Powell", "CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "COBYLA", "SLSQP", "trust-constr", "dogleg",
    "trust-ncg", "trust-exact", "trust-krylov", "COBYQA",
])  # fmt: skip
def test_every_method_finds_the_minimum_without_a_gradient_from_the_caller(method):
    found = optimize.minimize(lambda x: rnp.cosh(x[0] - 1) + (x[1] - x[0]) ** 2, [0.8, 0.6], method=method, tol=1e-6)
    np.testing.assert_allclose(found.x.numpy(), 1, atol=1e-2)
    assert found.fun.item() == pytest.approx(1, abs=1e-4)


def test_minimize_gives_scipy_our_derivatives():
    found = optimize.minimize(lambda x: (x**4).sum() + x[0] * x[1], [1.0, 2.0])
    numerical = scipy.optimize.minimize(lambda x: (x**4).sum() + x[0] * x[1], [1.0, 2.0])
    assert found.success
    assert found.nfev == found.njev < numerical.nfev
    assert isinstance(found.fun, Tensor)


def test_derivatives_of_the_caller_are_used():
    calls = []

    def slope(x, p):
        calls.append(x)
        return 2 * (x - p.numpy())

    p = rg.tensor([1.0, 2.0], dtype=rg.float64)
    found = optimize.minimize(lambda x, p: ((x - p) ** 2).sum(), [0.0, 0.0], (p,), jac=slope)
    np.testing.assert_allclose(found.x.numpy(), p.numpy(), atol=1e-6)
    assert calls
    both = optimize.minimize(lambda x, p: (((x - p) ** 2).sum(), "ignored"), [0.0, 0.0], (p,), jac=True)
    np.testing.assert_allclose(both.x.numpy(), p.numpy(), atol=1e-6)


def chain(x):
    """Return the chained Rosenbrock function, whose Hessian is tridiagonal."""
    return ((1 - x[:-1]) ** 2).sum() + (10 * (x[1:] - x[:-1] ** 2) ** 2).sum()


def arcs(x):
    return x[1:-1] ** 2 + 0.5 * x[:-2] * x[2:]


def run_chain(monkeypatch, function=optimize.minimize, **options):
    """Return the minimum of the chain between arcs, and the derivatives that SciPy gets at a point."""
    given, start = {}, np.full(20, 0.5)

    def spy(*args, solve=scipy.optimize.minimize, **kwargs):
        given.update(kwargs)
        return solve(*args, **kwargs)

    monkeypatch.setattr(scipy.optimize, "minimize", spy)
    limits = [scipy.optimize.NonlinearConstraint(arcs, 0.2, 0.9), {"type": "eq", "fun": lambda x: x[:1] * x[1:2] - 0.3}]
    found = function(
        chain, start, method="trust-constr", constraints=limits, options={"gtol": 1e-9, "maxiter": 3000, **options}
    )
    return found, given, start


def test_trust_constr_gets_second_derivatives_of_constraints(monkeypatch):
    found, given, start = run_chain(monkeypatch)
    equal, between = given["constraints"]
    weights = np.linspace(1, 2, 36)
    second = hessian(lambda x: (rg.tensor(weights) * rg.cat([arcs(x) - 0.2, 0.9 - arcs(x)])).sum())(rg.tensor(start))
    np.testing.assert_allclose(between.hess(start, weights) @ np.eye(20), second.numpy(), atol=1e-12)
    assert (equal.hess(start, np.ones(1)) @ np.eye(20))[0, 1] == 1
    assert found.success
    value = arcs(found.x.numpy())
    assert ((value > 0.2 - 1e-6) & (value < 0.9 + 1e-6)).all()


def test_trust_constr_gets_sparse_derivatives_by_its_option(monkeypatch):
    dense, _, _ = run_chain(monkeypatch)
    found, given, start = run_chain(monkeypatch, sparse_jacobian=True)
    equal, between = given["constraints"]
    np.testing.assert_allclose(found.x.numpy(), dense.x.numpy(), atol=1e-6)
    matrix = given["hess"](start)
    assert matrix.nnz == 58
    np.testing.assert_allclose(matrix.toarray(), hessian(chain)(rg.tensor(start)).numpy(), atol=1e-12)
    assert between.jac(start).nnz == 2 * 3 * 18
    assert between.hess(start, np.linspace(1, 2, 36)).nnz < 100
    np.testing.assert_allclose(equal.hess(start, np.ones(1)).toarray()[0, :2], [0, 1])


def test_sparse_derivatives_are_found_inside_transforms():
    def nearest(p):
        limit = {"type": "eq", "fun": lambda x: x[:-1] * x[1:] - p}
        options = {"sparse_jacobian": True, "gtol": 1e-11, "xtol": 1e-12}
        return optimize.minimize(lambda x: ((x - 1) ** 4).sum() + (x * x).sum(), np.ones(3), constraints=limit,
                                 method="trust-constr", options=options).x  # fmt: skip

    expected = slopes(lambda p: nearest(rg.tensor(p)).numpy(), P, 1e-4)
    np.testing.assert_allclose(jacrev(nearest)(rg.tensor(P)).numpy(), expected, **FAR)
    np.testing.assert_allclose(jacfwd(nearest)(rg.tensor(P)).numpy(), expected, **FAR)


@pytest.mark.parametrize("kind", ["dict", "NonlinearConstraint", "LinearConstraint"])
def test_all_kinds_of_constraints_bind_and_pass_gradients_to_their_bounds(kind):
    def nearest(p):
        constraint = {
            "dict": {"type": "ineq", "fun": lambda x: p[0] - x[0] - x[1]},
            "NonlinearConstraint": scipy.optimize.NonlinearConstraint(lambda x: p[0] - x[0] - x[1], 0, np.inf),
            "LinearConstraint": scipy.optimize.LinearConstraint(np.ones((1, 2)), -np.inf, [1.3]),
        }[kind]
        return optimize.minimize(lambda x: ((x - 2 * p) ** 2).sum(), [0.1, 0.1], constraints=constraint, tol=1e-13).x

    p = rg.tensor(P)
    gap = (1.3 - 2 * P.sum()) / 2
    np.testing.assert_allclose(nearest(p).numpy(), 2 * P + gap, atol=1e-6)
    expected = slopes(lambda p: nearest(rg.tensor(p)).numpy(), P, 1e-4)
    np.testing.assert_allclose(jacrev(nearest)(p).numpy(), expected, atol=1e-5)


def test_a_solution_at_a_bound_moves_with_the_bound():
    high = rg.tensor([1.0, 5.0], dtype=rg.float64, requires_grad=True)
    found = optimize.minimize(
        lambda x: ((x - 3) ** 2).sum(), [0.0, 0.0], method="L-BFGS-B", bounds=[(0, high[0]), (0, high[1])]
    )
    np.testing.assert_allclose(found.x.detach().numpy(), [1, 3], atol=1e-6)
    (slope,) = rg.autograd.grad(found.x.sum(), high)
    np.testing.assert_allclose(slope.numpy(), [1, 0], atol=1e-12)


def test_shadow_prices_of_a_linear_program_are_scipys_marginals():
    # F. S. Hillier and G. J. Lieberman, Introduction to Operations Research: the products of the Wyndor Glass Co.
    hours = rg.tensor([4.0, 12.0, 18.0], dtype=rg.float64, requires_grad=True)
    profit = rg.tensor([-3.0, -5.0], dtype=rg.float64, requires_grad=True)
    found = optimize.linprog(profit, [[1.0, 0.0], [0.0, 2.0], [3.0, 2.0]], hours)
    assert (found.x.tolist(), found.fun.item()) == ([2, 6], -36)
    prices, amounts = rg.autograd.grad(found.fun, [hours, profit])
    np.testing.assert_allclose(prices.numpy(), [0, -1.5, -1], atol=1e-12)
    np.testing.assert_allclose(prices.numpy(), found.ineqlin.marginals, atol=1e-12)
    np.testing.assert_allclose(amounts.numpy(), [2, 6], atol=1e-12)


def test_the_fit_of_a_published_data_set():
    # NIST, Statistical Reference Datasets: Misra1a, y = b1 (1 - exp(-b2 x)).
    x = [77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0]
    y = [10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78]
    values = rg.tensor(y, dtype=rg.float64, requires_grad=True)
    p, covariance = optimize.curve_fit(lambda x, a, b: a * (1 - rnp.exp(-b * x)), np.array(x), values, [250.0, 5e-4])
    np.testing.assert_allclose(p.detach().numpy(), [2.3894212918e02, 5.5015643181e-04], rtol=1e-7)
    deviations = covariance.detach().diagonal().sqrt().numpy()
    np.testing.assert_allclose(deviations, [2.7070075241e00, 7.2668688436e-06], rtol=1e-5)
    assert rg.autograd.grad(p[0], values)[0].isfinite().all()


def test_functions_of_several_results_return_scipys_details():
    x, details = optimize.brentq(lambda x: x**3 - 2, 0, 2, full_output=True)
    assert (details.converged, x.item()) == (True, pytest.approx(2 ** (1 / 3)))
    x, info, flag, _ = optimize.fsolve(lambda x: x**3 - 2, [1.0], full_output=True)
    assert (flag, len(info["fvec"])) == (1, 1)
    assert len(optimize.curve_fit(decay, TIMES, np.exp(-TIMES), full_output=True)) == 5


def test_failures_of_scipys_solvers_are_errors_or_say_no_success():
    with pytest.raises(ValueError, match="must have different signs"):
        optimize.brentq(lambda x: x * x + 1, 0, 2)
    with pytest.raises(RuntimeError, match=r"optimize.fsolve: "):
        optimize.fsolve(lambda x: x * x + 1, [1.0])
    assert not optimize.root(lambda x: x * x + 1, [1.0]).success
    with pytest.raises(RuntimeError, match=r"optimize.linprog: .*infeasible"):
        optimize.linprog(rg.ones(1).double(), [[1.0]], [-1.0])


def test_refusals_name_the_function():
    x = rg.ones(2, 2)
    for name in ("linear_sum_assignment", "milp"):
        with pytest.raises(TypeError, match=f"optimize.{name}: .* has no useful derivative"):
            getattr(optimize, name)(x)
    assert [list(part) for part in optimize.linear_sum_assignment(np.eye(2))] == [[0, 1], [1, 0]]
    assert optimize.milp([1.0]).x == [0]
    with pytest.raises(TypeError, match=r"optimize.linprog: an integer solution has no derivative"):
        optimize.linprog(x[0], integrality=[1, 1])
    with pytest.raises(ValueError, match="least_squares: loss must be one of linear, soft_l1"):
        optimize.least_squares(lambda x: x, [1.0], loss="absolute")
    with pytest.raises(ValueError, match=r"minimize: x0 must be a vector, got shape \(2, 2\)"):
        optimize.minimize(lambda x: (x * x).sum(), np.ones((2, 2)))
    with pytest.raises(ValueError, match="minimize: a lower bound is above its upper bound"):
        optimize.minimize(lambda x: (x * x).sum(), [1.0], bounds=[(2, 1)])
    with pytest.raises(ValueError, match="curve_fit: unable to determine the number of parameters"):
        optimize.curve_fit(lambda x, *p: x, TIMES, TIMES)
    with pytest.raises(ValueError, match="curve_fit: f returns 2 values, and ydata has 3"):
        optimize.curve_fit(lambda x, a: a * x, [1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"nnls: A must be a matrix, got shape \(2,\)"):
        optimize.nnls(x[0], x[0])


def test_arguments_of_a_wrong_kind_are_named_and_misspelt_ones_suggested():
    for call in (optimize.minimize, optimize.root, optimize.least_squares, optimize.fsolve):
        with pytest.raises(TypeError, match=f"{call.__name__}: func? must be a function, got 3"):
            call(3, [1.0])
        with pytest.raises(TypeError, match=f"{call.__name__}: x0 must be a Tensor or an array or a sequence or a num"):
            call(lambda x: x, None)
    with pytest.raises(KeyError, match="mine"):  # an error of a function whose arguments fit is left alone
        optimize.minimize(lambda x: {}["mine"], 1.0)
    with pytest.raises(TypeError, match=r"minimize.* 'metho'\. Did you mean 'method'"):
        optimize.minimize(lambda x: (x * x).sum(), [1.0], metho="BFGS")


def test_the_other_names_are_scipys():
    assert optimize.rosen([1.0, 2.0]) == scipy.optimize.rosen([1.0, 2.0])
    assert optimize.Bounds is scipy.optimize.Bounds
    assert "differential_evolution" in dir(optimize)
