"""Derivatives of minima, roots and fits compared with jaxopt, on the problems of its documentation."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import implicit
from retrograd.scipy import optimize

jax = pytest.importorskip("jax")
jaxopt = pytest.importorskip("jaxopt")
jnp = jax.numpy

_r = np.random.default_rng(6)
DATA, TARGET = _r.normal(size=(8, 3)), _r.normal(size=8)
SIGNS = np.sign(TARGET)
TIMES = np.linspace(0, 2, 8)
OBSERVED = 2 * np.exp(-1.3 * TIMES) + 0.05 * TARGET


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def ridge(w, penalty):
    return 0.5 * ((DATA @ w - TARGET) ** 2).sum() + 0.5 * penalty * (w**2).sum()


def logistic(m):
    def loss(w, penalty):
        return m.log1p(m.exp(-SIGNS * (DATA @ w))).sum() + 0.5 * penalty * (w**2).sum()

    return loss


def decay(m):
    return lambda p, rate: p[0] * m.exp(-p[1] * TIMES * rate) - OBSERVED


def equal_sum(w, total):
    return w.sum().reshape(1) - total


# The solution by retrograd and by jaxopt, as functions of one number.
PROBLEMS = {
    "ridge regression": (
        lambda s: optimize.minimize(ridge, np.zeros(3), (s,), tol=1e-12).x,
        lambda s: jaxopt.LBFGS(ridge, tol=1e-13, maxiter=500).run(jnp.zeros(3), s).params,
    ),
    "logistic regression": (
        lambda s: optimize.minimize(logistic(rg), np.zeros(3), (s,), tol=1e-12).x,
        lambda s: jaxopt.LBFGS(logistic(jnp), tol=1e-13, maxiter=500).run(jnp.zeros(3), s).params,
    ),
    "a quadratic program with an equation": (
        lambda s: optimize.minimize(
            ridge, np.zeros(3), (1.0,), tol=1e-13, constraints={"type": "eq", "fun": lambda w: equal_sum(w, s)}
        ).x,
        lambda s: jaxopt.EqualityConstrainedQP(tol=1e-13).run(
            params_obj=(DATA.T @ DATA + jnp.eye(3), -DATA.T @ TARGET), params_eq=(jnp.ones((1, 3)), s.reshape(1))
        ).params.primal,
    ),
    "least squares with nonnegative unknowns": (
        lambda s: optimize.nnls(rg.tensor(DATA), rg.tensor(TARGET) * s + 1)[0],
        lambda s: jaxopt.ProjectedGradient(
            lambda w, s: 0.5 * ((DATA @ w - TARGET * s - 1) ** 2).sum(),
            jaxopt.projection.projection_non_negative, tol=1e-13, maxiter=5000,
        ).run(jnp.ones(3), None, s).params,
    ),
    "a fit of a curve": (
        lambda s: optimize.least_squares(decay(rg), [1.0, 1.0], args=(s,), xtol=1e-14, ftol=1e-14, gtol=1e-14).x,
        lambda s: jaxopt.LevenbergMarquardt(decay(jnp), tol=1e-13, maxiter=200).run(jnp.ones(2), s).params,
    ),
    "a fixed point": (
        lambda s: implicit.fixed_point(
            lambda x: (s * rg.tensor(DATA[:3]) @ x / 9).tanh() + 0.5, np.zeros(3), solver=iterate
        ),
        lambda s: jaxopt.FixedPointIteration(
            lambda x, s: jnp.tanh(s * DATA[:3] @ x / 9) + 0.5, tol=1e-14, maxiter=500
        ).run(jnp.zeros(3), s).params,
    ),
    "a root": (
        lambda s: optimize.brentq(lambda x: x**3 + s * x - 2, 0, 2, xtol=1e-14).reshape(1),
        lambda s: jaxopt.Bisection(lambda x, s: x**3 + s * x - 2, 0.0, 2.0, tol=1e-14, maxiter=100)
        .run(None, s).params.reshape(1),
    ),
}  # fmt: skip


def iterate(function, x):
    for _ in range(300):
        x = function(x)
    return x


@pytest.mark.parametrize("name", PROBLEMS)
def test_solutions_and_their_derivatives_are_those_of_jaxopt(name):
    ours, theirs = PROBLEMS[name]
    s = rg.tensor(1.1, dtype=rg.float64)
    np.testing.assert_allclose(ours(s).numpy(), theirs(jnp.asarray(1.1)), rtol=1e-6, atol=1e-7)
    expected = jax.jacrev(theirs)(1.1)
    for transform in (rg.func.jacrev, rg.func.jacfwd):
        np.testing.assert_allclose(transform(ours)(s).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_second_derivatives_of_ridge_regression_are_those_of_its_closed_form():
    def exact(penalty):
        return rg.linalg.solve(rg.tensor(DATA.T @ DATA) + penalty * rg.eye(3, dtype=rg.float64), DATA.T @ TARGET)

    s = rg.tensor(1.1, dtype=rg.float64)
    ours = PROBLEMS["ridge regression"][0]
    for transform in (rg.func.jacrev, lambda f: rg.func.jacfwd(rg.func.jacrev(f))):
        np.testing.assert_allclose(transform(ours)(s).numpy(), transform(exact)(s).numpy(), rtol=1e-6)
