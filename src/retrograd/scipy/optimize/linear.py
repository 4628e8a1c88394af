"""`nnls`, `lsq_linear` and `linprog`: minima of linear problems, whose data may be tensors."""

from math import inf

from retrograd.implicit.closures import as_floats
from retrograd.implicit.problems import NO_CONSTRAINTS
from retrograd.implicit.solvers import minimum
from retrograd.interop.numpy_protocol.table import O, promote_operands, tensor, values
from retrograd.scipy._array_like import ArrayOrSequence
from retrograd.scipy._mirror import on_tensors, scipy_member
from retrograd.scipy.optimize.constraints import bounds_of, bounds_of_pairs
from retrograd.scipy.optimize.results import Runs

_optimize = on_tensors("scipy.optimize")


@_optimize
def nnls(A: ArrayOrSequence, b: ArrayOrSequence, **options):
    """Return the x >= 0 with the least norm of A x - b, and that norm, as tensors.

    Both are differentiable in A and b to any order, except where an element of x is 0 and could as well grow.

    >>> import retrograd as rg
    >>> b = rg.tensor([1.0, -1.0], dtype=rg.float64, requires_grad=True)
    >>> x, norm = nnls(rg.eye(2), b)
    >>> rg.autograd.grad(x.sum(), b)
    (tensor([1., -0.], dtype=float64),)
    """
    A, b = _system("nnls", A, b)
    zeros = O.zeros((A.shape[1],), dtype=b.dtype)

    def solve(A, b, *_):
        return scipy_member("scipy.optimize").nnls(A, b, **options)[0]

    x = _bounded("nnls", A, b, (zeros, zeros + inf), solve)
    return x, O.linalg.vector_norm(A @ x - b)


def _system(name, A, b):
    A, b = promote_operands(as_floats(A), as_floats(b))
    if A.ndim != 2:
        raise ValueError(f"optimize.{name}: A must be a matrix, got shape {tuple(A.shape)}")
    return A, b


def _bounded(name, A, b, limits, solve):
    functions = [
        lambda x, A, b: 0.5 * O.sum(O.square(A @ x - b)), lambda x, A, b: O.stack(list(limits)),
    ]  # fmt: skip

    def run(problem, start, tensors):
        return tensor(solve(*[t.numpy() for t in (*tensors[:2], *problem.bounds(start, tensors))]))

    start = O.zeros((A.shape[1],), dtype=b.dtype)
    return minimum(f"optimize.{name}", functions, start, (A, b), run, NO_CONSTRAINTS | {"bounds": 1}).x


@_optimize
def lsq_linear(A: ArrayOrSequence, b: ArrayOrSequence, bounds=(-inf, inf), **options):
    """Return SciPy's result for the x within bounds with the least norm of A x - b, with tensors as `x`, `fun`, `cost`.

    `x` is differentiable in A, b and the bounds to any order, except where a bound just reaches x.

    >>> import retrograd as rg
    >>> b = rg.tensor([1.0, 3.0], dtype=rg.float64, requires_grad=True)
    >>> found = lsq_linear(rg.eye(2), b, (0, 2))
    >>> rg.autograd.grad(found.x.sum(), b)
    (tensor([1., -0.], dtype=float64),)
    """
    A, b = _system("lsq_linear", A, b)
    limits = bounds_of("lsq_linear", bounds, O.zeros((A.shape[1],), dtype=b.dtype))
    runs = Runs()

    def solve(A, b, low, high):
        runs.add(scipy_member("scipy.optimize").lsq_linear(A, b, (low, high), **options))
        return runs.results[-1].x

    x = _bounded("lsq_linear", A, b, limits, solve)
    residual = A @ x - b
    return runs.result(x=x, fun=residual, cost=0.5 * O.sum(O.square(residual)))


@_optimize
def linprog(
    c: ArrayOrSequence, A_ub=None, b_ub=None, A_eq=None, b_eq=None, bounds=(0, None), method="highs", integrality=None,
    **options,
):  # fmt: skip
    """Return SciPy's result for the least c x with A_ub x <= b_ub and A_eq x = b_eq, with tensors as its `x` and `fun`.

    The solution is a vertex: it is differentiable in all matrices, right-hand sides and bounds, and its derivative by
    c is 0 except where the vertex changes.  Where more constraints than unknowns hold it, there is no derivative and
    the backward pass is a RuntimeError.  Integer solutions are refused.

    >>> import retrograd as rg
    >>> b = rg.tensor([4.0], dtype=rg.float64, requires_grad=True)
    >>> found = linprog([-1.0, -2.0], [[1.0, 1.0]], b)
    >>> found.x.tolist(), rg.autograd.grad(found.fun, b)  # the shadow price
    ([0.0, 4.0], (tensor([-2.], dtype=float64),))
    """
    if integrality is not None and values(tensor(integrality)).any():
        raise TypeError("optimize.linprog: an integer solution has no derivative; pass arrays or leave out integrality")
    c = as_floats(c)
    matrices = [None if m is None else as_floats(m) for m in (A_ub, b_ub, A_eq, b_eq)]
    start = O.zeros_like(c)
    limits = _limits(bounds, start)
    functions, parts = _linear_functions(matrices, limits)
    runs = Runs()

    def run(problem, start, tensors):
        plain = iter([t.numpy() for t in tensors])
        given = [None if m is None else next(plain) for m in (c, *matrices)]
        low, high = problem.bounds(start, tensors)
        pairs = O.stack([low, high], 1).numpy()
        found = scipy_member("scipy.optimize").linprog(*given, pairs, method, **options)
        if found.x is None:
            raise RuntimeError(f"optimize.linprog: {found.message}")
        runs.add(found)
        return tensor(found.x)

    x = minimum("optimize.linprog", functions, start, (c, *matrices), run, parts).x
    return runs.result(x=x, fun=O.sum(c * x))


def _limits(bounds, start):
    """Return bounds from SciPy's one pair for all unknowns, or from one pair for each."""
    bounds = (0, None) if bounds is None else bounds
    single = len(bounds) == 2 and not any(isinstance(b, (tuple, list)) for b in bounds) and _is_pair_of_numbers(bounds)
    return bounds_of_pairs("linprog", [tuple(bounds)] * start.numel() if single else bounds, start)


def _is_pair_of_numbers(bounds):
    """Return whether the two entries are single numbers or None."""
    return all(b is None or not getattr(b, "ndim", 0) for b in bounds)


def _linear_functions(matrices, limits):
    functions, parts = [lambda x, c, *rest: O.sum(c * x)], dict(NO_CONSTRAINTS)
    if matrices[0] is not None:
        parts["inequalities"] = len(functions)
        functions.append(lambda x, c, A_ub, b_ub, *rest: b_ub - A_ub @ x)
    if matrices[2] is not None:
        parts["equalities"] = len(functions)
        functions.append(lambda x, c, A_ub, b_ub, A_eq, b_eq: A_eq @ x - b_eq)
    parts["bounds"] = len(functions)
    functions.append(lambda x, *rest: O.stack(list(limits)))
    return functions, parts
