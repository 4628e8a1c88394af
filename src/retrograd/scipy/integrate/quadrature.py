"""`quad`: integrals of functions of one variable."""

from collections.abc import Callable
from math import inf

from retrograd.core import Tensor
from retrograd.core.level import NotBatchedError
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func import vmap
from retrograd.implicit.closures import Closure, as_floats, example_of
from retrograd.interop.numpy_protocol.table import (
    O,
    cast,
    holds_tensor,
    only_default,
    promote_operands,
    tensor,
    values,
)
from retrograd.scipy._mirror import scipy_member

NODES = 21  # of Gauss and Legendre in each of QUADPACK's intervals


def quad(
    func: Callable, a: Tensor | float, b: Tensor | float, args=(), full_output=0, epsabs=1.49e-8, epsrel=1.49e-8,
    limit=50, points=None, weight=None,
):  # fmt: skip
    """Return the integral of func(x, *args) from a to b as a tensor, and SciPy's estimate of its error, a number.

    `func` gets tensors without dimensions and returns one number.  The limits are numbers or tensors, and may be
    infinite.  SciPy chooses the intervals; the integral is the sum of Gauss's formula with 21 nodes on each, so it is
    differentiable to any order in a, b, the tensors in `args` and those that `func` reads, in all modes.  Under `vmap`
    the intervals are those of the first example.  If no argument is a tensor and `func` reads none, this is SciPy's
    function.  With full_output the result is (integral, error, infodict).

    Raises TypeError for weight, and for integrals that SciPy finds only by extrapolation, whose derivative would be
    less accurate.

    After `scipy.integrate.quad`.

    >>> import retrograd as rg
    >>> a = rg.tensor(2.0, dtype=rg.float64, requires_grad=True)
    >>> found, error = quad(lambda x: (-a * x).exp(), 0, float("inf"))
    >>> rg.autograd.grad(found, a)  # -1 / a²
    (tensor(-0.2500, dtype=float64),)
    """
    args = args if isinstance(args, tuple) else (args,)
    middle = _inside(*(values(example_of(tensor(limit))).item() for limit in (a, b)))
    if not holds_tensor((a, b, args)) and not holds_tensor((func(middle, *args),)):
        options = {"full_output": full_output, "limit": limit, "points": points, "weight": weight}
        return scipy_member("scipy.integrate").quad(func, a, b, args, epsabs=epsabs, epsrel=epsrel, **options)
    only_default("integrate.quad", weight=(weight, None))
    function, low, high, given_points, sign = _finite(func, a, b, points)
    start = O.unsqueeze(O.detach((low + high) / 2), 0)
    closure = Closure("quad", [lambda x, low, high, *given: tensor(function(x[0], *given))], (low, high, *args), start)
    example = [example_of(t) for t in closure.tensors]
    ends = [example_of(x).item() for x in (low, high)]

    def plain(x):
        return closure(0, tensor([x]), example).item()

    options = {"epsabs": epsabs, "epsrel": epsrel, "limit": limit, "points": given_points}
    found, error, details, *message = scipy_member("scipy.integrate").quad(plain, *ends, full_output=1, **options)
    out = sign * _sum_of_intervals(closure, low, high, details, ends)
    _check_accuracy(sign * example_of(out).item(), found, error, epsabs, epsrel)
    return (out, error, details, *message) if full_output else (out, error)


def _inside(a, b):
    """Return a number between two limits."""
    if abs(a) < inf and abs(b) < inf:
        return (a + b) / 2
    return a + 1 if abs(a) < inf else b - 1 if abs(b) < inf else 0.5


def _finite(func, a, b, points):
    """Return the function, limits in order, points and the sign; x = a + (1 - u) / u for limits that are infinite."""
    low, high = promote_operands(as_floats(a), as_floats(b))
    ends = [values(example_of(x)).item() for x in (low, high)]
    sign = 1
    if ends[0] > ends[1]:
        low, high, ends, sign = high, low, ends[::-1], -1
    if not any(abs(end) == inf for end in ends):
        return func, low, high, points, sign
    if points is not None:
        raise ValueError("integrate.quad: infinite limits take no points")
    zero, one = O.zeros((), dtype=low.dtype), O.ones((), dtype=low.dtype)
    return _from_infinity(func, low, high, ends), zero, one, None, sign


def _from_infinity(func, low, high, ends):
    """Return the function of u between 0 and 1 that has the same integral."""
    if ends[0] == -inf and ends[1] == inf:
        return lambda u, *args: (func((1 - u) / u, *args) + func((u - 1) / u, *args)) / u**2
    if ends[1] == inf:
        return lambda u, *args: func(low + (1 - u) / u, *args) / u**2
    return lambda u, *args: func(high - (1 - u) / u, *args) / u**2


def _sum_of_intervals(closure, low, high, details, ends):
    """Return the sum of Gauss's formula over QUADPACK's intervals, which move with the limits."""
    count = details["last"]
    gap = ends[1] - ends[0] or 1.0
    left, right = (tensor((details[key][:count] - ends[0]) / gap) for key in ("alist", "blist"))
    x, w = (tensor(part) for part in scipy_member("scipy.special").roots_legendre(NODES))
    parts = O.unsqueeze(left, 1) + O.unsqueeze(right - left, 1) * (x + 1) / 2
    weights = O.unsqueeze(right - left, 1) * w / 2
    nodes = low + O.reshape(cast(parts, low.dtype), (-1, 1)) * (high - low)
    try:
        found = vmap(lambda x: O.reshape(closure(0, x, closure.tensors), ()))(nodes)
    except NotBatchedError:
        found = O.stack([O.reshape(closure(0, x, closure.tensors), ()) for x in O.unbind(nodes)])
    return O.sum(found * O.reshape(cast(weights, found.dtype), (-1,))) * (high - low)


def _check_accuracy(ours, found, error, epsabs, epsrel):
    allowed = 1e3 * max(error, epsabs, epsrel * abs(found))
    if abs(ours - found) > allowed:
        raise TypeError(
            f"integrate.quad: SciPy finds {found} by extrapolation, and Gauss's formula gives {ours}: the integrand is "
            f"singular. Substitute another variable, or split the interval at the singularity with points="
        )


suggest_in_module(globals())
