"""The ufuncs of `scipy.special` on tensors: SciPy's functions dispatch through NumPy's protocol.

Operators of `rg.special` implement SciPy's functions of the same name.
"""

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
