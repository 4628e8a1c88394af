"""Reference implementations of orthogonal polynomials: NumPy's, SciPy's, and trigonometric definitions."""

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre


def by_degree(value):
    """Map value(x, n) of scalars, for n of at least 0, over arrays; negative n give 0."""
    return np.vectorize(lambda x, n: value(x, int(n)) if n >= 0 else 0.0, otypes=[float])


def summed(values):
    """Evaluate the polynomial of degree n by NumPy's series of its family."""
    return by_degree(lambda x, n: values(x, [0.0] * n + [1.0]))


def of_angle(value):
    """Evaluate a polynomial in x = cos(a) from a, which is complex where |x| is more than 1."""
    return by_degree(lambda x, n: value(np.arccos(x + 0j), n).real)


def shifted(value):
    return lambda x, n: value(2 * x - 1, n)


chebyshev_polynomial_t = summed(chebyshev.chebval)
chebyshev_polynomial_u = of_angle(lambda a, n: np.sin((n + 1) * a) / np.sin(a))
chebyshev_polynomial_v = of_angle(lambda a, n: np.cos((n + 0.5) * a) / np.cos(a / 2))
chebyshev_polynomial_w = of_angle(lambda a, n: np.sin((n + 0.5) * a) / np.sin(a / 2))
shifted_chebyshev_polynomial_t = shifted(chebyshev_polynomial_t)
shifted_chebyshev_polynomial_u = shifted(chebyshev_polynomial_u)
shifted_chebyshev_polynomial_v = shifted(chebyshev_polynomial_v)
shifted_chebyshev_polynomial_w = shifted(chebyshev_polynomial_w)
legendre_polynomial_p = summed(legendre.legval)
hermite_polynomial_h = summed(hermite.hermval)
hermite_polynomial_he = summed(hermite_e.hermeval)
laguerre_polynomial_l = summed(laguerre.lagval)


def gegenbauer_polynomial(x, n, order):
    import scipy.special

    return scipy.special.eval_gegenbauer(n, order, x)


def associated_laguerre_polynomial(x, n, order):
    import scipy.special

    return scipy.special.eval_genlaguerre(n, order, x)
