"""`least_squares` and `curve_fit`."""

import inspect
from collections.abc import Callable
from math import inf

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func import jacrev
from retrograd.func.autograd_api import jacobian
from retrograd.implicit.closures import as_floats
from retrograd.implicit.problems import NO_CONSTRAINTS
from retrograd.implicit.solvers import minimum, start_of
from retrograd.interop.numpy_protocol.table import O, cast, tensor, values
from retrograd.scipy._array_like import ArrayLike
from retrograd.scipy._mirror import on_arrays, scipy_member
from retrograd.scipy.optimize.constraints import bounds_of, scipy_bounds
from retrograd.scipy.optimize.results import Runs

_LOSSES = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (O.sqrt(1 + z) - 1),
    "huber": lambda z: O.where(z <= 1, z, 2 * O.sqrt(O.where(z <= 1, 1.0, z)) - 1),
    "cauchy": lambda z: O.log1p(z),
    "arctan": lambda z: O.atan(z),
}


def least_squares(
    fun: Callable, x0: ArrayLike, jac="2-point", bounds=(-inf, inf), method="trf", *, loss="linear", f_scale=1.0,
    args=(), kwargs=None, **options,
):  # fmt: skip
    """Return SciPy's result for the least sum of squares of fun(x, *args), with tensors as its `x`, `cost` and `fun`.

    `fun` gets tensors and returns a vector; SciPy gets its Jacobian, unless jac is a function.  `x` is differentiable
    to any order in the tensors in `args`, `kwargs` and `bounds` and in those that `fun` reads; its derivative needs
    the second derivatives of `fun`, and is not that of Gauss and Newton.  `loss` is one of SciPy's names.

    Raises ValueError for another loss.

    >>> import retrograd as rg
    >>> y = rg.tensor([1.0, 2.0, 6.0], requires_grad=True)
    >>> found = least_squares(lambda x: x[0] - y, [0.0])
    >>> rg.autograd.grad(found.x[0], y)
    (tensor([0.3333, 0.3333, 0.3333]),)
    """
    if loss not in _LOSSES:
        raise ValueError(f"optimize.least_squares: loss must be one of {', '.join(_LOSSES)}, got {loss!r}")
    x0 = O.reshape(start_of("optimize.least_squares", x0), (-1,))
    args = args if isinstance(args, tuple) else (args,)
    named = kwargs or {}

    def residuals(x, *given):
        return O.reshape(tensor(fun(x, *given, **named)), (-1,))

    def cost(x, *given):
        return 0.5 * f_scale**2 * O.sum(_LOSSES[loss](O.square(residuals(x, *given) / f_scale)))

    runs = Runs()

    def run(problem, start, tensors):
        f = problem.function(tensors, 1)
        slope = on_arrays(lambda *given: jac(*given, **named), args) if callable(jac) else jacobian(f)
        given = {"method": method, "loss": loss, "f_scale": f_scale, **options}
        if parts["bounds"] is not None:
            given["bounds"] = scipy_bounds(problem, start, tensors)
        found = scipy_member("scipy.optimize").least_squares(f, start.numpy(), slope, **given)
        runs.add(found)
        return tensor(found.x)

    functions, parts = _with_bounds([cost, residuals], _real_bounds("least_squares", bounds, x0))
    x = minimum("optimize.least_squares", functions, x0, args, run, parts).x
    return runs.result(x=x, fun=residuals(x, *args), cost=cost(x, *args))


def _real_bounds(name, bounds, x0):
    """Return the bounds of x; None if all are infinite numbers."""
    low, high = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    if (values(tensor(low)) == -inf).all() and (values(tensor(high)) == inf).all():
        return None
    return bounds_of(name, bounds, x0)


def _with_bounds(functions, limits):
    parts = dict(NO_CONSTRAINTS)
    if limits is not None:
        parts["bounds"] = len(functions)
        functions.append(lambda x, *args: O.stack(list(limits)))
    return functions, parts


def curve_fit(
    f: Callable, xdata: ArrayLike, ydata: ArrayLike, p0=None, sigma=None, absolute_sigma=False,
    check_finite=None, bounds=(-inf, inf), method=None, jac=None, *, full_output=False, **kwargs,
):  # fmt: skip
    """Return the parameters of the model f(xdata, *parameters) that fit ydata best, and their covariance, as tensors.

    `f` gets tensors.  sigma: standard deviations of ydata, or their covariance matrix.  Both results are
    differentiable to any order in xdata, ydata and sigma, in the bounds, and in the tensors that `f` reads.  p0 and
    bounds are as in SciPy; the Jacobian is computed.  With full_output the result is (parameters, covariance,
    infodict, mesg, ier).

    Raises RuntimeError if SciPy finds no parameters, TypeError for a given jac.

    >>> import retrograd as rg
    >>> y = rg.tensor([1.0, 3.0, 5.0], dtype=rg.float64, requires_grad=True)
    >>> p, covariance = curve_fit(lambda x, a, b: a * x + b, rg.arange(3.0), y)
    >>> rg.autograd.grad(p[1], y)[0].round(decimals=4)
    tensor([ 0.8333,  0.3333, -0.1667], dtype=float64)
    """
    if jac is not None:
        raise TypeError("optimize.curve_fit: the Jacobian is computed from f; leave out jac, or use SciPy's function")
    xdata = tensor(xdata) if not callable(xdata) else xdata
    ydata = O.reshape(as_floats(ydata), (-1,))
    sigma = None if sigma is None else as_floats(sigma)
    start = _first_parameters(f, p0, bounds, ydata)

    def residuals(p, x, y, sigma):
        found = O.reshape(tensor(f(x, *O.unbind(p))), (-1,))
        if found.shape != y.shape and 1 not in (found.shape[0], y.shape[0]):
            raise ValueError(f"optimize.curve_fit: f returns {found.shape[0]} values, and ydata has {y.shape[0]}")
        return _whiten(found - y, sigma)

    def cost(p, *given):
        return 0.5 * O.sum(O.square(residuals(p, *given)))

    limits = _real_bounds("curve_fit", bounds, start)
    functions, parts = _with_bounds([cost, residuals], limits)
    details: list = []
    fit = method or ("lm" if limits is None else "trf")

    def run(problem, start, tensors):
        x, *details[:] = _fit(problem, start, tensors, fit, limits, kwargs)
        return tensor(x)

    given = (xdata, ydata, sigma)
    p = minimum("optimize.curve_fit", functions, start, given, run, parts).x
    covariance = _covariance(residuals, p, given, absolute_sigma)
    return (p, covariance, *details) if full_output else (p, covariance)


def _first_parameters(f, p0, bounds, ydata):
    """Return p0, or as SciPy numbers within the bounds, 1 where there are none."""
    if p0 is not None:
        p0 = O.reshape(start_of("optimize.curve_fit", p0), (-1,))
        return cast(p0, O.result_type(p0, ydata))
    known = inspect.signature(f).parameters.values()
    parameters = [p for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(parameters) < max(2, len(known)):
        raise ValueError("optimize.curve_fit: unable to determine the number of parameters of f; give p0")
    ones = O.ones((len(parameters) - 1,), dtype=ydata.dtype)
    limits = _real_bounds("curve_fit", bounds, ones)
    if limits is None:
        return ones
    low, high = (O.detach(b) for b in limits)
    bounded = O.where(O.isfinite(high), O.where(O.isfinite(low), (low + high) / 2, high - 1), low + 1)
    return O.where(O.isfinite(low) | O.isfinite(high), bounded, ones)


def _whiten(difference, sigma):
    """Return differences divided by their standard deviations, or by the Cholesky factor of their covariance."""
    if sigma is None:
        return difference
    if sigma.ndim < 2:
        return difference / sigma
    lower = O.linalg.cholesky(sigma)
    return O.linalg.solve_triangular(lower, O.unsqueeze(difference, 1), upper=False)[:, 0]


def _fit(problem, start, tensors, method, limits, options):
    """Return the parameters as an array, and SciPy's infodict, message and flag."""
    optimize, f = scipy_member("scipy.optimize"), problem.function(tensors, 1)
    if method == "lm":
        if limits is not None:
            raise ValueError("optimize.curve_fit: method 'lm' takes no bounds; use 'trf' or 'dogbox'")
        x, _, info, message, flag = optimize.leastsq(f, start.numpy(), Dfun=jacobian(f), full_output=1, **options)
        if flag not in (1, 2, 3, 4):
            raise RuntimeError(f"optimize.curve_fit: Optimal parameters not found: {message}")
        return x, info, message, flag
    options = {"max_nfev" if key == "maxfev" else key: value for key, value in options.items()}
    if limits is not None:
        options["bounds"] = scipy_bounds(problem, start, tensors)
    found = optimize.least_squares(f, start.numpy(), jacobian(f), method=method, **options)
    if not found.success:
        raise RuntimeError(f"optimize.curve_fit: Optimal parameters not found: {found.message}")
    return found.x, {"nfev": found.nfev, "fvec": found.fun}, found.message, found.status


def _covariance(residuals, p, given, absolute_sigma):
    """Return the covariance of parameters from the Jacobian and, unless sigma is absolute, the sum of squares."""
    slope = jacrev(lambda p: residuals(p, *given))(p)
    spread = O.linalg.pinv(slope.mT @ slope)
    count, size = slope.shape
    if absolute_sigma:
        return spread
    if count <= size:
        return O.full_like(spread, inf)
    return spread * (O.sum(O.square(residuals(p, *given))) / (count - size))


suggest_in_module(globals())
