"""Elementwise functions that NumPy lacks: some of our own, which need no SciPy; the others are SciPy's."""

import math

import numpy as np

from retrograd import kernels
from retrograd.kernels import twins

__all__ = [
    "entr",
    "erf",
    "erfc",
    "floor_divide",
    "fmod",
    "gelu",
    "gelu_grad",
    "gelu_tanh",
    "gelu_tanh_grad",
    "i0",
    "left_shift",
    "lerp",
    "logaddexp",
    "logaddexp2",
    "logit",
    "of_reals",
    "polygamma",
    "power",
    "quotient",
    "recurrence",
    "remainder",
    "right_shift",
    "sigmoid",
    "sigmoid_grad",
    "silu",
    "silu_grad",
    "sinc_derivative",
    "softplus",
    "softplus_grad",
    "tanh_grad",
    "xlog1py",
    "xlogy",
]


def scipy_special():
    """The module scipy.special, imported when an operator first needs it; ImportError names the extra to install."""
    try:
        import scipy.special
    except ImportError as error:
        raise ImportError("special functions need SciPy: pip install 'retrograd[scipy]'") from error
    return scipy.special


def of_reals(name, kernel):
    """The kernel, which refuses complex numbers by name, and answers in the dtype of its operands."""

    def checked(*operands, **params):
        dtype = next(o.dtype for o in operands if hasattr(o, "dtype"))
        if dtype.kind == "c":
            raise TypeError(f"{name}: complex numbers are not supported, got {dtype}")
        out = kernel(*operands, **params)
        return out if out.dtype == dtype else out.astype(dtype)

    return checked


def _of_floats(name, kernel):
    """A kernel for float32 and float64, which refuses complex numbers and takes half precision by way of single.

    Operands are of one dtype; settings, Python's numbers, come behind.
    """

    def function(x, *others):
        x = np.asarray(x)
        if x.dtype.kind == "c":
            raise TypeError(f"{name}: complex numbers are not supported, got {x.dtype}")
        if x.dtype.num in (_SINGLE, _DOUBLE):
            return kernel(x, *[o if isinstance(o, np.ndarray) else x.dtype.type(o) for o in others])
        wide = np.dtype(np.float32 if x.dtype == np.float16 else np.float64)
        return kernel(x.astype(wide), *[np.asarray(o, wide) for o in others]).astype(x.dtype)

    return function


def _or_complex(name, kernel, formula):
    """`_of_floats`, with a formula for complex numbers."""
    of_floats = _of_floats(name, kernel)

    def function(x, *others):
        return formula(x, *others) if np.asarray(x).dtype.kind == "c" else of_floats(x, *others)

    return function


_SINGLE, _DOUBLE = np.dtype(np.float32).num, np.dtype(np.float64).num

erf = _or_complex("erf", kernels.erf, lambda z: scipy_special().erf(z))
erfc = _or_complex("erfc", lambda x: scipy_special().erfc(x), lambda z: scipy_special().erfc(z))
gelu = _of_floats("gelu", kernels.gelu)
gelu_grad = _of_floats("gelu_grad", kernels.gelu_grad)
gelu_tanh, gelu_tanh_grad = _of_floats("gelu", kernels.gelu_tanh), _of_floats("gelu_tanh_grad", kernels.gelu_tanh_grad)
softplus, softplus_grad = _of_floats("softplus", kernels.softplus), _of_floats("softplus_grad", kernels.softplus_grad)


def _complex_sigmoid(x):
    """Without overflow: the exponential is of numbers whose real part is never positive."""
    low = x.real < 0
    e = np.exp(np.where(low, x, -x))
    return np.where(low, e, np.ones((), x.dtype)) / (1 + e)


def _complex_silu_grad(g, x):
    s = _complex_sigmoid(x)
    return g * (s * (1 + x * (1 - s)))


sigmoid = _or_complex("sigmoid", kernels.sigmoid, _complex_sigmoid)
silu = _or_complex("silu", kernels.silu, lambda x: x * _complex_sigmoid(x))
silu_grad = _or_complex("silu", kernels.silu_grad, _complex_silu_grad)
sigmoid_grad = _or_complex("sigmoid", kernels.sigmoid_grad, twins.sigmoid_grad)
tanh_grad = _or_complex("tanh", kernels.tanh_grad, twins.tanh_grad)


# --------------------------------------------------------------------------------------- logarithms of products


def xlogy(x, y):
    """x log(y), and 0 where x is 0, unless y is NaN."""
    return _times_log(x, y, np.log)


def xlog1py(x, y):
    """x log(1 + y), and 0 where x is 0, unless y is NaN."""
    return _times_log(x, y, np.log1p)


def _times_log(x, y, log):
    with np.errstate(divide="ignore", invalid="ignore"):  # where x is 0, the logarithm does not matter
        product = x * log(y)
    return np.where((x == 0) & ~np.isnan(y), np.zeros((), product.dtype), product)


def logaddexp(a, b):
    """log(exp(a) + exp(b)), without overflow; of complex numbers the principal logarithm."""
    if (a if hasattr(a, "dtype") else b).dtype.kind == "c":
        return _complex_logaddexp(a, b)
    return _log_of_sum(a, b, 1)


def logaddexp2(a, b):
    """log2(2^a + 2^b), without overflow."""
    if (a if hasattr(a, "dtype") else b).dtype.kind == "c":
        raise TypeError("logaddexp2: complex numbers are not supported")
    return _log_of_sum(a, b, math.log(2))


def _log_of_sum(a, b, log_base):
    """The larger of two numbers, and the logarithm of 1 + base^-|a - b|: many times faster than NumPy's."""
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        out = np.asarray(np.abs(a - b))
        out *= -log_base
        np.log1p(np.exp(out, out=out), out=out)
        out /= log_base
        out += np.maximum(a, b)
    holes = np.isnan(out)
    if holes.any():  # of equal infinities the difference is NaN, the sum is itself
        np.copyto(out, a, where=holes & np.equal(a, b))
    return out


def _complex_logaddexp(a, b):
    top = np.maximum(np.real(a), np.real(b))
    shift = np.where(np.isfinite(top), top, np.zeros((), top.dtype))
    with np.errstate(divide="ignore"):
        return np.log(np.exp(a - shift) + np.exp(b - shift)) + shift


def entr(x):
    """-x log(x); 0 at 0, -inf below."""
    return np.where(x < 0, -math.inf, -xlogy(x, x))


def logit(x):
    """log(x / (1 - x)); NaN where x is no probability."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(x / (1 - x))


# --------------------------------------------------------------------------------------------------- sin(x) / x


def sinc_derivative(x, order):
    """The derivative of that order of sin(pi x) / (pi x): for small |pi x| its power series, else a recurrence."""
    near = np.abs(x) * math.pi <= order + 1
    out = np.empty_like(x)
    out[near] = _sinc_series(x[near] * math.pi, order)
    out[~near] = _sinc_recurrence(x[~near], order)
    return out


def _sinc_series(y, order):
    """The integral of (pi t)^order cos(y t + order pi/2) over t from 0 to 1, term by term of the cosine."""
    total = np.zeros_like(y)
    for power in range(order % 2, 3 * order + 24, 2):
        sign = 1 - (power + order) % 4
        total += y**power * (sign * math.pi**order / (power + order + 1) / math.factorial(power))
    return total


def _sinc_recurrence(x, order):
    """From the product rule for x times sinc; stable where |pi x| > order."""
    y = x * math.pi
    out = np.sin(y) / y
    for k in range(1, order + 1):
        out = (np.sin(y + k * math.pi / 2) * math.pi ** (k - 1) - out * k) / x
    return out


# ------------------------------------------------------------------------------------------ polynomials by degree


def recurrence(x, n, first, step):
    """p_n(x): p_0 = 1, p_1 = first(x), p_(k+1) = step(k, x, p_k, p_(k-1)), k from 1; 0 where n is negative."""
    x, n = np.asarray(x, np.result_type(x, n)), np.trunc(n)
    before, now = np.ones_like(x), first(x)
    out = np.where(n == 0, before, np.where(n == 1, now, np.zeros((), x.dtype)))
    for k in range(1, int(np.max(n, initial=0))):
        before, now = now, step(k, x, now, before)
        out = np.where(n == k + 1, now, out)
    return out


# ---------------------------------------------------------------------------------------------------- arithmetic


def lerp(a, b, weight):
    """From a to b, as far as weight says: exact at both ends."""
    way = b - a
    if isinstance(weight, np.ndarray):
        return np.where(np.abs(weight) < 0.5, a + weight * way, b - way * (1 - weight))
    return a + weight * way if abs(weight) < 0.5 else b - way * (1 - weight)


def _check_numbers(name, a, b):
    """The dtype of the two; booleans are refused: NumPy makes int8 of them."""
    dtype = (a if hasattr(a, "dtype") else b).dtype
    if dtype.kind == "b":
        raise TypeError(f"{name}: not defined for bool")
    return dtype


def _check_divisor(name, a, b):
    """Refuse to divide integers by 0, where NumPy warns and answers 0."""
    if _check_numbers(name, a, b).kind in "iu" and not np.all(b) and np.size(a):
        raise ZeroDivisionError(f"{name}: integers can't be divided by 0")


def _checked(check, name, function):
    def checked(a, b):
        check(name, a, b)
        return function(a, b)

    return checked


floor_divide = _checked(_check_divisor, "floor_divide", np.floor_divide)
remainder, fmod = _checked(_check_divisor, "remainder", np.remainder), _checked(_check_divisor, "fmod", np.fmod)
left_shift = _checked(_check_numbers, "bitwise_left_shift", np.left_shift)
right_shift = _checked(_check_numbers, "bitwise_right_shift", np.right_shift)


def power(a, b):
    """a to the power b; of integers rounded towards 0, unless b is a negative number: then it is refused."""
    if _check_numbers("pow", a, b).kind not in "iu" or np.all(np.greater_equal(b, 0)):
        return a**b
    if not hasattr(b, "dtype"):
        raise RuntimeError(f"pow: integers can't be raised to a negative power, here {b}; convert with .to(dtype)")
    return np.where((b >= 0) | (np.abs(a) == 1), a ** np.abs(b), np.zeros((), b.dtype))


def quotient(a, b, rounding_mode):
    """a / b, rounded down ("floor") or towards 0 ("trunc")."""
    _check_divisor("div", a, b)
    if rounding_mode == "floor":
        return np.floor_divide(a, b)
    if np.result_type(a, b).kind == "f":
        return np.trunc(np.true_divide(a, b))
    down = np.floor_divide(a, b)
    return down + ((down < 0) & (down * b != a))


# ------------------------------------------------------------------------------------ SciPy's, in another form


def i0(x):
    """The modified Bessel function of order 0: SciPy's, which is quicker than NumPy's."""
    return scipy_special().i0(x)


def polygamma(x, n):
    """The derivative of order n of digamma, from the Hurwitz zeta function."""
    if n == 0:
        return scipy_special().psi(x)
    return (-1) ** (n + 1) * float(math.factorial(n)) * scipy_special().zeta(x.dtype.type(n + 1), x)
