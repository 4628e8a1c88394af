"""Minima with and without constraints: published values, derivatives, multipliers, and refusals."""

import numpy as np
import pytest
from scipy import optimize

import retrograd as rg
from retrograd import implicit
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.func import grad, jacrev, jvp, vmap

A = np.array([[3.0, 0.5, 0.2], [0.5, 2.0, 0.1], [0.2, 0.1, 1.5]])
B = np.array([1.0, -2.0, 0.5])


def newton(fun, x0):
    for _ in range(3):
        x0 = x0 - np.linalg.solve(rg.hessian(fun)(x0), rg.grad(fun)(x0))
    return x0


def sequential(fun, x0, equalities, inequalities):
    pairs = (("eq", equalities), ("ineq", inequalities))
    constraints = [{"type": kind, "fun": f, "jac": rg.jacobian(f)} for kind, f in pairs if f is not None]
    options = {"constraints": constraints, "method": "SLSQP", "options": {"ftol": 1e-14}}
    return optimize.minimize(lambda x: float(fun(x)), x0, jac=rg.grad(fun), **options).x


def tensors(*arrays):
    return [rg.tensor(a, requires_grad=True) for a in arrays]


def quadratic(a, b):
    return implicit.argmin(lambda x: 0.5 * x @ a @ x - b @ x, np.zeros(3), solver=newton)


def test_the_minimum_of_a_quadratic_function_is_the_solution_of_a_system_in_all_its_derivatives():
    exact = np.linalg.inv(A)
    found = jacrev(lambda b: quadratic(rg.tensor(A), b))(rg.tensor(B))
    np.testing.assert_allclose(found.numpy(), exact, rtol=1e-8)
    assert gradcheck(lambda a, b: quadratic(a + a.mT, b), tensors(A, B), atol=1e-5)
    assert gradgradcheck(lambda a, b: quadratic(a + a.mT, b), tensors(A, B), atol=1e-5)


def test_a_batch_of_minima_is_a_loop():
    batch = rg.tensor(np.stack([B, 2 * B]))
    found = vmap(lambda b: quadratic(rg.tensor(A), b))(batch)
    np.testing.assert_allclose(found.numpy(), np.linalg.solve(A, batch.numpy().T).T, rtol=1e-7)


def on_the_simplex(target):
    """Return the point of the simplex next to a target."""
    return implicit.constrained(
        lambda x: (x - target).square().sum(), np.full(3, 1 / 3), solver=sequential,
        equalities=lambda x: x.sum().reshape(1) - 1, inequalities=lambda x: x,
    )  # fmt: skip


def test_the_projection_onto_the_simplex_and_its_derivative_are_those_of_the_active_constraints():
    target = np.array([0.9, 0.5, -0.7])
    found = on_the_simplex(rg.tensor(target))
    np.testing.assert_allclose(found.x.numpy(), [0.7, 0.3, 0.0], atol=1e-8)
    np.testing.assert_allclose(found.equalities.numpy(), [-0.4], atol=1e-7)
    np.testing.assert_allclose(found.inequalities.numpy(), [0, 0, 1.8], atol=1e-7)
    exact = np.array([[0.5, -0.5, 0], [-0.5, 0.5, 0], [0, 0, 0]])
    np.testing.assert_allclose(jacrev(lambda t: on_the_simplex(t).x)(rg.tensor(target)).numpy(), exact, atol=1e-8)
    _, along = jvp(lambda t: on_the_simplex(t).x, (rg.tensor(target),), (rg.tensor([1.0, 2.0, 3.0]).double(),))
    np.testing.assert_allclose(along.numpy(), exact @ [1, 2, 3], atol=1e-8)


def test_multipliers_are_the_derivative_of_the_minimum_by_the_right_hand_side():
    def value(total):
        found = implicit.constrained(
            lambda x: (x**4).sum() + x[0] * x[1], np.array([1.0, 2.0, 3.0]), solver=sequential,
            equalities=lambda x: x.sum().reshape(1) - total,
        )  # fmt: skip
        return (found.x**4).sum() + found.x[0] * found.x[1], found.equalities[0]

    total = rg.tensor(6.0, dtype=rg.float64)
    slope = grad(lambda t: value(t)[0])(total)
    assert slope.item() == pytest.approx(value(total)[1].item(), rel=1e-6)


def test_second_derivatives_of_a_constrained_minimum():
    def circle(p):
        return implicit.constrained(
            lambda x: (x * p).sum(), np.array([-0.6, -0.8]), solver=sequential,
            equalities=lambda x: (x * x).sum().reshape(1) - 1,
        ).x  # fmt: skip

    (p,) = tensors(np.array([0.6, 1.1]))
    exact = -p.detach().numpy() / np.linalg.norm(p.detach().numpy())
    np.testing.assert_allclose(circle(p).detach().numpy(), exact, rtol=1e-7)
    ours, known = (jacrev(jacrev(f))(p.detach()) for f in (circle, lambda p: -p / p.norm()))
    np.testing.assert_allclose(ours.numpy(), known.numpy(), atol=1e-6)


def test_fixed_points_pass_gradcheck_to_second_order():
    def repeat(fun, x0):
        for _ in range(200):
            x0 = fun(x0)
        return x0

    def f(w, u):
        return implicit.fixed_point(lambda z: rg.tanh(w @ z + u), np.zeros(3), solver=repeat)

    given = tensors(0.2 * A, B)
    assert gradcheck(f, given, check_forward_ad=True)
    assert gradgradcheck(f, given)


def test_a_singular_jacobian_is_an_error_that_names_it():
    p = rg.tensor(0.0, dtype=rg.float64, requires_grad=True)
    x = implicit.root(lambda x: x**2 - p, 0.0, solver=lambda fun, x0: x0)
    with pytest.raises(RuntimeError, match="root: the Jacobian of the equations is singular at the solution"):
        x.backward()


def test_wrong_functions_and_starts_are_refused():
    p = rg.ones(3, requires_grad=True)
    x = implicit.root(lambda x: (x * p).sum(), np.ones(3), solver=lambda fun, x0: x0)
    with pytest.raises(ValueError, match=r"root: the function must return the shape of x, \(3,\), got \(\)"):
        x.sum().backward()
    with pytest.raises(TypeError, match="argmin: the start is complex"):
        implicit.argmin(lambda x: x, np.ones(3) + 1j, solver=newton)


def test_the_solution_has_the_dtype_and_shape_of_the_start():
    x = implicit.root(lambda x: x - 2, np.zeros((2, 2), np.float32), solver=lambda fun, x0: x0 + 2)
    assert (x.dtype, x.shape) == (rg.float32, (2, 2))


def test_a_start_of_integers_is_in_double_precision():
    assert implicit.root(lambda x: x - 2.5, 0, solver=lambda fun, x0: x0 + 2.5).dtype == rg.float64
