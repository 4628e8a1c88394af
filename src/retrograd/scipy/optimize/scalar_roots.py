"""Roots of functions of one number: `root_scalar`, and SciPy's functions for single methods."""

from collections.abc import Callable

from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func.autograd_api import elementwise_grad, grad
from retrograd.interop.numpy_protocol.table import tensor, values
from retrograd.scipy._array_like import ArrayLike
from retrograd.scipy._mirror import scipy_member
from retrograd.scipy.optimize.roots import find_root


def root_scalar(
    f: Callable, args=(), method=None, bracket=None, fprime=None, fprime2=None, x0=None, x1=None, xtol=None, rtol=None,
    maxiter=None, options=None,
):  # fmt: skip
    """Return SciPy's result for a root of f(x, *args) of one number, with a tensor as its `root`.

    `f` gets a tensor without dimensions.  Newton's and Halley's method get its derivatives, unless fprime and fprime2
    are given.  The root is differentiable in the tensors in `args` and in those that `f` reads, to any order; no
    gradient reaches the bracket and the start.

    >>> import retrograd as rg
    >>> a = rg.tensor(8.0, requires_grad=True)
    >>> rg.autograd.grad(root_scalar(lambda x: x**3 - a, bracket=[0, 3]).root, a)  # 1 / (3 x²)
    (tensor(0.0833),)
    """
    results = []
    if bracket is None and x0 is None:
        raise ValueError("optimize.root_scalar: give a bracket, or a start x0")
    name = method or ("brentq" if bracket is not None else "newton" if x1 is None else "secant")

    def run(function, start):
        given = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter, "options": options, "method": name}
        if bracket is not None:
            given["bracket"] = [_number(b) for b in bracket]
        if x0 is not None:
            given |= {"x0": start.item(), "x1": None if x1 is None else _number(x1)}
        given |= _slopes(name, function, fprime, fprime2)
        found = scipy_member("scipy.optimize").root_scalar(_to_number(function), **given)
        results.append(found)
        return found.root

    start = _number(bracket[0]) if x0 is None else x0
    x = find_root("optimize.root_scalar", f, start, args, run)
    found = results[-1]
    found.root = x
    return found


def _slopes(method, function, fprime, fprime2):
    """Return the derivatives that a method uses: the caller's where given."""
    slope = grad(function)
    own = {"fprime": fprime if callable(fprime) else slope, "fprime2": fprime2 if callable(fprime2) else grad(slope)}
    used = {"newton": ("fprime",), "halley": ("fprime", "fprime2")}.get(method, ())
    return {key: _to_number(own[key]) for key in used}


def _number(x):
    return float(values(tensor(x)))


def _to_number(function):
    return lambda x: float(values(tensor(function(x))))


def _by_bracket(name):
    """Return SciPy's function of that name, (f, a, b, args, ...), with a tensor as its result."""

    def find(f: Callable, a: Tensor | float, b: Tensor | float, args=(), *, full_output=False, disp=True, **kwargs):
        details: list = []

        def run(function, start):
            solver = getattr(scipy_member("scipy.optimize"), name)
            x, detail = solver(_to_number(function), start.item(), _number(b), full_output=True, disp=disp, **kwargs)
            details[:] = [detail]
            return x

        x = find_root(f"optimize.{name}", f, _number(a), args, run)
        return (x, *details) if full_output else x

    find.__name__ = find.__qualname__ = name
    find.__doc__ = f"""Return a root of f(x, *args) between a and b as a tensor, by SciPy's `{name}`.

    It is differentiable as that of `root_scalar`.  With full_output the result is (x, details).  Further keywords,
    xtol, rtol and maxiter, are SciPy's.
    """
    return find


bisect, brenth, brentq, ridder, toms748 = map(_by_bracket, ("bisect", "brenth", "brentq", "ridder", "toms748"))


def newton(
    func: Callable, x0: ArrayLike, fprime=None, args=(), tol=1.48e-08, maxiter=50, fprime2=None, x1=None, rtol=0.0,
    full_output=False, disp=True,
):  # fmt: skip
    """Return a root of func(x, *args) by Newton's method as a tensor; for a start with several elements, one for each.

    The derivative is computed unless fprime is given; with x1 the secant method is used.  The root is differentiable
    as that of `root_scalar`.  With full_output the result is (x, details), or (x, converged, zero_der) for several.

    >>> import retrograd as rg
    >>> a = rg.tensor([8.0, 27.0], requires_grad=True)
    >>> rg.autograd.grad(newton(lambda x: x**3 - a, [1.0, 2.0]).sum(), a)
    (tensor([0.0833, 0.0370]),)
    """
    details: list = []

    def run(function, start):
        given = {"tol": tol, "maxiter": maxiter, "rtol": rtol, "full_output": True, "disp": disp}
        given |= {"fprime2": None if fprime2 is None else lambda x: values(fprime2(x))}
        if x1 is not None:
            given["x1"] = values(tensor(x1))
        else:
            given["fprime"] = elementwise_grad(function) if fprime is None else lambda x: values(fprime(x))
        x, *rest = scipy_member("scipy.optimize").newton(function, start if start.ndim else start.item(), **given)
        details[:] = rest
        return x

    x = find_root("optimize.newton", func, x0, args, run)
    return (x, *details) if full_output else x


suggest_in_module(globals())
