"""Rosenbrock's function and its derivatives, on which optimizers are tried."""

from retrograd.func import grad, hessian, jvp
from retrograd.interop.numpy_protocol.table import O, as_floating, promote_operands
from retrograd.scipy._mirror import on_tensors

_optimize = on_tensors("scipy.optimize")


@_optimize
def rosen(x):
    """Return the sum of 100 (x[i + 1] - x[i]^2)^2 + (1 - x[i])^2 along the first axis."""
    x = as_floating(x)
    return O.sum(100 * O.square(x[1:] - O.square(x[:-1])) + O.square(1 - x[:-1]), 0)


@_optimize
def rosen_der(x):
    """Return the gradient of `rosen`, of the shape of x."""
    return grad(lambda x: O.sum(rosen(x)))(as_floating(x))


@_optimize
def rosen_hess(x):
    """Return the Hessian of `rosen` at a vector."""
    return hessian(rosen)(as_floating(x))


@_optimize
def rosen_hess_prod(x, p):
    """Return the product of the Hessian of `rosen` at a vector with the vector p."""
    x, p = promote_operands(as_floating(x), as_floating(p))
    return jvp(grad(rosen), (x,), (p,))[1]
