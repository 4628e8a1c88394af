"""`minimize` and `minimize_scalar`."""

from collections.abc import Callable

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func.autograd_api import hessian, hessian_vector_product, value_and_grad
from retrograd.func.sparse import hessian_sparsity, sparse_hessian
from retrograd.implicit.problems import NO_CONSTRAINTS
from retrograd.implicit.solvers import minimum, start_of
from retrograd.interop.numpy_protocol.table import O, tensor, values
from retrograd.scipy._array_like import ArrayLike
from retrograd.scipy._mirror import on_arrays, scipy_member
from retrograd.scipy.optimize.constraints import (
    bounds_of,
    bounds_of_pairs,
    constraint_functions,
    joined,
    scipy_bounds,
    to_nonlinear,
    to_scipy,
)
from retrograd.scipy.optimize.results import Runs

_WITHOUT_GRADIENT = ("nelder-mead", "powell", "cobyla", "cobyqa")
_WITH_PRODUCTS = ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr")
_WITH_HESSIAN = ("dogleg", "trust-exact")


def minimize(
    fun: Callable, x0: ArrayLike, args=(), method=None, jac=None, hess=None, hessp=None, bounds=None,
    constraints=(), tol=None, callback=None, options=None,
):  # fmt: skip
    """Return SciPy's result for the minimum of fun(x, *args), with tensors as its `x` and `fun`.

    `fun` gets tensors and returns a scalar.  SciPy gets its gradient, and for the methods that use them products with
    its Hessian, or the Hessian: jac, hess and hessp need not be given, and are used where they are functions.  With
    jac=True the gradient that `fun` returns is ignored.  x0 is a vector, and no gradient reaches it.

    "trust-constr" gets the Hessians of the constraints too.  With its option `sparse_jacobian=True` all Jacobians and
    Hessians are sparse, by `func.sparse_jacobian` and `func.sparse_hessian`.  Their patterns are found at x0, so the
    functions must take the same branches everywhere.

    `x` is differentiable to any order in the tensors in `args`, in `bounds` and in those that `fun` and the
    constraints read.  Its derivative is that of the conditions of Karush, Kuhn and Tucker at `x`: it is as accurate
    as `x`, and meaningless unless `success` is true.  Where a bound or a constraint holds `x`, and its multiplier is
    0, it does not exist.

    Under `vmap` each example is minimized by itself, `success` is that of all, and further fields are the last one's.

    After `scipy.optimize.minimize`.

    >>> import retrograd as rg
    >>> a = rg.tensor(3.0, requires_grad=True)
    >>> found = minimize(lambda x: (x[0] - a) ** 2 + (x[1] - x[0] ** 2) ** 2, [0.0, 0.0])
    >>> rg.autograd.grad(found.x[1], a)  # x[1] = a²
    (tensor(6.0000),)
    """
    x0 = _vector(x0)
    args = args if isinstance(args, tuple) else (args,)
    function = (lambda x, *given: fun(x, *given)[0]) if jac is True else fun
    limits = bounds_of_pairs("minimize", bounds, x0)
    equalities, inequalities = (joined(functions) for functions in constraint_functions(constraints))
    functions, parts = _functions(function, equalities, inequalities, limits)
    runs = Runs()

    def run(problem, start, tensors):
        value = problem.function(tensors)
        name = method.lower() if isinstance(method, str) else ""
        sparse = name == "trust-constr" and bool((options or {}).get("sparse_jacobian"))
        derivatives = _derivatives(value, name, jac, hess, hessp, args, start.numpy() if sparse else None)
        given = {"tol": tol, "callback": callback, "options": options, "method": method, **derivatives}
        if limits is not None:
            given["bounds"] = scipy_bounds(problem, start, tensors)
        if equalities or inequalities:
            if name == "trust-constr":
                given["constraints"] = to_nonlinear(problem, tensors, parts, start.numpy(), sparse)
            else:
                given["constraints"] = to_scipy(problem, tensors, parts)
        first = given.pop("fun", lambda x: value(x).item())
        found = scipy_member("scipy.optimize").minimize(first, start.numpy(), **given)
        runs.add(found)
        return tensor(found.x)

    x = minimum("optimize.minimize", functions, x0, args, run, parts).x
    return runs.result(x=x, fun=tensor(function(x, *args)))


def _vector(x0):
    x0 = start_of("optimize.minimize", x0)
    if x0.ndim > 1:
        raise ValueError(f"optimize.minimize: x0 must be a vector, got shape {x0.shape}")
    return O.reshape(x0, (-1,))


def _functions(function, equalities, inequalities, limits):
    """Return the functions of a problem, and the index of each part among them."""
    functions, parts = [function], dict(NO_CONSTRAINTS)
    bounds = None if limits is None else lambda x, *args: O.stack(list(limits))
    for name, part in (("equalities", equalities), ("inequalities", inequalities), ("bounds", bounds)):
        if part is not None:
            parts[name] = len(functions)
            functions.append(part)
    return functions, parts


def _derivatives(value, name, jac, hess, hessp, args, sparse_at):
    """Return the arguments of SciPy's `minimize` about derivatives: the caller's functions, or ours.

    sparse_at: where the pattern of a sparse Hessian is found; None for products.
    """
    given = {}
    if callable(jac):
        given["jac"] = on_arrays(jac, args)
    elif isinstance(jac, str):
        given["jac"] = jac
    elif name not in _WITHOUT_GRADIENT:
        given |= {"fun": _value_and_gradient(value), "jac": True}
    if hess is not None or hessp is not None:
        given |= {k: f if not callable(f) else on_arrays(f, args) for k, f in (("hess", hess), ("hessp", hessp)) if f}
    elif sparse_at is not None:
        given["hess"] = sparse_hessian(value, sparsity=hessian_sparsity(value)(sparse_at))
    elif name in _WITH_PRODUCTS:
        given["hessp"] = hessian_vector_product(value)
    elif name in _WITH_HESSIAN:
        given["hess"] = hessian(value)
    return given


def _value_and_gradient(value):
    both = value_and_grad(value)

    def of_array(x):
        out, slope = both(x)
        return out.item(), slope

    return of_array


def minimize_scalar(fun: Callable, bracket=None, bounds=None, args=(), method=None, tol=None, options=None):
    """Return SciPy's result for the minimum of fun(x, *args) of one number, with tensors as its `x` and `fun`.

    `fun` gets a tensor without dimensions.  `x` is differentiable as that of `minimize`.

    >>> import retrograd as rg
    >>> a = rg.tensor(3.0, requires_grad=True)
    >>> rg.autograd.grad(minimize_scalar(lambda x: (x - a**2) ** 2).x, a)
    (tensor(6.),)
    """
    args = args if isinstance(args, tuple) else (args,)
    points = bounds if bounds is not None else bracket if bracket is not None else (0.0,)
    x0 = start_of("optimize.minimize_scalar", values(tensor(points[0])) + 0.0)
    limits = bounds_of("minimize_scalar", bounds, x0)
    functions, parts = _functions(fun, None, None, limits)
    runs = Runs()

    def run(problem, start, tensors):
        value = problem.function(tensors)
        given = {"bracket": None if bracket is None else [values(tensor(b)).item() for b in bracket]}
        if limits is not None:
            given = {"bounds": [b.item() for b in problem.bounds(start, tensors)]}
        solver = scipy_member("scipy.optimize").minimize_scalar
        found = solver(lambda x: value(x).item(), **given, method=method, tol=tol, options=options)
        runs.add(found)
        return tensor(found.x)

    x = minimum("optimize.minimize_scalar", functions, x0, args, run, parts).x
    return runs.result(x=x, fun=tensor(fun(x, *args)))


suggest_in_module(globals())
