"""Bounds and constraints of SciPy, as functions of tensors."""

from math import inf

from retrograd.func.autograd_api import hessian_vector_product, jacobian
from retrograd.func.sparse import hessian_sparsity, jacobian_sparsity, sparse_hessian, sparse_jacobian
from retrograd.interop.numpy_protocol.table import O, cast, tensor, values
from retrograd.scipy._mirror import scipy_member


def bounds_of(name, bounds, x0):
    """Return the low and the high bounds, tensors of the shape of x0; None for none.

    `bounds` are a pair (low, high), or SciPy's `Bounds`.
    """
    if bounds is None:
        return None
    low, high = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    low, high = (O.expand(cast(tensor(b), x0.dtype), x0.shape) for b in (low, high))
    if bool((O.detach(low) > O.detach(high)).any()):
        raise ValueError(f"optimize.{name}: a lower bound is above its upper bound")
    return low, high


def bounds_of_pairs(name, bounds, x0):
    """Return `bounds_of` for a sequence of pairs (low, high), where None is no bound."""
    if bounds is None or hasattr(bounds, "lb"):
        return bounds_of(name, bounds, x0)
    pairs = [(tensor(-inf if low is None else low), tensor(inf if high is None else high)) for low, high in bounds]
    if len(pairs) != x0.numel():
        raise ValueError(f"optimize.{name}: {len(pairs)} pairs of bounds for {x0.numel()} unknowns")
    columns = [O.stack([cast(O.reshape(b, ()), x0.dtype) for b in column]) for column in zip(*pairs, strict=True)]
    return bounds_of(name, columns, x0)


def constraint_functions(constraints):
    """Return functions of (x, *args): those that are 0, and those that are at least 0; each list may be empty."""
    single = isinstance(constraints, dict) or hasattr(constraints, "lb")
    equalities, inequalities = [], []
    for given in (constraints,) if single else constraints:
        if isinstance(given, dict):
            _add_from_dict(given, equalities, inequalities)
        else:
            _add_from_object(given, equalities, inequalities)
    return equalities, inequalities


def _add_from_dict(given, equalities, inequalities):
    known = {"eq": equalities, "ineq": inequalities}
    if given["type"] not in known:
        raise ValueError(f"optimize.minimize: a constraint is of type 'eq' or 'ineq', got {given['type']!r}")
    own = tuple(given.get("args", ()))
    known[given["type"]].append(lambda x, *args: given["fun"](x, *own))


def _add_from_object(given, equalities, inequalities):
    """Add SciPy's LinearConstraint or NonlinearConstraint, low <= function <= high."""
    function = (lambda x: tensor(given.A) @ x) if hasattr(given, "A") else given.fun
    low, high = tensor(given.lb), tensor(given.ub)
    same = values(low) == values(high)
    if same.all():
        equalities.append(lambda x, *args: tensor(function(x)) - low)
    elif same.any():
        raise ValueError(
            "optimize.minimize: a constraint has bounds that are equal, and others that are not; make two of it"
        )
    else:
        if (values(low) > -inf).any():
            inequalities.append(lambda x, *args: _where_finite(tensor(function(x)) - low))
        if (values(high) < inf).any():
            inequalities.append(lambda x, *args: _where_finite(high - tensor(function(x))))


def _where_finite(slack):
    """Return slacks; those of no bound are 1, so that they never hold x."""
    return O.where(O.isinf(slack), 1.0, slack)


def joined(functions):
    """Return the function of all their results in one vector; None for no functions."""
    if not functions:
        return None
    return lambda x, *args: O.cat([O.reshape(tensor(f(x, *args)), (-1,)) for f in functions], 0)


def to_scipy(problem, tensors, parts):
    """Return the constraints of a problem on arrays as SciPy's dicts, with their Jacobians."""
    return [{"type": kind, "fun": f, "jac": jacobian(f)} for kind, f in _functions_of(problem, tensors, parts)]


def to_nonlinear(problem, tensors, parts, start, sparse):
    """Return the constraints as SciPy's NonlinearConstraint, with Jacobians and Hessians, of sparse arrays if asked."""
    make, found = scipy_member("scipy.optimize").NonlinearConstraint, []
    for kind, f in _functions_of(problem, tensors, parts):
        high = 0.0 if kind == "eq" else inf
        weighted = _weighted_sum(f)
        if sparse:
            derivative = sparse_jacobian(f, sparsity=jacobian_sparsity(f)(start))
            second = sparse_hessian(weighted, sparsity=hessian_sparsity(weighted)(start, f(start)))
        else:
            derivative, second = jacobian(f), _hessian_products(weighted)
        found.append(make(f, 0.0, high, jac=derivative, hess=second))
    return found


def _functions_of(problem, tensors, parts):
    names = (("eq", "equalities"), ("ineq", "inequalities"))
    return [(kind, problem.function(tensors, parts[name])) for kind, name in names if parts[name] is not None]


def _weighted_sum(f):
    return lambda x, weights: (tensor(weights) * f(x)).sum()


def _hessian_products(weighted):
    """Return the function of (x, weights) for the Hessian, as a LinearOperator."""
    product, operator = hessian_vector_product(weighted), scipy_member("scipy.sparse.linalg").LinearOperator

    def hess(x, weights):
        return operator((x.size, x.size), matvec=lambda p: product(x, weights, p.reshape(x.shape)), dtype=x.dtype)

    return hess


def scipy_bounds(problem, start, tensors):
    """Return a problem's bounds as SciPy's `Bounds`."""
    low, high = problem.bounds(start, tensors)
    return scipy_member("scipy.optimize").Bounds(low.numpy(), high.numpy())
