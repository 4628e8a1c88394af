"""Explicit Runge-Kutta methods: orders, tolerances, gradients in all modes, batches and refusals."""

import numpy as np
import pytest
import scipy.integrate

import retrograd as rg
from retrograd import nn, ode
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.func import grad, jacrev, vmap
from retrograd.ode import tableaus

FIXED = {"euler": 1, "midpoint": 2, "heun": 2, "rk4": 4}
ADAPTIVE = ("bosh3", "dopri5", "tsit5")
TIMES = [0.0, 0.5, 2.0]
START = np.array([1.0, 0.5])


def pendulum(t, y, p=1.5):
    return rg.stack([y[1], -p * rg.sin(y[0]) + 0.1 * t])


def exact(t, start=START, p=1.5):
    def plain(t, y):
        return [y[1], -p * np.sin(y[0]) + 0.1 * t]

    return scipy.integrate.solve_ivp(plain, (t[0], t[-1]), start, "DOP853", t, rtol=1e-12, atol=1e-12).y.T


@pytest.mark.parametrize("name", [*FIXED, *ADAPTIVE])
def test_a_method_has_its_order(name):
    tableau = getattr(tableaus, name.upper())
    for c, row in zip(tableau.c[1:], tableau.a, strict=True):
        assert sum(row) == pytest.approx(c, abs=1e-13)
    errors = []
    for steps in (8, 16):
        y = ode.steppers.solve(name, tableau, pendulum, START, TIMES, (), steps=steps)
        errors.append(np.abs(y.numpy() - exact(TIMES)).max())
    assert tableau.order - 0.5 < np.log2(errors[0] / errors[1]) < tableau.order + 1.1


@pytest.mark.parametrize("name", ADAPTIVE)
def test_smaller_tolerances_give_smaller_errors(name):
    errors = []
    for rtol in (1e-4, 1e-7):
        y = getattr(ode, name)(pendulum, START, TIMES, rtol=rtol, atol=rtol)
        errors.append(np.abs(y.numpy() - exact(TIMES)).max())
    assert errors[0] < 1e-3
    assert errors[1] < 3e-6


@pytest.mark.parametrize("name", ["rk4", "dopri5", "tsit5"])
def test_gradients_of_the_steps_are_right_to_second_order(name):
    def f(y0, t, p):
        return getattr(ode, name)(lambda t, y: pendulum(t, y, p), y0, t)

    given = [rg.tensor(x, dtype=rg.float64, requires_grad=True) for x in (START, TIMES, 1.5)]
    assert gradcheck(f, given, check_forward_ad=True, atol=1e-5)
    assert gradgradcheck(lambda y0, p: f(y0, TIMES, p), [given[0], given[2]], atol=1e-4)


def test_gradients_are_those_of_the_solution():
    def last(p):
        return ode.tsit5(pendulum, START, TIMES, (p,), rtol=1e-9, atol=1e-11)[-1]

    expected = (exact(TIMES, p=1.5 + 1e-5)[-1] - exact(TIMES, p=1.5 - 1e-5)[-1]) / 2e-5
    np.testing.assert_allclose(jacrev(last)(rg.tensor(1.5, dtype=rg.float64)).numpy(), expected, rtol=1e-6)


def test_a_batch_takes_the_same_steps_and_is_as_accurate_as_each_example():
    starts = rg.tensor(np.stack([START, 3 * START, [0.1, 0.0]]))
    found = vmap(lambda y0: ode.dopri5(pendulum, y0, TIMES, rtol=1e-8, atol=1e-8))(starts).numpy()
    np.testing.assert_allclose(found, [exact(TIMES, y0) for y0 in starts.numpy()], rtol=1e-6)
    slopes = vmap(grad(lambda y0: ode.dopri5(pendulum, y0, TIMES)[-1].sum()))(starts)
    each = rg.stack([grad(lambda y0: ode.dopri5(pendulum, y0, TIMES)[-1].sum())(y0) for y0 in starts])
    np.testing.assert_allclose(slopes.numpy(), each.numpy(), rtol=1e-4)


def test_states_may_be_matrices_and_complex_and_time_may_run_backwards():
    y0 = rg.tensor(np.array([[1.0, 2.0], [3.0, 4.0]]) + 0j)
    found = ode.dopri5(lambda t, y: 1j * y, y0, [1.0, 0.0])
    np.testing.assert_allclose(found[-1].numpy(), y0.numpy() * np.exp(-1j), rtol=1e-6)
    assert (found.shape, found.dtype) == ((2, 2, 2), rg.complex128)
    assert ode.rk4(lambda t, y: y, rg.ones(2), TIMES).dtype == rg.float32


def test_the_parameters_of_a_network_get_gradients():
    rg.manual_seed(0)
    field = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2))
    ode.dopri5(lambda t, y: field(y), rg.randn(8, 2), [0.0, 1.0])[-1].square().sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in field.parameters())


def test_refusals_name_the_method():
    with pytest.raises(RuntimeError, match=r"ode\.dopri5: no solution in .* steps.*solve_ivp with method='BDF'"):
        ode.dopri5(lambda t, y: y * y, rg.ones(1, dtype=rg.float64), [0.0, 2.0])
    with pytest.raises(ValueError, match=r"ode\.rk4: the function must return the shape of y, \(2,\), got \(\)"):
        ode.rk4(lambda t, y: y.sum(), rg.ones(2), TIMES)
    with pytest.raises(ValueError, match=r"ode\.euler: t must be a vector of times, got shape \(\)"):
        ode.euler(lambda t, y: y, rg.ones(2), 1.0)
    with pytest.raises(TypeError, match=r"ode\.tsit5: y0 must be floating, got int64"):
        ode.tsit5(lambda t, y: y, [1, 2], TIMES)
