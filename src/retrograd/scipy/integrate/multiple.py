"""Integrals over several variables, and Gauss's formula of a fixed order."""

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.interop.numpy_protocol.table import O, holds_tensor, tensor
from retrograd.scipy._mirror import scipy_member
from retrograd.scipy.integrate.quadrature import quad


def nquad(func: Callable, ranges: Sequence[Any], args=None, opts=None, full_output=False):
    """Return the integral of func(x0, ..., xn, *args) over ranges, that of x0 first, and SciPy's estimate of its error.

    A range is a pair of limits, numbers or tensors, or a function of the variables after it, and of args, that returns
    a pair.  Each integral is that of `quad`, so the result is differentiable in what limits, args and `func` read.  The
    error is that of the outermost integral.  `opts` are options of `quad`, a dict for all variables.

    After `scipy.integrate.nquad`.  If nothing is a tensor, this is SciPy's function.

    >>> import retrograd as rg
    >>> a = rg.tensor(3.0, dtype=rg.float64, requires_grad=True)
    >>> found, _ = nquad(lambda x, y: a * x * y, [lambda y: (0, y), (0, 1)])
    >>> found.round(decimals=4), rg.autograd.grad(found, a)[0].round(decimals=4)
    (tensor(0.3750, dtype=float64, grad_fn=<RoundBackward1>), tensor(0.1250, dtype=float64))
    """
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    if not _reads_tensors(func, ranges, args):
        given = () if args is None else args
        return scipy_member("scipy.integrate").nquad(func, ranges, given, opts, full_output)
    if full_output or not (opts is None or isinstance(opts, dict)):
        raise TypeError("integrate.nquad: full_output and lists of opts are not supported for tensors")
    return _nested(func, list(ranges), args, opts or {})


def _nested(func, ranges, args, options):
    """Integrate over the last variable what the integral over the others returns."""
    *inner, outer = ranges
    low, high = outer(*args) if callable(outer) else outer
    if not inner:
        return quad(func, low, high, args, **options)
    return quad(lambda x: _nested(func, inner, (x, *args), options)[0], low, high, **options)


def _reads_tensors(func, ranges, args):
    """Return whether a limit, an argument or the function's value in the middle is a tensor."""
    if holds_tensor((args,)):
        return True
    point: tuple = ()
    for limits in reversed(list(ranges)):
        pair = limits(*point, *args) if callable(limits) else limits
        if holds_tensor(tuple(pair)):
            return True
        low, high = pair
        finite = [end for end in (low, high) if abs(end) < float("inf")]
        point = (sum(finite) / len(finite) + (len(finite) == 1) * (1 if high > low else -1) if finite else 0.5, *point)
    return holds_tensor((func(*point, *args),))


def dblquad(
    func: Callable, a: Tensor | float, b: Tensor | float, gfun: Callable | Tensor | float,
    hfun: Callable | Tensor | float, args=(), epsabs=1.49e-08, epsrel=1.49e-08,
):  # fmt: skip
    """Return the integral of func(y, x, *args), x from a to b and y from gfun(x) to hfun(x), and an error; see `nquad`.

    >>> import retrograd as rg
    >>> a = rg.tensor(2.0, dtype=rg.float64, requires_grad=True)
    >>> round(dblquad(lambda y, x: x * y, 0, a, 0, lambda x: x)[0].item(), 4)  # a⁴ / 8
    2.0
    """
    inner = lambda x, *_: (_limit(gfun, x), _limit(hfun, x))  # noqa: E731
    return nquad(func, [inner, (a, b)], args, {"epsabs": epsabs, "epsrel": epsrel})


def tplquad(
    func: Callable, a: Tensor | float, b: Tensor | float, gfun: Callable | Tensor | float,
    hfun: Callable | Tensor | float, qfun: Callable | Tensor | float, rfun: Callable | Tensor | float, args=(),
    epsabs=1.49e-08, epsrel=1.49e-08,
):  # fmt: skip
    """Return the integral of func(z, y, x, *args), z from qfun(x, y) to rfun(x, y), and an error; see `dblquad`."""
    middle = lambda x, *_: (_limit(gfun, x), _limit(hfun, x))  # noqa: E731
    inner = lambda y, x, *_: (_limit(qfun, x, y), _limit(rfun, x, y))  # noqa: E731
    return nquad(func, [inner, middle, (a, b)], args, {"epsabs": epsabs, "epsrel": epsrel})


def _limit(limit, *at):
    return limit(*at) if callable(limit) else limit


def fixed_quad(func: Callable, a: Tensor | float, b: Tensor | float, args=(), n=5):
    """Return the integral of func(x, *args) by Gauss's formula with n nodes, a vector x, and None.

    >>> import retrograd as rg
    >>> a = rg.tensor(2.0, dtype=rg.float64, requires_grad=True)
    >>> fixed_quad(lambda x: a * x**2, 0.0, 3.0)[0].detach().round(decimals=6)
    tensor(18., dtype=float64)
    """
    x, w = (tensor(part) for part in scipy_member("scipy.special").roots_legendre(n))
    if not holds_tensor((a, b, args)):
        plain = scipy_member("scipy.integrate").fixed_quad(func, a, b, args, n)
        if not holds_tensor(plain):
            return plain
    half = (tensor(b) - tensor(a)) / 2
    found = tensor(func(half * (x + 1) + tensor(a), *args))
    return half * O.sum(w.to(found.dtype) * found, -1), None


suggest_in_module(globals())
