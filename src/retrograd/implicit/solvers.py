"""Solutions of equations and minima, found by the caller's solver and differentiated by the implicit function theorem.

In all functions, `f` gets tensors and may read tensors from `args` and from around it: gradients reach both. The solver
works on plain arrays: the functions that it gets map arrays to arrays. It runs once for each call, and no iteration
is recorded.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.implicit.closures import Closure, as_floats, example_of
from retrograd.implicit.operator import solution
from retrograd.implicit.problems import NO_CONSTRAINTS, Minimum, Problem, Root
from retrograd.interop.numpy_protocol.table import O, tensor


def root(f: Callable, x0: Any, args: tuple = (), *, solver: Callable) -> Tensor:
    """Return x with f(x, *args) = 0, found by `solver(fun, x0)`.

    f: a function that returns a tensor of the shape of x.
    x0: the start, a floating tensor or array of any shape.  The result has its shape and dtype, and no gradient
        reaches it.
    solver: a function that returns the solution as an array, from a function of an array and the start as an array.

    The derivative costs one Jacobian of f and one solution of a system of linear equations of the size of x.  It exists
    to any order, in reverse and forward mode, and under `vmap`, which runs the solver for each example.

    Raises RuntimeError where the Jacobian is singular, and where f reads tensors with gradients that it did not read
    at the start; ValueError for results of another shape; TypeError for a complex start.

    S. G. Krantz and H. R. Parks, The Implicit Function Theorem, 2002.

    >>> import retrograd as rg
    >>> def bisect(fun, x0):
    ...     low, high = x0 - 10, x0 + 10
    ...     for _ in range(60):
    ...         middle = (low + high) / 2
    ...         low, high = (middle, high) if fun(middle) < 0 else (low, middle)
    ...     return low
    >>> a = rg.tensor(8.0, requires_grad=True)
    >>> x = rg.implicit.root(lambda x: x**3 - a, 1.0, solver=bisect)
    >>> rg.autograd.grad(x, a)  # 1 / (3 x²)
    (tensor(0.0833),)
    """
    return _solve_root("root", f, x0, args, solver, 0)


def fixed_point(f: Callable, x0: Any, args: tuple = (), *, solver: Callable) -> Tensor:
    """Return x with f(x, *args) = x, found by `solver(fun, x0)`; see `root`.

    >>> import retrograd as rg
    >>> def repeat(fun, x0):
    ...     for _ in range(100):
    ...         x0 = fun(x0)
    ...     return x0
    >>> a = rg.tensor(2.0, requires_grad=True)
    >>> x = rg.implicit.fixed_point(lambda x: (x + a / x) / 2, 1.0, solver=repeat)
    >>> rg.autograd.grad(x, a)  # 1 / (2 sqrt(a))
    (tensor(0.3536),)
    """
    return _solve_root("fixed_point", f, x0, args, solver, 1)


def _solve_root(name: str, f: Callable, x0: Any, args: tuple, solver: Callable, shift: int) -> Tensor:
    x0 = start_of(name, x0)

    def method(problem: Problem, start: Tensor, tensors: list[Tensor]) -> Tensor:
        return tensor(solver(problem.function(tensors), O.reshape(start, x0.shape).numpy()))

    problem = Root(Closure(name, [f], args, x0), tuple(x0.shape), method, shift)
    return O.reshape(solution(problem, O.reshape(x0, (-1,))), x0.shape)


def argmin(f: Callable, x0: Any, args: tuple = (), *, solver: Callable) -> Tensor:
    """Return a minimum of f(x, *args), a scalar, found by `solver(fun, x0)`; see `root`.

    The derivative is that of the equation grad f = 0, so it needs the Hessian of f at the minimum.

    >>> import retrograd as rg
    >>> from scipy import optimize
    >>> a = rg.tensor([1.0, 2.0], requires_grad=True)
    >>> x = rg.implicit.argmin(
    ...     lambda x: ((x - a**2) ** 2).sum(), [0.0, 0.0], solver=lambda fun, x0: optimize.minimize(fun, x0).x
    ... )
    >>> rg.autograd.grad(x.sum(), a)
    (tensor([2., 4.]),)
    """

    def method(problem: Problem, start: Tensor, tensors: list[Tensor]) -> Tensor:
        return tensor(solver(problem.function(tensors), O.reshape(start, problem.shape).numpy()))

    return minimum("argmin", [f], x0, args, method, NO_CONSTRAINTS).x


class Constrained(NamedTuple):
    """A minimum with constraints, and the multipliers of these: how the minimum changes with their right-hand sides."""

    x: Tensor
    equalities: Tensor
    inequalities: Tensor


def constrained(
    f: Callable, x0: Any, args: tuple = (), *, solver: Callable, equalities: Callable | None = None,
    inequalities: Callable | None = None,
) -> Constrained:  # fmt: skip
    """Return a minimum of f where equalities(x, *args) = 0 and inequalities(x, *args) >= 0, and the multipliers.

    equalities, inequalities: functions that return a vector each, or None.
    solver: a function `solver(fun, x0, equalities, inequalities)` of arrays that returns the minimum as an array.

    The multipliers λ and μ >= 0 satisfy grad f = λ grad equalities + μ grad inequalities.  The derivative is that of
    the conditions of Karush, Kuhn and Tucker; where a constraint holds with equality and has the multiplier 0, it
    does not exist.  Otherwise as `root`.

    >>> import retrograd as rg
    >>> from scipy import optimize
    >>> def solver(fun, x0, equalities, inequalities):
    ...     return optimize.minimize(fun, x0, constraints={"type": "eq", "fun": equalities}).x
    >>> total = rg.tensor(2.0, dtype=rg.float64, requires_grad=True)
    >>> found = rg.implicit.constrained(
    ...     lambda x: (x * x).sum(), [0.0, 0.0], solver=solver, equalities=lambda x: x.sum().reshape(1) - total
    ... )
    >>> found.x.round(decimals=4).tolist(), rg.autograd.grad(found.x[0], total)
    ([1.0, 1.0], (tensor(0.5000, dtype=float64),))
    """
    functions, parts = [f], dict(NO_CONSTRAINTS)
    for name, function in (("equalities", equalities), ("inequalities", inequalities)):
        if function is not None:
            parts[name] = len(functions)
            functions.append(function)

    def method(problem: Problem, start: Tensor, tensors: list[Tensor]) -> Tensor:
        others = [None if index is None else problem.function(tensors, index) for index in list(parts.values())[:2]]
        return tensor(solver(problem.function(tensors), O.reshape(start, problem.shape).numpy(), *others))

    return minimum("constrained", functions, x0, args, method, parts)


def minimum(
    name: str, functions: list[Callable], x0: Any, args: tuple, method: Callable, parts: dict[str, Any]
) -> Constrained:
    """Return the minimum that `method(problem, start, tensors)` finds; `parts` is that of `Minimum`."""
    x0 = start_of(name, x0)
    closure = Closure(name, functions, args, x0)
    example = [example_of(t) for t in closure.tensors]
    counts = [0 if parts[n] is None else closure(parts[n], example_of(x0), example).numel()
              for n in ("equalities", "inequalities")]  # fmt: skip

    def with_multipliers(problem: Minimum, start: Tensor, tensors: list[Tensor]) -> Tensor:
        return problem.with_multipliers(method(problem, problem.split(start)[0], tensors), tensors)

    problem = Minimum(closure, tuple(x0.shape), with_multipliers, parts)
    start = O.cat([O.reshape(x0, (-1,)), O.zeros((sum(counts),), dtype=x0.dtype)], 0)
    x, multipliers = problem.split(solution(problem, start))
    return Constrained(O.reshape(x, x0.shape), multipliers[: counts[0]], multipliers[counts[0] :])


def start_of(name: str, x0: Any) -> Tensor:
    """Return the start as a floating tensor that gets no gradient."""
    x0 = as_floats(x0)
    if x0.dtype.kind == "c":
        raise TypeError(f"{name}: the start is complex; solve for the real and the imaginary part")
    return O.detach(x0)


suggest_in_module(globals())
