"""`scipy.optimize`: minima, roots and fits that are differentiable in the tensors that their functions read.

The functions get tensors, and SciPy gets gradients, Jacobians and products with Hessians from them. Solutions are
tensors; their derivatives are those of the equations that they solve (`retrograd.implicit`), not of the iterations.
"""

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.interop.numpy_protocol.table import holds_tensor
from retrograd.scipy._mirror import fallback_members, scipy_member
from retrograd.scipy.optimize.fits import curve_fit, least_squares
from retrograd.scipy.optimize.linear import linprog, lsq_linear, nnls
from retrograd.scipy.optimize.minima import minimize, minimize_scalar
from retrograd.scipy.optimize.roots import fixed_point, fsolve, root
from retrograd.scipy.optimize.rosenbrock import rosen, rosen_der, rosen_hess, rosen_hess_prod
from retrograd.scipy.optimize.scalar_roots import (
    bisect,
    brenth,
    brentq,
    newton,
    ridder,
    root_scalar,
    toms748,
)

__all__ = [
    "bisect",
    "brenth",
    "brentq",
    "curve_fit",
    "fixed_point",
    "fsolve",
    "least_squares",
    "linear_sum_assignment",
    "linprog",
    "lsq_linear",
    "milp",
    "minimize",
    "minimize_scalar",
    "newton",
    "nnls",
    "ridder",
    "root",
    "root_scalar",
    "rosen",
    "rosen_der",
    "rosen_hess",
    "rosen_hess_prod",
    "toms748",
]


def linear_sum_assignment(cost_matrix, maximize=False):
    """Return SciPy's assignment of the lowest cost; a matrix that is a tensor is refused."""
    _refuse_tensors("linear_sum_assignment", "assignment", cost_matrix)
    return scipy_member("scipy.optimize").linear_sum_assignment(cost_matrix, maximize)


def milp(c, *, integrality=None, bounds=None, constraints=None, options=None):
    """Return SciPy's solution of a mixed-integer linear program; tensors are refused."""
    _refuse_tensors("milp", "integer solution", (c, integrality))
    given = {"integrality": integrality, "bounds": bounds, "constraints": constraints, "options": options}
    return scipy_member("scipy.optimize").milp(c, **given)


def _refuse_tensors(name, result, given):
    if holds_tensor((given,)):
        raise TypeError(
            f"optimize.{name}: the {result} is constant between jumps, so it has no useful derivative; pass arrays, "
            f"x.detach().numpy(), and index the tensor with the result"
        )


suggest_in_module(globals())

__getattr__, __dir__ = fallback_members("scipy.optimize")
