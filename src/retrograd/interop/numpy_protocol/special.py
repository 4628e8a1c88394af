"""The ufuncs of `scipy.special` on tensors: SciPy's functions dispatch through NumPy's protocol.

Operators of `rg.special` implement SciPy's functions of the same name.
"""

import math

from retrograd.interop.numpy_protocol.table import O, as_floating, operand, ufuncs
from retrograd.interop.numpy_protocol.ufuncs import elementwise
from retrograd.ops.zeta import riemann_zeta


def _ufunc(function):
    """Decorator: register a function for SciPy's function of its name."""
    ufuncs[function.__name__] = elementwise(function)
    return function


for _name, _operator in vars(O.special).items():
    ufuncs.setdefault(_name, elementwise(_operator))

ufuncs |= {"_zeta": ufuncs["zeta"], "_riemann_zeta": elementwise(lambda x: riemann_zeta(as_floating(x)))}
ufuncs |= {"loggamma": ufuncs["gammaln"], "exp10": elementwise(lambda x: O.pow(10.0, x))}


@_ufunc
def log_expit(x):
    """The logarithm of `expit`."""
    return -O.logaddexp(-x, 0.0)


@_ufunc
def betaincc(a, b, x):
    """1 - betainc(a, b, x)."""
    return O.special.betainc(b, a, 1 - x)


@_ufunc
def powm1(x, y):
    """x^y - 1, accurate near 0, for positive x."""
    return O.expm1(O.special.xlogy(operand(y), operand(x)))


@_ufunc
def boxcox(x, lmbda):
    """(x^lmbda - 1) / lmbda, and log(x) for lmbda = 0."""
    return _slope_of_powers(O.log(operand(x)), lmbda)


@_ufunc
def boxcox1p(x, lmbda):
    """boxcox(1 + x, lmbda), accurate near x = 0."""
    return _slope_of_powers(O.log1p(operand(x)), lmbda)


def _slope_of_powers(logarithm, lmbda):
    return logarithm * exprel(logarithm * operand(lmbda))


@_ufunc
def inv_boxcox(y, lmbda):
    """The x for which boxcox(x, lmbda) is y."""
    return O.exp(_scaled_logarithm(y, lmbda))


@_ufunc
def inv_boxcox1p(y, lmbda):
    """The x for which boxcox1p(x, lmbda) is y."""
    return O.expm1(_scaled_logarithm(y, lmbda))


def _scaled_logarithm(y, lmbda):
    """log(1 + lmbda y) / lmbda, by its series where lmbda y is near 0."""
    y = operand(y)
    z = operand(lmbda) * y
    small = O.abs(z) < 1e-3
    safe = O.where(small, 1.0, z)
    series = 1 - z * (1 / 2 - z * (1 / 3 - z * (1 / 4 - z * (1 / 5 - z * (1 / 6 - z / 7)))))
    return y * O.where(small, series, O.log1p(safe) / safe)


@_ufunc
def exprel(x):
    """(exp(x) - 1) / x, by its series near 0, where it is 1."""
    x = operand(x)
    small = O.abs(x) < 1e-2
    safe = O.where(small, 1.0, x)
    series = 1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6 * (1 + x / 7 * (1 + x / 8))))))
    return O.where(small, series, O.expm1(safe) / safe)


@_ufunc
def cosm1(x):
    """cos(x) - 1, accurate near 0."""
    return -2 * O.square(O.sin(operand(x) / 2))


@_ufunc
def huber(delta, r):
    """Huber's loss: r^2 / 2 up to delta, and delta (|r| - delta / 2) beyond; infinite for a negative delta."""
    delta, size = operand(delta), O.abs(operand(r))
    loss = O.where(size <= delta, size * size / 2, delta * (size - delta / 2))
    return O.where(delta < 0, math.inf, loss)


@_ufunc
def pseudo_huber(delta, r):
    """The smooth loss delta^2 (sqrt(1 + (r / delta)^2) - 1)."""
    delta, r = operand(delta), operand(r)
    safe = O.where(delta > 0, delta, 1.0)
    ratio = O.square(r / safe)
    loss = safe * safe * (ratio / (1 + O.sqrt(1 + ratio)))
    return O.where(delta > 0, loss, O.where(delta < 0, math.inf, 0.0))


@_ufunc
def zetac(x):
    """Riemann's zeta function minus 1."""
    return riemann_zeta(as_floating(x)) - 1


@_ufunc
def poch(z, m):
    """gamma(z + m) / gamma(z)."""
    return O.special.gamma(z + m) * O.special.rgamma(operand(z))


@_ufunc
def binom(n, k):
    """The binomial coefficient, as a function of real numbers."""
    return 1 / ((n + 1) * O.special.beta(n - k + 1, k + 1))


@_ufunc
def chdtr(v, x):
    """The chi-square distribution's cumulative function."""
    return O.special.gammainc(v / 2, x / 2)


@_ufunc
def chdtrc(v, x):
    """1 - chdtr(v, x)."""
    return O.special.gammaincc(v / 2, x / 2)


# ---------------------------------------------------------------------------------------------- degrees, tails


@_ufunc
def radian(d, m, s):
    """Degrees, minutes and seconds as an angle."""
    return (operand(d) + operand(m) / 60 + operand(s) / 3600) * (math.pi / 180)


def _of_degrees(name, function):
    ufuncs[name] = elementwise(lambda x: function(operand(x) * (math.pi / 180)))


_of_degrees("sindg", O.sin)
_of_degrees("cosdg", O.cos)
_of_degrees("tandg", O.tan)
_of_degrees("cotdg", lambda x: 1 / O.tan(x))


def _of_tails(name, function):
    ufuncs[name] = elementwise(lambda *given: function(*[operand(x) for x in given]))


_beta, _gamma = O.special.betainc, (O.special.gammainc, O.special.gammaincc)
_of_tails("bdtr", lambda k, n, p: _beta(n - O.floor(k), O.floor(k) + 1, 1 - p))
_of_tails("bdtrc", lambda k, n, p: _beta(O.floor(k) + 1, n - O.floor(k), p))
_of_tails("nbdtr", lambda k, n, p: _beta(n, k + 1, p))
_of_tails("nbdtrc", lambda k, n, p: _beta(k + 1, n, 1 - p))
_of_tails("fdtr", lambda m, n, x: _beta(m / 2, n / 2, m * x / (n + m * x)))
_of_tails("fdtrc", lambda m, n, x: _beta(n / 2, m / 2, n / (n + m * x)))
_of_tails("gdtr", lambda a, b, x: _gamma[0](b, a * x))
_of_tails("gdtrc", lambda a, b, x: _gamma[1](b, a * x))
_of_tails("pdtr", lambda k, m: _gamma[1](O.floor(k) + 1, m))
_of_tails("pdtrc", lambda k, m: _gamma[0](O.floor(k) + 1, m))
