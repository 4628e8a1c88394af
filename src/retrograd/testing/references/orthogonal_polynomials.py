"""Reference implementations of orthogonal polynomials: NumPy's, SciPy's, and trigonometric definitions."""

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre


def map_degrees(value):
    """Map value(x, n) of scalars, for n of at least 0, over arrays; negative n give 0."""
    return np.vectorize(lambda x, n: value(x, int(n)) if n >= 0 else 0.0, otypes=[float])


def evaluate_series(values):
    """Evaluate the polynomial of degree n by NumPy's series of its family."""
    return map_degrees(lambda x, n: values(x, [0.0] * n + [1.0]))


def trigonometric(value):
    """Evaluate a polynomial in x = cos(a) from a, which is complex where |x| is more than 1."""
    return map_degrees(lambda x, n: value(np.arccos(x + 0j), n).real)


def shift_argument(value):
    return lambda x, n: value(2 * x - 1, n)


chebyshev_polynomial_t = evaluate_series(chebyshev.chebval)
chebyshev_polynomial_u = trigonometric(lambda a, n: np.sin((n + 1) * a) / np.sin(a))
chebyshev_polynomial_v = trigonometric(lambda a, n: np.cos((n + 0.5) * a) / np.cos(a / 2))
chebyshev_polynomial_w = trigonometric(lambda a, n: np.sin((n + 0.5) * a) / np.sin(a / 2))
shifted_chebyshev_polynomial_t = shift_argument(chebyshev_polynomial_t)
shifted_chebyshev_polynomial_u = shift_argument(chebyshev_polynomial_u)
shifted_chebyshev_polynomial_v = shift_argument(chebyshev_polynomial_v)
shifted_chebyshev_polynomial_w = shift_argument(chebyshev_polynomial_w)
legendre_polynomial_p = evaluate_series(legendre.legval)
hermite_polynomial_h = evaluate_series(hermite.hermval)
hermite_polynomial_he = evaluate_series(hermite_e.hermeval)
laguerre_polynomial_l = evaluate_series(laguerre.lagval)


def gegenbauer_polynomial(x, n, order):
    import scipy.special

    return scipy.special.eval_gegenbauer(n, order, x)


def associated_laguerre_polynomial(x, n, order):
    import scipy.special

    return scipy.special.eval_genlaguerre(n, order, x)
