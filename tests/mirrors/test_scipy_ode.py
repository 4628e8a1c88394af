"""retrograd.scipy.integrate on differential equations: SciPy's solutions, their derivatives, and events."""

import numpy as np
import pytest
import scipy.integrate

import retrograd as rg
from retrograd import numpy as rnp
from retrograd.core import NotBatchedError, Tensor
from retrograd.func import grad, hessian, jacfwd, jacrev, vmap
from retrograd.scipy import integrate
from retrograd.scipy.integrate import initial_value

from ..case_groups import group_cases

P = np.array([1.1, 0.4, 0.3])
START = np.array([2.0, 1.0])
TIMES = np.array([0.0, 0.7, 1.5, 3.0])
EXACT = {"rtol": 1e-10, "atol": 1e-10}
METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")


def predators(t, y, p):
    return [p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - y[1] + 0.1 * rnp.sin(t)]


def slopes(function, p, step=1e-4):
    units = np.eye(p.size) * step
    return np.stack([(function(p + u) - function(p - u)) / (2 * step) for u in units], -1)


TOLERANCES = {"RK23": 1e-6, "Radau": 1e-7, "BDF": 1e-8}


def values(method, p, module=integrate):
    tolerance = TOLERANCES.get(method, 1e-10)
    options = {"rtol": tolerance, "atol": tolerance}
    return module.solve_ivp(predators, (0, 3), START, method, TIMES, args=(p,), **options).y


def exact(p):
    options = {"rtol": 1e-12, "atol": 1e-12}
    return scipy.integrate.solve_ivp(predators, (0, 3), START, "DOP853", TIMES, args=(p,), **options).y


# ------------------------------------------------------------------------------------------------------ values


@group_cases
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("t_eval", [None, TIMES, TIMES[1:3], TIMES[::-1]], ids=["steps", "all", "inner", "backwards"])
def test_solutions_are_scipys(method, t_eval):
    span = (3, 0) if t_eval is not None and t_eval[0] == 3 else (0, 3)
    jac = {"jac": lambda t, y, p: np.eye(2)} if method in METHODS[3:] else {}  # else the Jacobians differ in rounding
    found = integrate.solve_ivp(predators, span, START, method, t_eval, args=(rg.tensor(P),), **jac)
    expected = scipy.integrate.solve_ivp(predators, span, START, method, t_eval, args=(P,), **jac)
    assert isinstance(found.y, Tensor)
    # The sine of tensors may differ from NumPy's in the last digit, and so may the sizes of steps.
    np.testing.assert_allclose(found.t.numpy(), expected.t, rtol=1e-13)
    np.testing.assert_allclose(found.y.numpy(), expected.y, rtol=1e-12)


def test_a_problem_without_tensors_is_scipys():
    found = integrate.solve_ivp(predators, (0, 3), START, args=(P,), dense_output=True)
    assert type(found.y) is np.ndarray
    assert type(integrate.odeint(lambda y, t: -y, 1.0, [0, 1])) is np.ndarray


def test_odeint_returns_scipys_details_and_takes_time_first():
    y, details = integrate.odeint(predators, START, TIMES, (rg.tensor(P),), full_output=True, tfirst=True)
    expected = scipy.integrate.odeint(predators, START, TIMES, (P,), tfirst=True)
    np.testing.assert_array_equal(y.numpy(), expected)
    assert details["message"] == "Integration successful."


# ------------------------------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize("method", METHODS)
def test_jacobians_of_both_modes_are_the_differences_of_accurate_solutions(method):
    expected, error = slopes(exact, P), 1e3 * TOLERANCES.get(method, 1e-9)
    for jacobian in (jacrev, jacfwd):
        found = jacobian(lambda p: values(method, p))(rg.tensor(P)).numpy()
        np.testing.assert_allclose(found, expected, rtol=error, atol=error)


def test_all_that_the_equation_reads_has_a_gradient():
    def program(y0, ends, times, p, q):
        found = integrate.solve_ivp(
            lambda t, y: rnp.stack([y[1] * q[0], -p * rnp.sin(y[0]) * t]), (ends[0], 2.0), y0, "DOP853", times, **EXACT
        )
        return (found.y * np.cos(np.arange(1.0, 5).reshape(2, 2))).sum()

    given = [np.array([0.5, 0.2]), np.array([0.1]), np.array([0.4, 1.7]), np.array(2.0), np.array([1.3])]
    found = grad(program, (0, 1, 2, 3, 4))(*map(rg.tensor, given))
    for i, value in enumerate(given):

        def alone(x, i=i, value=value):
            return program(*[rg.tensor(x.reshape(value.shape) if i == k else v) for k, v in enumerate(given)]).numpy()

        np.testing.assert_allclose(found[i].numpy().ravel(), slopes(alone, value.ravel()), rtol=1e-6, err_msg=str(i))


def test_the_end_of_the_interval_has_a_gradient():
    def last(end):
        return integrate.solve_ivp(lambda t, y: y * np.cos(t), (0, end), [1.0], "DOP853", **EXACT).y[0, -1]

    end = rg.tensor(2.0, dtype=rg.float64)
    assert grad(last)(end).item() == pytest.approx(np.exp(np.sin(2)) * np.cos(2), rel=1e-8)


def test_second_derivatives_are_the_differences_of_first_ones():
    def loss(p):
        return (values("DOP853", p) ** 2).sum()

    expected = slopes(lambda p: grad(loss)(rg.tensor(p)).numpy(), P)
    np.testing.assert_allclose(hessian(loss)(rg.tensor(P)).numpy(), expected, rtol=1e-5)


def test_a_batch_is_a_loop():
    batch = rg.tensor(np.stack([P, 1.2 * P]))
    for function in (lambda p: values("RK45", p), lambda p: grad(lambda p: values("RK45", p).sum())(p)):
        loop = rg.stack([function(p) for p in batch])
        np.testing.assert_allclose(vmap(function)(batch).numpy(), loop.numpy(), rtol=1e-5)


def test_a_right_hand_side_that_reads_values_has_a_gradient():
    def switching(t, y, p):
        return [-p[0] * y[0] if t < 1.0 else -p[1] * y[0]]

    def last(p):
        return integrate.solve_ivp(switching, (0, 2), [1.0], t_eval=[1.0, 2.0], args=(p,), max_step=0.1, **EXACT).y[
            0, -1
        ]

    found = grad(last)(rg.tensor(P)).numpy()
    np.testing.assert_allclose(found, -np.exp(-1.5) * np.array([1, 1, 0]), rtol=1e-6)


@pytest.mark.parametrize("method", ["BDF", "LSODA"])
def test_the_gradient_of_a_stiff_problem(method):
    # H. H. Robertson's reaction, 1966: the rates 0.04, 1e4 and 3e7.
    def reaction(t, y, k):
        fast, slow = k[1] * 1e4 * y[1] * y[2], k[2] * 3e7 * y[1] ** 2
        return [fast - k[0] * 0.04 * y[0], k[0] * 0.04 * y[0] - fast - slow, slow]

    def last(k, module=integrate, method=method, tolerance=1e-6):
        options = {"rtol": tolerance, "atol": 1e-4 * tolerance}
        return module.solve_ivp(reaction, (0, 40), [1.0, 0.0, 0.0], method, [40.0], args=(k,), **options).y[:, -1]

    ones = np.ones(3)
    np.testing.assert_allclose(last(rg.tensor(ones)).numpy(), [0.7158271, 9.1855e-6, 0.2841637], rtol=1e-4)
    expected = slopes(lambda k: last(k, scipy.integrate, "Radau", 1e-11), ones, 1e-3)
    np.testing.assert_allclose(jacrev(last)(rg.tensor(ones)).numpy(), expected, rtol=1e-3, atol=1e-8)


# -------------------------------------------------------------------------------------- dense output and events


@pytest.mark.parametrize("method", ["RK45", "BDF"])
def test_dense_output_is_scipys_and_differentiable_in_time(method):
    found = integrate.solve_ivp(predators, (0, 3), START, method, args=(rg.tensor(P),), dense_output=True)
    expected = scipy.integrate.solve_ivp(predators, (0, 3), START, method, args=(P,), dense_output=True)
    t = np.array([0.3, 2.2, 0.0, 3.0])
    np.testing.assert_allclose(found.sol(rg.tensor(t)).numpy(), expected.sol(t), rtol=2e-3)
    assert found.sol(1.5).shape == (2,)
    accurate = integrate.solve_ivp(predators, (0, 3), START, args=(rg.tensor(P),), dense_output=True, **EXACT)
    slope = jacrev(accurate.sol)(rg.tensor(1.3)).numpy()
    np.testing.assert_allclose(slope, np.array(predators(1.3, accurate.sol(1.3).numpy(), P)), rtol=1e-5)


def falling(t, y, g):
    return [y[1], -g]


def ground(t, y, g):
    return y[0]


ground.terminal = True
ground.direction = -1


def test_the_time_of_an_event_and_the_values_there_are_differentiable_to_second_order():
    def impact(g):
        found = integrate.solve_ivp(falling, (0, 9), [0.0, 20.0], events=ground, args=(g,), **EXACT)
        return rg.cat([found.t_events[0], found.y_events[0][0], found.t[-1:], found.y[:, -1]])

    g = rg.tensor(9.81, dtype=rg.float64)
    time, slope = 40 / 9.81, -40 / 9.81**2
    np.testing.assert_allclose(impact(g).numpy(), [time, 0, -20, time, 0, -20], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(jacrev(impact)(g).numpy(), [slope, 0, 0, slope, 0, 0], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(jacfwd(impact)(g).numpy(), [slope, 0, 0, slope, 0, 0], rtol=1e-7, atol=1e-8)
    second = jacfwd(jacrev(lambda g: impact(g)[0]))(g).item()
    assert second == pytest.approx(80 / 9.81**3, rel=1e-6)


def test_events_that_may_differ_between_examples_are_refused():
    def impact(g):
        return integrate.solve_ivp(falling, (0, 9), [0.0, 20.0], events=ground, args=(g,), **EXACT).t_events[0]

    with pytest.raises(NotBatchedError, match="times and the number of events may differ between the examples"):
        vmap(impact)(rg.tensor([9.81, 1.62], dtype=rg.float64))

    def doubled(factor):
        return impact(rg.tensor(9.81, dtype=rg.float64)) * factor

    times = vmap(doubled)(rg.tensor([1.0, 2.0], dtype=rg.float64))
    np.testing.assert_allclose(times.numpy()[:, 0], [40 / 9.81, 80 / 9.81], rtol=1e-8)


def test_all_events_are_found_and_their_own_tensors_have_gradients():
    level = rg.tensor(0.5, dtype=rg.float64, requires_grad=True)
    found = integrate.solve_ivp(
        lambda t, y: [y[1], -y[0]],
        (0, 9),
        [0.0, 1.0],
        events=[lambda t, y: y[0] - level, lambda t, y: y[1] + 7],
        **EXACT,
    )
    expected = np.pi / 6 * np.array([1, 5, 13, 17])
    np.testing.assert_allclose(found.t_events[0].detach().numpy(), expected, rtol=1e-7)
    assert (len(found.t_events[0]), found.t_events[1].shape) == (4, (0,))
    (slope,) = rg.autograd.grad(found.t_events[0][1], level)
    assert slope.item() == pytest.approx(-1 / np.cos(np.pi / 6), rel=1e-6)


# ------------------------------------------------------------------------------------------------ many unknowns


def test_many_unknowns_are_differentiated_by_the_adjoint_equation(monkeypatch):
    def last(p):
        options = {"method": "DOP853", "t_eval": TIMES[2:], "rtol": 1e-7, "atol": 1e-7}
        return integrate.solve_ivp(predators, (0, 3), START, args=(p,), **options).y[:, -1]

    expected = slopes(exact, P)[:, -1]
    monkeypatch.setattr(initial_value, "MANY", 2)
    for jacobian in (jacrev, jacfwd):
        np.testing.assert_allclose(jacobian(last)(rg.tensor(P)).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_refusals_name_the_function():
    with pytest.raises(ValueError, match=r"solve_ivp: y0 must be a vector, got shape \(2, 2\)"):
        integrate.solve_ivp(predators, (0, 1), rg.ones(2, 2), args=(P,))
    with pytest.raises(ValueError, match="solve_ivp: t_span must be a pair of times, got 3 of them"):
        integrate.solve_ivp(predators, (0, 1, 2), rg.ones(2), args=(P,))
    with pytest.raises(TypeError, match="solve_ivp: y0 is complex"):
        integrate.solve_ivp(lambda t, y: y, (0, 1), rg.ones(2) + 1j)
    found = integrate.solve_ivp(lambda t, y: -y, (0, 1), rg.ones(70), dense_output=True)
    with pytest.raises(TypeError, match="solve_ivp: sol is not available from 64 unknowns on"):
        found.sol(0.5)
    with pytest.raises(RuntimeError, match="solve_ivp: Required step size"):
        integrate.solve_ivp(lambda t, y: y * y, (0, 2), rg.ones(1))
