"""retrograd.scipy compared with jax.scipy: values, gradients and Hessians."""

import jax
import jax.scipy.integrate
import jax.scipy.linalg
import numpy as np
import pytest

import retrograd as rg
from retrograd.scipy import linalg
from retrograd.scipy.integrate import odeint

_r = np.random.default_rng(4)
SQUARE, SIDE = _r.normal(size=(3, 3)), _r.normal(size=3)
POSITIVE = SQUARE @ SQUARE.T + np.eye(3)

CASES = {
    "expm": lambda m, a, b: m.expm(a) @ b,
    "expm_frechet": lambda m, a, b: m.expm_frechet(a, POSITIVE, compute_expm=False) @ b,
    "toeplitz": lambda m, a, b: m.toeplitz(b, a[0]) @ b,
    "solve_triangular": lambda m, a, b: m.solve_triangular(a, b, lower=True),
    "cho_solve": lambda m, a, b: m.cho_solve(m.cho_factor(a @ a.T + POSITIVE), b),
    "lu_solve": lambda m, a, b: m.lu_solve(m.lu_factor(a), b),
    "lu_solve, transposed": lambda m, a, b: m.lu_solve(m.lu_factor(a), b, 1),
    "eigh": lambda m, a, b: m.eigh(a @ a.T, eigvals_only=True) * b,
    "polar": lambda m, a, b: m.polar(a)[0] @ b + m.polar(a)[1] @ b,
    "svd": lambda m, a, b: m.svd(a, compute_uv=False) * b,
    "lu": lambda m, a, b: m.lu(a)[1] @ m.lu(a)[2] @ b,
    "block_diag": lambda m, a, b: m.block_diag(a, a.T) @ np.ones(6),
}


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("name", CASES)
def test_linear_algebra_agrees_with_jax_to_second_order(name):
    def ours(a, b):
        return (CASES[name](linalg, a, b) ** 2).sum()

    def theirs(a, b):
        return (CASES[name](jax.scipy.linalg, a, b) ** 2).sum()

    given = [rg.tensor(SQUARE), rg.tensor(SIDE)]
    np.testing.assert_allclose(ours(*given).numpy(), theirs(SQUARE, SIDE), rtol=1e-9)
    # In forward mode, since JAX cannot run its loops backward.
    found, expected = rg.func.grad(ours, (0, 1))(*given), jax.jacfwd(theirs, (0, 1))(SQUARE, SIDE)
    for g, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(g.numpy(), e, rtol=1e-8, atol=1e-10)
    second = rg.func.hessian(ours)(*given).numpy()
    np.testing.assert_allclose(second, jax.jacfwd(jax.jacfwd(theirs))(SQUARE, SIDE), rtol=1e-6, atol=1e-7)


def test_the_gradient_of_odeint_agrees_with_jax():
    from jax.experimental.ode import odeint as odeint_of_jax

    def pendulum(module):
        return lambda y, t, p: module.stack([y[1], -p * module.sin(y[0])])

    times = np.array([0.0, 0.5, 2.0])
    theirs = jax.grad(lambda p: odeint_of_jax(pendulum(jax.numpy), SIDE[:2], times, p, rtol=1e-10, atol=1e-10).sum())
    ours = rg.func.grad(lambda p: odeint(pendulum(rg), SIDE[:2], times, (p,), rtol=1e-10, atol=1e-10).sum())
    assert ours(rg.tensor(1.5, dtype=rg.float64)).item() == pytest.approx(float(theirs(1.5)), rel=1e-7)
