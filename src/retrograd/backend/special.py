"""Special functions that NumPy lacks, as rational approximations."""

import numpy as np

# W. J. Cody, Rational Chebyshev approximations for the error function, Math. Comp. 23 (1969), 631-637:
# erf on |x| <= 0.46875, and exp(x^2) erfc(x) on the two ranges above.  Each pair is (numerator, denominator),
# highest power first.
_NEAR = (
    (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2,
     3.20937758913846947e3),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)  # fmt: skip
_MIDDLE = (
    (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1,
     2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
     1.23033935479799725e3),
    (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
     3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3),
)  # fmt: skip
_FAR = (
    (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
     1.60837851487422766e-2, 6.58749161529837803e-4),
    (1.0, 2.56852019228982242e0, 1.87295284992346725e0, 5.27905102951428412e-1, 6.05183413124413191e-2,
     2.33520497626869185e-3),
)  # fmt: skip
_INVERSE_SQRT_PI = 0.56418958354775628695


def _ratio(coefficients, x):
    numerator, denominator = coefficients
    return np.polyval(numerator, x) / np.polyval(denominator, x)


def _erfc_scaled(y):
    """exp(y^2) erfc(y) for y > 0.46875."""
    middle = _ratio(_MIDDLE, np.minimum(y, 4.0))
    z = 1 / np.square(np.maximum(y, 4.0))
    far = (_INVERSE_SQRT_PI - z * _ratio(_FAR, z)) / np.maximum(y, 4.0)
    return np.where(y <= 4.0, middle, far)


def erf(x):
    """The error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x, to double precision."""
    x = np.asarray(x)
    wide = x.astype(np.float64, copy=False)
    y = np.abs(wide)
    near = np.minimum(y, 0.46875)
    small = near * _ratio(_NEAR, np.square(near))
    with np.errstate(under="ignore"):
        tail = 1 - np.exp(-np.square(np.minimum(y, 30.0))) * _erfc_scaled(np.maximum(y, 0.46875))
    out = np.copysign(np.where(y <= 0.46875, small, tail), wide)
    return np.where(np.isnan(wide), wide, out).astype(x.dtype, copy=False)
