"""Elementwise functions that NumPy lacks: kernels without SciPy, then SciPy's functions."""

import math

import numpy as np

from retrograd import kernels
from retrograd.backend import elementary
from retrograd.core.errors import OperandDtypeError, OperandZeroDivisionError
from retrograd.kernels.host_values import on_host

__all__ = [
    "airy",
    "between",
    "clip",
    "complex_log1p",
    "elu",
    "elu_grad",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "floor_divide",
    "fmod",
    "gammaln",
    "gelu",
    "gelu_grad",
    "gelu_tanh",
    "gelu_tanh_grad",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardswish_grad",
    "huber",
    "huber_grad",
    "hypot",
    "i0",
    "isclose",
    "iv",
    "ive",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "left_shift",
    "lerp",
    "logaddexp",
    "logaddexp2",
    "logit",
    "nextafter",
    "outside",
    "polygamma",
    "power",
    "quotient",
    "real_kernel",
    "recurrence",
    "remainder",
    "right_shift",
    "scale_negative",
    "sigmoid",
    "sigmoid_grad",
    "silu",
    "silu_grad",
    "sinc",
    "sinc_derivative",
    "softplus",
    "softplus_grad",
    "softshrink",
    "squared_difference",
    "squared_difference_grad",
    "tanh_grad",
    "xlog1py",
    "xlogy",
]


def scipy_special():
    """Return the module scipy.special, imported at the first call; ImportError names the extra to install."""
    try:
        import scipy.special
    except ImportError as error:
        raise ImportError("special functions need SciPy: pip install 'retrograd[scipy]'") from error
    return scipy.special


def real_kernel(name, kernel):
    """Wrap a kernel to raise for complex numbers and to return the dtype of its operands."""

    def wrapper(*operands, **params):
        dtype = next(o.dtype for o in operands if hasattr(o, "dtype"))
        if dtype.kind == "c":
            raise OperandDtypeError(f"{name}: complex numbers are not supported, got {dtype}")
        out = kernel(*operands, **params)
        return out if out.dtype == dtype else out.astype(dtype)

    return wrapper


_NUMBERS = (int, float, np.generic)


def _as_array(x):
    """Return an array; an array, or a stand-in for one, as it is: fusion traces kernels with those."""
    return x if hasattr(x, "dtype") else np.asarray(x)


def _float_kernel(name, kernel):
    """Wrap a kernel for float32 and float64: raise for complex numbers, compute half precision in single.

    Operands have one dtype; settings, which are Python numbers, follow them.
    """

    def function(x, *others):
        x = _as_array(x)
        dtype = x.dtype
        if dtype.num in (_SINGLE, _DOUBLE):
            return kernel(x, *[dtype.type(o) if isinstance(o, _NUMBERS) else o for o in others])
        if dtype.kind == "c":
            raise OperandDtypeError(f"{name}: complex numbers are not supported, got {dtype}")
        wide = np.dtype(np.float32 if x.dtype == np.float16 else np.float64)
        return kernel(x.astype(wide), *[np.asarray(o, wide) for o in others]).astype(x.dtype)

    return function


def _or_complex(name, kernel, formula):
    """Wrap a kernel like `_float_kernel`, with a formula for complex numbers."""
    of_floats = _float_kernel(name, kernel)

    def function(x, *others):
        return formula(x, *others) if _as_array(x).dtype.kind == "c" else of_floats(x, *others)

    return function


_SINGLE, _DOUBLE = np.dtype(np.float32).num, np.dtype(np.float64).num

erf = _or_complex("erf", kernels.erf, lambda z: scipy_special().erf(z))
erfc = _or_complex("erfc", kernels.erfc, lambda z: scipy_special().erfc(z))


def erfinv(x):
    """Return the inverse of `erf`: of single precision by a kernel, of others by SciPy."""
    return kernels.erfinv(x) if _as_array(x).dtype.num == _SINGLE else scipy_special().erfinv(x)


def hypot(a, b):
    """Return sqrt(a^2 + b^2) without overflow: of single precision by a kernel, of others by NumPy."""
    return (kernels.hypot if _have_dtypes(a, b, "f") else np.hypot)(a, b)


def nextafter(a, b):
    """Return the number next to a towards b, by a kernel or, of half precision, by NumPy."""
    same = _have_dtypes(a, b, "f") or _have_dtypes(a, b, "d")
    return (kernels.nextafter if same else np.nextafter)(a, b)


def _have_dtypes(a, b, char):
    """Return whether arrays both have the dtype of a character, so that a kernel takes them."""
    return getattr(a, "dtype", None) == char and getattr(b, "dtype", None) == char


gelu = _float_kernel("gelu", kernels.gelu)
gelu_grad = _float_kernel("gelu_grad", kernels.gelu_grad)
gelu_tanh, gelu_tanh_grad = (
    _float_kernel("gelu", kernels.gelu_tanh),
    _float_kernel("gelu_tanh_grad", kernels.gelu_tanh_grad),
)
softplus, softplus_grad = (
    _float_kernel("softplus", kernels.softplus),
    _float_kernel("softplus_grad", kernels.softplus_grad),
)


between = _float_kernel("between", kernels.between)
scale_negative = _float_kernel("scale_negative", kernels.scale_negative)
hardswish, hardswish_grad = (
    _float_kernel("hardswish", kernels.hardswish),
    _float_kernel("hardswish_grad", kernels.hardswish_grad),
)
outside = _float_kernel("outside", kernels.outside)
hardshrink = _float_kernel("hardshrink", kernels.hardshrink)
softshrink = _float_kernel("softshrink", kernels.softshrink)
hardsigmoid = _float_kernel("hardsigmoid", kernels.hardsigmoid)
squared_difference, squared_difference_grad = (
    _float_kernel("squared_difference", kernels.squared_difference),
    _float_kernel("squared_difference_grad", kernels.squared_difference_grad),
)
huber, huber_grad = _float_kernel("huber", kernels.huber), _float_kernel("huber_grad", kernels.huber_grad)


def _exponential_unit(name, kernel):
    """Return a function of arrays, alpha, scale and steep: a kernel has exponentials of negative numbers only."""
    of_negative = _float_kernel(name, kernel)

    def compute(*args):
        return (of_negative if args[-1] > 0 else getattr(kernels.reference, name))(*args)

    return compute


elu, elu_grad = _exponential_unit("elu", kernels.elu), _exponential_unit("elu_grad", kernels.elu_grad)


def clip(x, low, high):
    """Return x within bounds, one of which may be None, by a kernel or, if x has integers, by NumPy; NaN for NaN."""
    if x.dtype.num not in (_SINGLE, _DOUBLE) or low != low or high != high:
        return x.clip(low, high)
    return kernels.clip(
        x, x.dtype.type(-math.inf if low is None else low), x.dtype.type(math.inf if high is None else high)
    )


sigmoid = _or_complex("sigmoid", kernels.sigmoid, lambda z: kernels.reference.sigmoid(z))
silu = _or_complex("silu", kernels.silu, lambda z: kernels.reference.silu(z))
silu_grad = _or_complex("silu", kernels.silu_grad, lambda g, z: kernels.reference.silu_grad(g, z))
sigmoid_grad = _or_complex("sigmoid", kernels.sigmoid_grad, lambda g, out: kernels.reference.sigmoid_grad(g, out))
tanh_grad = _or_complex("tanh", kernels.tanh_grad, lambda g, out: kernels.reference.tanh_grad(g, out))


# --------------------------------------------------------------------------------------- logarithms of products


def xlogy(x, y):
    """Return x log(y), and 0 where x is 0, unless y is NaN."""
    return _times_log(x, y, np.log)


def xlog1py(x, y):
    """Return x log(1 + y), and 0 where x is 0, unless y is NaN."""
    return _times_log(x, y, np.log1p)


def _times_log(x, y, log):
    with np.errstate(divide="ignore", invalid="ignore"):  # where x is 0, the logarithm does not matter
        product = x * log(y)
    return np.where((x == 0) & ~np.isnan(y), np.zeros((), product.dtype), product)


def complex_log1p(x):
    """Return log(1 + x), accurate near 0 and without overflow for large numbers, unlike NumPy's."""
    y = np.array(x)
    y.real += 1  # 1 + x loses the sign of an imaginary part -0, which is the side of the branch cut
    out = np.asarray(np.log(y))
    near = np.maximum(np.abs(x.real), np.abs(x.imag)) < 0.5
    re, im = np.where(near, x.real, 0), np.where(near, x.imag, 0)
    np.copyto(out.real, np.log1p(re * (2 + re) + im * im) / 2, where=near)
    return out


def logaddexp(a, b):
    """Return log(exp(a) + exp(b)) without overflow; for complex values on the branch of the larger one."""
    if (a if hasattr(a, "dtype") else b).dtype.kind == "c":
        return _complex_logaddexp(a, b)
    return _log_of_sum(a, b, 1)


def logaddexp2(a, b):
    """Return log2(2^a + 2^b) without overflow."""
    if (a if hasattr(a, "dtype") else b).dtype.kind == "c":
        raise OperandDtypeError("logaddexp2: complex numbers are not supported")
    return _log_of_sum(a, b, math.log(2))


def _log_of_sum(a, b, log_base):
    """Return max(a, b) + log(1 + base^-|a - b|), many times faster than NumPy's functions."""
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        out = np.asarray(np.abs(a - b))
        out *= -log_base
        elementary.log1p(elementary.exp(out, out=out), out=out)
        out /= log_base
        out += np.maximum(a, b)
    holes = np.isnan(out)
    if not on_host or holes.any():  # the difference of equal infinities is NaN; the result is that infinity
        np.copyto(out, a, where=holes & np.equal(a, b))
    return out


def _complex_logaddexp(a, b):
    with np.errstate(all="ignore"):
        swapped = np.real(a) < np.real(b)
        small, large = np.where(swapped, a, b), np.where(swapped, b, a)
        out = np.log1p(np.exp(small - large)) + large
        out = np.where(
            (np.real(small) == np.real(large)) & np.isinf(np.real(large)), _logaddexp_infinite(small, large), out
        )
        undefined = np.isnan(small) | np.isnan(large)
        return np.where(undefined, complex(math.nan, math.nan), out).astype(out.dtype, copy=False)


def _logaddexp_infinite(small, large):
    """Return log(exp(a) + exp(b)) for infinite real parts of the same sign."""
    return np.where(np.real(small) < 0, small, np.log(np.exp(small) + np.exp(large)))


def entr(x):
    """Return -x log(x); 0 at 0, -inf below."""
    return np.where(x < 0, -math.inf, 0 - xlogy(x, x))


def logit(x):
    """Return log(x / (1 - x)); NaN for x outside [0, 1]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(x / (1 - x))


# --------------------------------------------------------------------------------------------------- sin(x) / x


def sinc(x):
    """Return sin(pi x) / (pi x), and 1 at 0."""
    x = np.where(x == 0, x.dtype.type(1e-20), x)
    return np.sin(_reduce_period(x) * math.pi) / (x * math.pi)


def _reduce_period(x):
    """Return real x minus a multiple of 2, which is exact, so that sin(pi x) keeps its digits."""
    return x - 2 * np.rint(x / 2) if x.dtype.kind == "f" else x


def sinc_derivative(x, order):
    """Return a derivative of sin(pi x) / (pi x) by its power series for small |pi x|, else by a recurrence."""
    near = np.abs(x) * math.pi <= order + 1
    out = np.empty_like(x)
    out[near] = _sinc_series(x[near] * math.pi, order)
    out[~near] = _sinc_recurrence(x[~near], order)
    return out


def _sinc_series(y, order):
    """Return the integral of (pi t)^order cos(y t + order pi/2) over [0, 1], by the cosine's power series."""
    total = np.zeros_like(y)
    for power in range(order % 2, 3 * order + 24, 2):
        sign = 1 - (power + order) % 4
        total += y**power * (sign * math.pi**order / (power + order + 1) / math.factorial(power))
    return total


def _sinc_recurrence(x, order):
    """Return the derivative from the product rule for x times sinc; stable where |pi x| > order."""
    turned = _reduce_period(x) * math.pi
    out = np.sin(turned) / (x * math.pi)
    for k in range(1, order + 1):
        out = (np.sin(turned + k * math.pi / 2) * math.pi ** (k - 1) - out * k) / x
    return out


# ------------------------------------------------------------------------------------------ polynomials by degree


def recurrence(x, n, first, step):
    """Return p_n(x): p_0 = 1, p_1 = first(x), p_(k+1) = step(k, x, p_k, p_(k-1)), k from 1; 0 for negative n."""
    x, n = np.asarray(x, np.result_type(x, n)), np.trunc(n)
    before, now = np.ones_like(x), first(x)
    out = np.where(n == 0, before, np.where(n == 1, now, np.zeros((), x.dtype)))
    for k in range(1, int(np.max(n, initial=0).item())):
        before, now = now, step(k, x, now, before)
        out = np.where(n == k + 1, now, out)
    return out


# ---------------------------------------------------------------------------------------------------- arithmetic


def lerp(a, b, weight):
    """Return a + weight (b - a), exact at both ends."""
    is_plain = a.dtype.num in (_SINGLE, _DOUBLE) and a.dtype == b.dtype == getattr(weight, "dtype", b.dtype)
    return (kernels if is_plain else kernels.reference).lerp(a, b, weight)


def _check_numbers(name, a, b):
    """Return the common dtype; raise for booleans, of which NumPy would make int8."""
    dtype = (a if hasattr(a, "dtype") else b).dtype
    if dtype.kind == "b":
        raise TypeError(f"{name}: not defined for bool")
    return dtype


def _has_zero(b):
    """Return whether a divisor, an array or a Python number, has a zero; arrays on a device are not looked at."""
    return not np.all(b) if on_host or not hasattr(b, "dtype") else False


def _none_negative(b):
    """Return whether it is known that an array or a Python number has no negative element."""
    return np.all(np.greater_equal(b, 0)) if on_host else not hasattr(b, "dtype") and b >= 0


def _check_divisor(name, a, b):
    """Raise for a division of integers by 0, where NumPy warns and returns 0."""
    if _check_numbers(name, a, b).kind in "iu" and np.size(a) and _has_zero(b):
        raise OperandZeroDivisionError(f"{name}: integers can't be divided by 0")


def _with_check(check, name, function):
    def wrapper(a, b):
        check(name, a, b)
        return function(a, b)

    return wrapper


def _division(name):
    """Return a division with an integral quotient: of floats without a warning about 0, of integers NumPy's."""
    kernel, of_integers = getattr(kernels, name), getattr(np, name)

    def divide(a, b):
        dtype = _check_numbers(name, a, b)
        if dtype.kind == "f":
            return (kernel if dtype.num in (_SINGLE, _DOUBLE) else getattr(kernels.reference, name))(a, b)
        _check_divisor(name, a, b)
        return of_integers(a, b)

    return divide


floor_divide, remainder, fmod = _division("floor_divide"), _division("remainder"), _division("fmod")
left_shift = _with_check(_check_numbers, "bitwise_left_shift", np.left_shift)
right_shift = _with_check(_check_numbers, "bitwise_right_shift", np.right_shift)


def power(a, b):
    """Return a to the power b; integers are rounded towards 0.

    Raises RuntimeError for integers with a Python number b below 0, or one that their dtype does not hold.
    """
    dtype = _check_numbers("pow", a, b)
    kind = dtype.kind
    if kind == "c":
        return _complex_power(a, b)
    if kind == "f":
        return _float_power(a, b)
    if type(b) is int and b < 0:
        raise RuntimeError(
            f"pow: Integers to negative integer powers are not allowed, here {b}; convert with .to(dtype)"
        )
    if type(b) is int and kind in "iu" and b > np.iinfo(dtype).max:  # a smaller exponent would give another power
        raise RuntimeError(f"pow: {b}: value cannot be converted to type {dtype} without overflow")
    if kind not in "iu" or _none_negative(b):
        return a**b
    of_one = np.where(np.abs(a) == 1, a ** (b & 1), np.zeros((), b.dtype))
    return np.where(b >= 0, a ** np.maximum(b, 0), of_one)


def _float_power(a, b):
    """Return NumPy's power, except where it would take square roots because one exponent 0.5 is repeated.

    The root of -inf is NaN and that of -0.0 is -0.0, the powers are inf and 0.0.  Python numbers give roots, as in
    PyTorch.
    """
    if type(b) in (int, float) and b not in _FAST and math.isfinite(b) and a.dtype.char in "fd":
        if float(b).is_integer():
            return _whole_power(a, b)
        if on_host and a.size > MANY:
            return _fractional_power(a, b)
    same = not isinstance(b, np.ndarray) or (b.ndim and getattr(a, "shape", ()) == b.shape)
    if same or not on_host or not np.equal(b, 0.5).any():
        return a**b
    shape = np.broadcast_shapes(np.shape(a), b.shape)
    return np.power(a, np.array(np.broadcast_to(b, shape or (1,)))).reshape(shape)


_FAST = (-1, 0, 0.5, 1, 2)  # exponents for which NumPy has loops of its own


def _whole_power(a, n):
    """Return a to the power of an integer, computed without negative floats, for which NumPy takes 100 times as long.

    Two powers are products, as in PyTorch.
    """
    if n == 3:
        return np.square(a) * a
    if n == -2:
        return np.true_divide(1, np.square(a))
    size = np.power(np.abs(a), n)
    return np.copysign(size, a) if n % 2 else size


MANY = 4096  # elements from which on a look at the signs pays


def _fractional_power(a, b):
    """Return a to the power of a number that is no integer; NumPy takes five times as long for negative floats."""
    negative = np.less(a, 0)
    if not negative.any():
        return a**b
    root = np.power(a.dtype.type(-1), b)  # NaN, with NumPy's warning
    return kernels.where(negative & (a != -math.inf), root, np.power(np.abs(a), b))


def _complex_power(a, b):
    """Return NumPy's power; exp(b log(a)) where that is NaN because it squares numbers that are too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        out = np.asarray(a**b)
    lost = np.isnan(out) & ~np.isnan(a) & ~np.isnan(b) & np.not_equal(a, 0)
    return (
        np.where(lost, np.exp(b * np.log(np.where(lost, a, 1))), out).astype(out.dtype)
        if not on_host or lost.any()
        else out
    )


def isclose(a, b, *, rtol, atol, equal_nan):
    """Return NumPy's `isclose`, but without errors or tolerances that overflow to "close"."""
    if np.result_type(a, b).kind not in "fc":
        return np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    with np.errstate(over="ignore", invalid="ignore"):
        error, allowed = np.abs(np.subtract(a, b)), atol + np.abs(np.multiply(b, rtol))
    near = np.equal(a, b) | (np.isfinite(error) & (error <= allowed))
    return near | (np.isnan(a) & np.isnan(b)) if equal_nan else near


def quotient(a, b, rounding_mode):
    """Return a / b, rounded down ("floor") or towards 0 ("trunc")."""
    _check_divisor("div", a, b)
    if rounding_mode == "floor":
        return floor_divide(a, b)
    if np.result_type(a, b).kind == "f":
        return np.trunc(np.true_divide(a, b))
    down = np.floor_divide(a, b)
    return down + ((down < 0) & (down * b != a))


# ------------------------------------------------------------------------------------ SciPy's, in another form


def i0(x):
    """Return the modified Bessel function of order 0, from SciPy, which is faster than NumPy."""
    return scipy_special().i0(x)


def gammaln(x):
    """Return log(|gamma(x)|); SciPy's overflows at the smallest numbers and cancels near 1 and 2."""
    x = np.asarray(x)
    out = np.asarray(scipy_special().gammaln(x))
    _replace(out, np.abs(x) < np.finfo(out.dtype).smallest_normal, x, _gammaln_near_zero)
    _replace(out, np.abs(x - 1) < 0.05, x, _gammaln_near_one)
    _replace(out, np.abs(x - 2) < 0.05, x, _gammaln_near_two)
    _replace(out, np.isneginf(x), x, np.abs)
    return out


def _gammaln_near_zero(x):
    with np.errstate(divide="ignore"):
        return -np.log(np.abs(x))


def _replace(out, where, x, function):
    if not on_host:
        np.copyto(out, function(x), where=where)
    elif where.any():
        out[where] = function(x[where])


# zeta(k) / k for k from 2 on: the coefficients of log(gamma(1 - d)) after Euler's constant.
_ZETA_PARTS = [
    0.8224670334241132, 0.40068563438653143, 0.27058080842778454, 0.207385551028674, 0.16955717699740822,
    0.14404989676884614, 0.12550966952474304, 0.11133426586956469, 0.10009945751278179, 0.09095401714582904,
    0.083353840546109, 0.0769325164113522,
]  # fmt: skip


def _gammaln_near_one(x):
    d = 1 - x.astype(np.float64)
    series = _horner(_ZETA_PARTS, d)
    return np.euler_gamma * d + d * d * series


def _gammaln_near_two(x):
    return np.log1p(x.astype(np.float64) - 2) + _gammaln_near_one(x.astype(np.float64) - 1)


def _horner(coefficients, x):
    """Return the sum of coefficients times powers of x, from 0 on."""
    out = np.zeros_like(x)
    for c in reversed(coefficients):
        out = out * x + c
    return out


def iv(v, x):
    """Return the modified Bessel function of the first kind; its limits at 0 and infinity where SciPy returns NaN."""
    out = scipy_special().iv(v, x)
    near = np.abs(x) < 1e-100
    out = _where_lost(out, v, x, lambda v, x: (x / 2) ** v / scipy_special().gamma(v + 1), near)
    return _where_lost(out, v, x, lambda v, x: np.sign(x) ** v * np.inf, ~near)


def ive(v, x):
    """Return exp(-|x|) iv(v, x); far from 0 its limit, where SciPy returns NaN."""
    out = scipy_special().ive(v, x)
    near = np.abs(x) < 1e-100
    out = _where_lost(out, v, x, lambda v, x: (x / 2) ** v / scipy_special().gamma(v + 1), near)
    return _where_lost(out, v, x, lambda v, x: np.sign(x) ** v / np.sqrt(2 * np.pi * np.abs(x)), ~near)


def _near_zero(name, limit):
    """Return SciPy's function of positive numbers; its limit at the smallest, where SciPy returns NaN or infinity."""

    def function(x):
        x = np.asarray(x)
        out = np.asarray(getattr(scipy_special(), name)(x))
        with np.errstate(over="ignore", divide="ignore"):
            _replace(out, (x > 0) & (x < np.finfo(out.dtype).smallest_normal), x, limit)
        return out

    return function


k0, k0e = (_near_zero(name, lambda x: math.log(2) - np.log(x) - np.euler_gamma) for name in ("k0", "k0e"))
k1, k1e = (_near_zero(name, lambda x: 1 / x) for name in ("k1", "k1e"))


def _where_lost(out, v, x, function, where):
    """Return `out`, with a function's values at the elements of `where` that are NaN for operands without NaN."""
    lost = np.isnan(out) & where & ~np.isnan(x) & ~np.isnan(v)
    if not lost.any():
        return out
    v, x = (np.broadcast_to(np.asarray(a, np.float64), lost.shape)[lost] for a in (v, x))
    out = np.array(out)
    with np.errstate(all="ignore"):
        out[lost] = function(v, x)
    return out


def airy(x):
    """Return Ai and its derivative, by their limits far from 0, where SciPy returns NaN."""
    value, slope = map(np.asarray, scipy_special().airy(x)[:2])
    lost = np.isnan(value) & ~np.isnan(x)
    if lost.any():
        value[lost], slope[lost] = _airy_far_away(np.asarray(x, np.float64)[lost])
    return value, slope


def _airy_far_away(x):
    """Return the limits of `airy`: 0 to the right; to the left waves of phase zeta + pi / 4."""
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(x)
        zeta, root = size**1.5 / 1.5, size**0.25
        wave, other = np.sin(zeta + math.pi / 4), np.cos(zeta + math.pi / 4)
        value, slope = (wave - 5 / 72 / zeta * other) / root, -root * other
    return [np.where(x > 0, 0.0, y / math.sqrt(math.pi)) for y in (value, slope)]


def polygamma(x, n):
    """Return the derivative of order n of digamma, from the Hurwitz zeta function."""
    if n == 0:
        return scipy_special().psi(x)
    out = (-1) ** (n + 1) * float(math.factorial(n)) * scipy_special().zeta(x.dtype.type(n + 1), x)
    return np.where(np.isneginf(x), np.full((), math.nan, x.dtype), out)
