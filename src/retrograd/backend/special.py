"""Special functions that NumPy lacks: the error function, as rational approximations; the others are SciPy's."""

import numpy as np

__all__ = ["erf"]


def scipy_special():
    """The module scipy.special, imported when an operator first needs it; ImportError names the extra to install."""
    try:
        import scipy.special
    except ImportError as error:
        raise ImportError("special functions need SciPy: pip install 'retrograd[scipy]'") from error
    return scipy.special


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

# erf(x) / x in x^2 for |x| <= 3.95, where erf in single precision reaches 1: our own weighted least-squares fit, wrong
# by at most 2e-8; rounding in single precision adds 4e-7.
_SINGLE = (
    (2.0117344511229603e-06, 2.8760165552651037e-04, 3.917361155784924e-03, 5.3207189619104e-02,
     1.9403669602557594e-01, 1.1283790060995655),
    (3.7839682456963244e-05, 1.1982115627276156e-03, 1.5270787025490024e-02, 1.1559116622713242e-01,
     5.052920314920322e-01, 1.0),
)  # fmt: skip
_SINGLE_REACHES_ONE = 3.95


def erf(x):
    """The error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x, to the precision of the dtype."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        raise TypeError(f"erf: complex numbers are not supported, got {x.dtype}")
    if x.dtype == np.float32:
        return _erf_single(x)
    return _erf_double(x.astype(np.float64, copy=False)).astype(x.dtype, copy=False)


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


def _ratio(coefficients, x):
    numerator, denominator = coefficients
    return _polynomial(numerator, x) / _polynomial(denominator, x)


def _polynomial(coefficients, x):
    """Horner's rule, in one array."""
    out = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        out *= x
        out += coefficient
    return out
