"""Kvaerno's methods: orders, stiff problems, derivatives to second order, batches and refusals."""

import numpy as np
import pytest
import scipy.integrate

import retrograd as rg
from retrograd import ode
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.func import vmap
from retrograd.ode.implicit_steppers import KVAERNO3, KVAERNO5, ImplicitSteps
from retrograd.ode.steppers import solve

METHODS = {"kvaerno3": KVAERNO3, "kvaerno5": KVAERNO5}
RATES = (0.04, 3e7, 1e4)


def robertson(t, y, rates=RATES):
    first = rates[2] * y[1] * y[2] - rates[0] * y[0]
    last = rates[1] * y[1] * y[1]
    return rg.stack([first, -first - last, last])


def pendulum(t, y):
    return rg.stack([y[1], -1.5 * rg.sin(y[0]) + 0.1 * t])


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_its_order(name):
    tableau = METHODS[name]
    exact = scipy.integrate.solve_ivp(
        lambda t, y: [y[1], -1.5 * np.sin(y[0]) + 0.1 * t], (0, 2), [1.0, 0.5], "DOP853", rtol=1e-13, atol=1e-13
    ).y[:, -1]

    def method(*given):
        return ImplicitSteps(*given, (1e-12, 1e-12))

    errors = []
    for steps in (8, 16):
        y = solve(name, tableau, pendulum, np.array([1.0, 0.5]), [0.0, 2.0], (), method=method, steps=steps)
        errors.append(np.abs(y.numpy()[-1] - exact).max())
    assert tableau.order - 0.4 < np.log2(errors[0] / errors[1]) < tableau.order + 1


@pytest.mark.parametrize(("name", "rtol", "allowed"), [("kvaerno3", 1e-5, 1e-3), ("kvaerno5", 1e-7, 1e-5)])
def test_robertsons_stiff_problem_is_solved(name, rtol, allowed):
    times = [0.0, 40.0, 1e4]
    exact = scipy.integrate.solve_ivp(
        lambda t, y: robertson(t, rg.tensor(y)).numpy(), (0, 1e4), [1.0, 0, 0], "Radau", times, rtol=1e-9, atol=1e-13
    ).y.T
    y = getattr(ode, name)(robertson, rg.tensor([1.0, 0, 0], dtype=rg.float64), times, rtol=rtol, atol=rtol * 1e-4)
    np.testing.assert_allclose(y.numpy()[1:], exact[1:], rtol=allowed)


def test_a_singular_matrix_of_newtons_method_makes_the_step_smaller():
    growth = 1 / (0.1 * KVAERNO5.a[0][-1])  # the first step is a tenth of the interval
    y = ode.kvaerno5(lambda t, y: growth * y, rg.ones(1, dtype=rg.float64), [0.0, 1.0])
    np.testing.assert_allclose(y.numpy()[-1], np.exp(growth), rtol=1e-4)


def test_derivatives_are_exact_to_second_order_and_batches_agree():
    def last(y0, scale):
        rates = scale * rg.tensor([0.04, 3e3, 1e2], dtype=rg.float64)
        return ode.kvaerno5(robertson, y0, [0.0, 0.02], (rates,), rtol=1e-4, atol=1e-6)[-1]

    y0 = rg.tensor([1.0, 0.1, 0.0], dtype=rg.float64, requires_grad=True)
    scale = rg.ones(3, dtype=rg.float64, requires_grad=True)
    assert gradcheck(last, (y0, scale), check_forward_ad=True, fast_mode=True, atol=1e-5)
    assert gradgradcheck(last, (y0, scale), fast_mode=True, atol=1e-4)
    batch = rg.stack([y0.detach(), 2 * y0.detach()])
    found = vmap(lambda y: last(y, scale.detach()))(batch)
    np.testing.assert_allclose(found[1].numpy(), last(batch[1], scale.detach()).numpy(), atol=1e-5)


def test_a_problem_without_a_solution_is_an_error():
    with pytest.raises(RuntimeError, match=r"ode\.kvaerno5: no solution in"):
        ode.kvaerno5(lambda t, y: y * y, rg.ones(1, dtype=rg.float64), [0.0, 2.0], max_steps=40)
