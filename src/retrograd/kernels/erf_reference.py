"""The reference implementations of the error function, its complement and its inverse."""

import numpy as np

# erf(x) / x in x^2 for |x| <= 3.95, where erf in single precision reaches 1: our weighted least-squares fit, with an
# error of at most 2e-8; rounding in single precision adds 4e-7.
_SINGLE = (
    (2.0117344511229603e-06, 2.8760165552651037e-04, 3.917361155784924e-03, 5.3207189619104e-02,
     1.9403669602557594e-01, 1.1283790060995655),
    (3.7839682456963244e-05, 1.1982115627276156e-03, 1.5270787025490024e-02, 1.1559116622713242e-01,
     5.052920314920322e-01, 1.0),
)  # fmt: skip
_SINGLE_REACHES_ONE = 3.95

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


def erf(x):
    """Return the error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x, of float32 or float64."""
    return _erf_single(x) if x.dtype == np.float32 else _erf_double(x)


def _erf_single(x):
    y = np.clip(x, -_SINGLE_REACHES_ONE, _SINGLE_REACHES_ONE)
    return np.clip(y * _ratio(_SINGLE, np.square(y)), -1, 1)


def _erf_double(x):
    y = np.abs(x)
    out = np.empty_like(y)
    near, far = y <= 0.46875, y > 4.0
    middle = ~(near | far)  # NaN too
    out[near] = y[near] * _ratio(_NEAR, np.square(y[near]))
    out[middle] = 1 - np.exp(-np.square(y[middle])) * _ratio(_MIDDLE, y[middle])
    z = np.minimum(y[far], 30.0)
    tail = (_INVERSE_SQRT_PI - _ratio(_FAR, 1 / np.square(z)) / np.square(z)) / z
    with np.errstate(under="ignore"):
        out[far] = 1 - np.exp(-np.square(z)) * tail
    return np.copysign(out, x)


# exp(y^2) erfc(y) (1 + 2 y) in t = (y - 4) / (y + 4), for y up to 27.3: our interpolation at Chebyshev nodes, with a
# relative error of 1.3e-17. Single precision has one of degree 11, with an error of 8.6e-10.
_ERFC = (
    -1.907388627007971e-09, -1.3952812123042382e-08, -7.796210935750394e-09, 1.1597564919712835e-07,
    6.326381936013846e-08, -8.356886054802244e-07, 3.006053020270926e-07, 5.718067004785881e-06,
    -1.1224293594679385e-05, -2.4403160497192634e-05, 1.506220523230599e-04, -1.9925553476007838e-04,
    -7.577732963739462e-04, 5.031969765051122e-03, -1.6197734065502876e-02, 3.716751556105671e-02,
    -6.63303658110103e-02, 9.373283499690535e-02, -1.0103906603637362e-01, 6.80970542547337e-02,
    1.5379652102621091e-02, -1.3962111684056286e-01, 1.2329951186255526,
)  # fmt: skip


def erfc(x):
    """Return the complementary error function 1 - erf(x), with a small relative error also where it is tiny."""
    y = np.minimum(np.abs(x), 27.5).astype(np.promote_types(x.dtype, np.float64))
    high = y.astype(np.float32).astype(y.dtype)  # its square is exact
    with np.errstate(under="ignore"):
        square = np.exp(-high * high) * np.exp(-(y - high) * (y + high))
        tail = square * (_polynomial(_ERFC, (y - 4) / (y + 4)) / (1 + 2 * y))
        return np.where(x < 0, 2 - tail, tail).astype(x.dtype)


# The inverse of erf over x, in w = -log(1 - x^2), by w - 2.5 for w < 5 and by sqrt(w) - 3 above, as in M. Giles,
# Approximating the erfinv function, GPU Computing Gems 2 (2011): our interpolations, with errors of 1.5e-8.
_ERFINV_NEAR = (
    -8.93192597e-09, 2.33359672e-08, 4.68131348e-07, -3.46398527e-06, -4.97241969e-06, 2.18349386e-04,
    -1.25272639e-03, -4.17739288e-03, 2.46640279e-01, 1.50140936,
)  # fmt: skip
_ERFINV_FAR = (
    1.07486614e-04, -3.01109982e-04, -4.50347701e-05, 1.47413078e-03, -3.60351697e-03, 5.69140795e-03,
    -7.63596258e-03, 9.44472151e-03, 1.00167488, 2.83297681,
)  # fmt: skip


def erfinv(x):
    """Return the inverse of `erf` in single precision: infinite at -1 and 1, NaN beyond."""
    y = x.astype(np.float64)
    inside = np.abs(y) < 1
    w = -np.log1p(-np.square(np.where(inside, y, 0)))
    near, far = _polynomial(_ERFINV_NEAR, w - 2.5), _polynomial(_ERFINV_FAR, np.sqrt(w) - 3)
    ends = np.where(np.abs(y) == 1, np.copysign(np.inf, y), np.nan)
    return np.where(inside, y * np.where(w < 5, near, far), ends).astype(x.dtype)


def _ratio(coefficients, x):
    numerator, denominator = coefficients
    return _polynomial(numerator, x) / _polynomial(denominator, x)


def _polynomial(coefficients, x):
    """Evaluate a polynomial by Horner's rule, in one array."""
    out = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        out *= x
        out += coefficient
    return out
