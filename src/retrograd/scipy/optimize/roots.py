"""`root`, `fsolve` and `fixed_point`: systems of equations."""

from collections.abc import Callable

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func.autograd_api import jacobian
from retrograd.implicit.closures import Closure
from retrograd.implicit.operator import solution
from retrograd.implicit.problems import Root
from retrograd.implicit.solvers import start_of
from retrograd.interop.numpy_protocol.table import O, tensor
from retrograd.scipy._array_like import ArrayLike
from retrograd.scipy._mirror import on_arrays, scipy_member
from retrograd.scipy.optimize.results import Runs

_WITH_JACOBIAN = ("hybr", "lm")


def find_root(name, fun, x0, args, method, shift=0):
    """Return the root, or for shift=1 the fixed point, that `method(function of arrays, start)` finds."""
    x0 = start_of(name, x0)
    args = args if isinstance(args, tuple) else (args,)

    def run(problem, start, tensors):
        return tensor(method(problem.function(tensors), O.reshape(start, x0.shape).numpy()))

    problem = Root(Closure(name, [fun], args, x0), tuple(x0.shape), run, shift)
    return O.reshape(solution(problem, O.reshape(x0, (-1,))), x0.shape)


def root(fun: Callable, x0: ArrayLike, args=(), method="hybr", jac=None, tol=None, callback=None, options=None):
    """Return SciPy's result for a root of fun(x, *args), with tensors as its `x` and `fun`.

    `fun` gets tensors and returns a tensor of the shape of x; SciPy gets its Jacobian for the methods that use it.
    jac may be a function that is used in its place; with jac=True the Jacobian that `fun` returns is ignored.  `x` is
    differentiable in the tensors in `args` and in those that `fun` reads, to any order, as that of
    `retrograd.implicit.root`; no gradient reaches x0.

    >>> import retrograd as rg
    >>> a = rg.tensor([4.0, 9.0], requires_grad=True)
    >>> found = root(lambda x: x * x - a, [1.0, 1.0])
    >>> rg.autograd.grad(found.x.sum(), a)
    (tensor([0.2500, 0.1667]),)
    """
    function = (lambda x, *given: fun(x, *given)[0]) if jac is True else fun
    runs = Runs()
    args = args if isinstance(args, tuple) else (args,)

    def run(f, start):
        given = {"method": method, "tol": tol, "callback": callback, "options": options}
        if callable(jac):
            given["jac"] = on_arrays(jac, args)
        elif method in _WITH_JACOBIAN:
            given["jac"] = jacobian(f)
        found = scipy_member("scipy.optimize").root(f, start, **given)
        runs.add(found)
        return found.x

    x = find_root("optimize.root", function, O.reshape(tensor(x0), (-1,)), args, run)
    return runs.result(x=x, fun=tensor(function(x, *args)))


def fsolve(func: Callable, x0: ArrayLike, args=(), fprime=None, full_output=0, col_deriv=0, xtol=1.49012e-08, **kwargs):
    """Return a root of func(x, *args) as a tensor, differentiable as that of `root`.

    With full_output the result is (x, infodict, ier, mesg), as SciPy's.

    >>> import retrograd as rg
    >>> a = rg.tensor(4.0, requires_grad=True)
    >>> rg.autograd.grad(fsolve(lambda x: x * x - a, [1.0])[0], a)
    (tensor(0.2500),)
    """
    details: list = []

    def run(f, start):
        slope = jacobian(f) if fprime is None else on_arrays(fprime, args)
        given = {"full_output": 1, "col_deriv": col_deriv if fprime else 0, "xtol": xtol, **kwargs}
        x, *rest = scipy_member("scipy.optimize").fsolve(f, start, fprime=slope, **given)
        details[:] = rest
        if not full_output and rest[1] != 1:
            raise RuntimeError(f"optimize.fsolve: {rest[2]}")
        return x

    x = find_root("optimize.fsolve", func, O.reshape(tensor(x0), (-1,)), args, run)
    return (x, *details) if full_output else x


def fixed_point(func: Callable, x0: ArrayLike, args=(), xtol=1e-08, maxiter=500, method="del2"):
    """Return x with func(x, *args) = x as a tensor, differentiable as that of `root`.

    >>> import retrograd as rg
    >>> a = rg.tensor(2.0, requires_grad=True)
    >>> rg.autograd.grad(fixed_point(lambda x: (x + a / x) / 2, 1.0), a)
    (tensor(0.3536),)
    """

    def run(f, start):
        return scipy_member("scipy.optimize").fixed_point(f, start, xtol=xtol, maxiter=maxiter, method=method)

    return find_root("optimize.fixed_point", func, x0, args, run, 1)


suggest_in_module(globals())
