"""scipy.optimize accepts values, gradients and Hessian products of retrograd without conversion."""

import numpy as np
import pytest
from scipy import optimize

import retrograd as rg
from retrograd import numpy as rnp


def rosenbrock(x):
    return rnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


START = np.array([1.3, 0.7, 0.8, 1.9])


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "CG", "SLSQP"])
def test_methods_that_need_gradients_take_both_at_once(method):
    found = optimize.minimize(rg.value_and_grad(rosenbrock), START, jac=True, method=method)
    assert found.success
    np.testing.assert_allclose(found.x, 1, atol=1e-3)


@pytest.mark.parametrize("method", ["Newton-CG", "trust-ncg", "trust-krylov"])
def test_methods_of_second_order_take_products_with_the_hessian(method):
    hvp = rg.hessian_vector_product(rosenbrock)
    found = optimize.minimize(rg.value_and_grad(rosenbrock), START, jac=True, hessp=hvp, method=method)
    assert found.success
    np.testing.assert_allclose(found.x, 1, atol=1e-4)


@pytest.mark.parametrize("method", ["trust-exact", "dogleg"])
def test_methods_that_need_the_hessian_take_it(method):
    start = np.array([0.8, 0.6])  # where the Hessian is positive definite
    options = {"jac": True, "hess": rg.hessian(rosenbrock), "method": method}
    np.testing.assert_allclose(optimize.minimize(rg.value_and_grad(rosenbrock), start, **options).x, 1, atol=1e-4)


def test_roots_and_residuals_take_jacobians():
    def residuals(p):
        return p[0] * rnp.exp(-p[1] * np.arange(5.0)) - 2 * np.exp(-0.5 * np.arange(5.0))

    jacobian = rg.jacobian(residuals)
    np.testing.assert_allclose(optimize.least_squares(residuals, [1.0, 1.0], jacobian).x, [2, 0.5], rtol=1e-6)
    assert optimize.check_grad(rosenbrock, rg.grad(rosenbrock), START) < 1e-3
