"""Exact values and derivatives of elementwise functions, by mpmath: they decide where two libraries differ.

`EXACT[name]` holds functions of mpmath numbers: the value, then the derivative by each operand (None: unknown).
"""

import mpmath as mp
import numpy as np

ROOT_HALF, ROOT_PI = mp.sqrt(mp.mpf(1) / 2), mp.sqrt(mp.pi)
ALPHA, SCALE = mp.mpf("1.6732632423543772848170429916717"), mp.mpf("1.0507009873554804934193349852946")


def _density(x):
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def _normal(x):
    return mp.erfc(-x * ROOT_HALF) / 2


def _sigmoid(x):
    return 1 / (1 + mp.exp(-x)) if x >= 0 else mp.exp(x) / (1 + mp.exp(x))


def _slope_of_sigmoid(x):
    e = mp.exp(-abs(x))
    return e / (1 + e) ** 2


def _softplus(x):
    return max(x, mp.mpf(0)) + mp.log1p(mp.exp(-abs(x)))


def _gelu(x, approximate):
    return x * (_normal(x) if approximate == "none" else _sigmoid(2 * _gelu_tanh_argument(x)))


def _gelu_tanh_argument(x):
    return mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)


def _slope_of_gelu(x, approximate):
    if approximate == "none":
        return _normal(x) + x * _density(x)
    steep = 2 * mp.sqrt(2 / mp.pi) * (1 + 3 * mp.mpf("0.044715") * x * x)
    return _sigmoid(2 * _gelu_tanh_argument(x)) + x * _slope_of_sigmoid(2 * _gelu_tanh_argument(x)) * steep


def _tanh_of_softplus(x):
    e = mp.exp(x)
    return e * (e + 2) / (e * (e + 2) + 2) if x < 1000 else mp.mpf(1)


def _slope_of_mish(x):
    t = _tanh_of_softplus(x)
    e = mp.exp(min(x, mp.mpf(2000)))
    return t + x * _sigmoid(x) * 4 * (e + 1) ** 2 / ((e + 1) ** 2 + 1) ** 2


def _erfcx(x):
    if x < 1000:
        return mp.exp(x * x) * mp.erfc(x)
    z = 1 / (2 * x * x)
    return (1 - z + 3 * z**2 - 15 * z**3) / (x * ROOT_PI)


def _slope_of_erfcx(x):
    if x < 1000:
        with mp.workprec(400):
            return 2 * x * _erfcx(x) - 2 / ROOT_PI
    z = 1 / (2 * x * x)
    return -(1 - 3 * z + 15 * z**2) / (x * x * ROOT_PI)


def _hazard(x):
    """Return the derivative of log_ndtr."""
    return mp.sqrt(2 / mp.pi) / _erfcx(-x * ROOT_HALF)


def _sinc(x):
    return mp.sinpi(x) / (mp.pi * x) if x else mp.mpf(1)


def _slope_of_sinc(x):
    if abs(x) < mp.mpf("1e-3"):
        y = mp.pi * x
        return mp.pi * (-y / 3 + y**3 / 30 - y**5 / 840 + y**7 / 45360)
    return (mp.pi * x * mp.cospi(x) - mp.sinpi(x)) / (mp.pi * x * x)


def _elu(x, scale, alpha, steep):
    return scale * (x if x > 0 else alpha * mp.expm1(steep * x))


def _slope_of_elu(x, scale, alpha, steep):
    return scale * (mp.mpf(1) if x > 0 else alpha * steep * mp.exp(steep * x))


def _log_of_sum(a, b, *masks):
    if masks:
        return None
    return max(a, b) + mp.log1p(mp.exp(-abs(a - b)))


def _power(a, b):
    if a == 0:
        return None
    if a > 0:
        return mp.exp(b * mp.log(a))
    return None if b != mp.floor(b) else (-1 if int(b) % 2 else 1) * mp.exp(b * mp.log(-a))


def _power_by_base(a, b):
    power = _power(a, b - 1)
    return None if power is None else b * power


def _power_by_exponent(a, b):
    return _power(a, b) * mp.log(a) if a > 0 else None


def _entropy(x):
    return mp.mpf(0) if x == 0 else -x * mp.log(x) if x > 0 else None


def _log_gamma(x):
    if x <= 0 and x == mp.floor(x):
        return mp.inf
    return mp.re(mp.loggamma(x))


def _digamma(x):
    return mp.digamma(x) if x > 0 or x != mp.floor(x) else None


def _polygamma(x, n):
    """Return polygamma; at a pole the limit from both sides, for odd n."""
    if x <= 0 and x == mp.floor(x):
        return mp.inf if n % 2 else None
    return mp.polygamma(n, x)


def _far(function, most=1e17):
    """Return the function, unknown where arguments are so large that mpmath takes too long."""
    return lambda x: function(x) if abs(x) < most else None


def _scaled_bessel(order):
    return lambda x: mp.besseli(order, x) * mp.exp(-abs(x)) if abs(x) < 300 else _limit_of_scaled_bessel(order, x)


def _limit_of_scaled_bessel(order, x):
    y = abs(x)
    m = 4 * order * order
    out = (
        1
        - (m - 1) / (8 * y)
        + (m - 1) * (m - 9) / (2 * (8 * y) ** 2)
        - (m - 1) * (m - 9) * (m - 25) / (6 * (8 * y) ** 3)
    )
    out /= mp.sqrt(2 * mp.pi * y)
    return out if x > 0 or order % 2 == 0 else -out


def _slope_of_scaled_bessel(order):
    def slope(x):
        if abs(x) > 40:
            return None  # takes mpmath too long
        with mp.workprec(300):
            i = (mp.besseli(abs(order - 1), x) + mp.besseli(order + 1, x)) / 2
            return (i - mp.sign(x) * mp.besseli(order, x)) * mp.exp(-abs(x))

    return slope


def _positive(function, most=1e17):
    return lambda x: function(x) if 0 < x < most else None


def _incomplete_gamma(a, low, high, at_large_a):
    """Return the regularized integral of the gamma density; the limit for large a, None where it is not computed."""
    x = low or high
    if 1e9 < a < 1e300 and 0 <= x < a / 1e6:
        return at_large_a
    return mp.gammainc(a, low, high, regularized=True) if 0 <= x < 1e6 and 1e-300 < a < 1e6 else None


def _gamma_density(a, x):
    return mp.exp((a - 1) * mp.log(x) - x) / mp.gamma(a) if 0 < a < 1e4 and x > 0 else None


def _remainder(a, b):
    return a - mp.floor(a / b) * b if b else None


def _fmod(a, b):
    return (a - mp.floor(abs(a) / abs(b)) * abs(b) * mp.sign(a)) if b else None


EXACT = {
    "addcmul": (lambda x, a, b, value: x + value * a * b, lambda x, a, b, value: mp.mpf(1), None, None),
    "addcdiv": (
        lambda x, a, b, value: x + value * a / b if b else None,
        lambda x, a, b, value: mp.mpf(1),
        lambda x, a, b, value: value / b if b else None,
        lambda x, a, b, value: -value * a / b**2 if b else None,
    ),
    "atan2": (
        mp.atan2,
        lambda a, b: b / (a * a + b * b) if a or b else None,
        lambda a, b: -a / (a * a + b * b) if a or b else None,
    ),
    "celu": (
        lambda x, alpha: _elu(x, 1, alpha, 1 / mp.mpf(alpha)),
        lambda x, alpha: _slope_of_elu(x, 1, alpha, 1 / mp.mpf(alpha)),
    ),
    "digamma": (_digamma, lambda x: _polygamma(x, 1)),
    "elu": (lambda x, alpha: _elu(x, 1, alpha, 1), lambda x, alpha: _slope_of_elu(x, 1, alpha, 1)),
    "erfc": (mp.erfc, lambda x: -2 / ROOT_PI * mp.exp(-x * x)),
    "expm1": (mp.expm1, mp.exp),
    "float_power": (_power, _power_by_base, _power_by_exponent),
    "fmod": (_fmod, lambda a, b: mp.mpf(1), None),
    "gelu": (_gelu, _slope_of_gelu),
    "igamma": (lambda a, x: _incomplete_gamma(a, 0, x, mp.mpf(0)), None, lambda a, x: _gamma_density(a, x)),
    "igammac": (
        lambda a, x: _incomplete_gamma(a, x, mp.inf, mp.mpf(1)),
        None,
        lambda a, x: None if _gamma_density(a, x) is None else -_gamma_density(a, x),
    ),
    "ldexp": (
        lambda x, n: x * mp.mpf(2) ** n,
        lambda x, n: mp.mpf(2) ** n,
        lambda x, n: x * mp.mpf(2) ** n * mp.log(2),
    ),
    "lerp": (
        lambda x, end, weight: x + weight * (end - x),
        lambda x, end, weight: 1 - weight,
        lambda x, end, weight: mp.mpf(weight),
        lambda x, end, weight: end - x,
    ),
    "lgamma": (_log_gamma, lambda x: _digamma(x)),
    "log_ndtr": (None, None),
    "logaddexp": (
        _log_of_sum,
        lambda a, b, *masks: None if masks else _sigmoid(a - b),
        lambda a, b, *masks: None if masks else _sigmoid(b - a),
    ),
    "logaddexp2": (
        lambda a, b: _log_of_sum(a * mp.log(2), b * mp.log(2)) / mp.log(2),
        lambda a, b: _sigmoid((a - b) * mp.log(2)),
        lambda a, b: _sigmoid((b - a) * mp.log(2)),
    ),
    "logsigmoid": (lambda x: -_softplus(-x), lambda x: _sigmoid(-x)),
    "mish": (lambda x: x * _tanh_of_softplus(x), _slope_of_mish),
    "mvlgamma": (lambda x, p: _log_gamma(x) if p == 1 else None, lambda x, p: _digamma(x) if p == 1 else None),
    "polygamma": (_polygamma, lambda x, n: _polygamma(x, n + 1)),
    "polar": (None, lambda size, angle: mp.cos(angle), lambda size, angle: -size * mp.sin(angle)),
    "pow": (_power, _power_by_base, _power_by_exponent),
    "remainder": (_remainder, lambda a, b: mp.mpf(1), None),
    "rsub": (
        lambda a, b, alpha: b - alpha * a,
        lambda a, b, alpha: mp.mpf(-alpha),
        lambda a, b, alpha: mp.mpf(1),
    ),
    "selu": (lambda x: _elu(x, SCALE, ALPHA, 1), lambda x: _slope_of_elu(x, SCALE, ALPHA, 1)),
    "sigmoid": (_sigmoid, _slope_of_sigmoid),
    "silu": (lambda x: x * _sigmoid(x), lambda x: _sigmoid(x) + x * _slope_of_sigmoid(x)),
    "sinc": (_sinc, _slope_of_sinc),
    "softsign": (lambda x: x / (1 + abs(x)), lambda x: 1 / (1 + abs(x)) ** 2),
    "softplus": (
        lambda x, beta, threshold: x if x * beta > threshold else _softplus(x * beta) / beta,
        lambda x, beta, threshold: mp.mpf(1) if x * beta > threshold else _sigmoid(x * beta),
    ),
    "special.airy_ai": (_far(mp.airyai), _far(lambda x: mp.airyai(x, derivative=1))),
    "special.bessel_j0": (_far(mp.j0), _far(lambda x: -mp.j1(x))),
    "special.bessel_j1": (_far(mp.j1), _far(lambda x: (mp.j0(x) - mp.besselj(2, x)) / 2)),
    "special.bessel_y0": (_positive(lambda x: mp.bessely(0, x)), _positive(lambda x: -mp.bessely(1, x))),
    "special.bessel_y1": (
        _positive(lambda x: mp.bessely(1, x)),
        _positive(lambda x: (mp.bessely(0, x) - mp.bessely(2, x)) / 2),
    ),
    "special.entr": (_entropy, lambda x: -mp.log(x) - 1 if x > 0 else None),
    "special.erfcx": (_erfcx, _slope_of_erfcx),
    "special.i0e": (_scaled_bessel(0), _slope_of_scaled_bessel(0)),
    "special.i1": (
        lambda x: mp.besseli(1, x) if abs(x) < 1e5 else mp.sign(x) * mp.mpf("1e5000"),
        lambda x: (mp.besseli(0, x) + mp.besseli(2, x)) / 2 if abs(x) < 1e5 else mp.mpf("1e5000"),
    ),
    "special.i1e": (_scaled_bessel(1), _slope_of_scaled_bessel(1)),
    "special.modified_bessel_k0": (
        _positive(lambda x: mp.besselk(0, x), 1e5),
        _positive(lambda x: -mp.besselk(1, x), 1e5),
    ),
    "special.modified_bessel_k1": (
        _positive(lambda x: mp.besselk(1, x)),
        _positive(lambda x: -(mp.besselk(0, x) + mp.besselk(2, x)) / 2),
    ),
    "special.ndtr": (_normal, _density),
    "special.scaled_modified_bessel_k0": (_positive(lambda x: mp.besselk(0, x) * mp.exp(x), 1e5), None),
    "special.scaled_modified_bessel_k1": (_positive(lambda x: mp.besselk(1, x) * mp.exp(x), 1e5), None),
    "special.zeta": (
        # For smaller exponents mpmath may take minutes; those of the derivative are x + 1, which is rounded near x = 0.
        lambda x, q: mp.zeta(x, q) if q > 0 and x > 1 else None,
        None,
        lambda x, q: -x * mp.zeta(x + 1, q) if q > 0 and x > 0.1 else None,
    ),
    "subtract": (
        lambda a, b, alpha: a - alpha * b,
        lambda a, b, alpha: mp.mpf(1),
        lambda a, b, alpha: mp.mpf(-alpha),
    ),
    "tanh": (mp.tanh, lambda x: mp.sech(x) ** 2),
    "tanhshrink": (lambda x: x - mp.tanh(x), lambda x: mp.tanh(x) ** 2),
}
EXACT["special.log_ndtr"] = (lambda x: mp.log(_normal(x)) if x < 0 else mp.log1p(-_normal(-x)), _hazard)
del EXACT["log_ndtr"]
EXACT["masked.logaddexp"] = EXACT["logaddexp"]  # without masks
ALGEBRAIC = {"addcmul", "addcdiv", "lerp", "rsub", "subtract", "fmod", "remainder", "ldexp"}  # sums of any magnitude


def exact(name, aspect, operands, params):
    """Return the exact result for finite operands as an mpmath number; None if it is unknown."""
    functions, params = EXACT.get(name), {k: v for k, v in params.items() if k != "dtype"}
    number = 0 if aspect.startswith("value") else 1 + int(aspect.split()[1])
    if functions is None or number >= len(functions) or functions[number] is None:
        return None
    if not all(np.isfinite(o) for o in operands):
        return None
    with mp.workprec(2300 if name in ALGEBRAIC else 160):
        try:
            out = functions[number](*[mp.mpf(float(o)) for o in operands], **params)
        except (ZeroDivisionError, OverflowError, ValueError, mp.libmp.NoConvergence):
            return None
        return None if out is None or mp.isnan(out) else out


def is_right(found, name, aspect, operands, params, dtype, tolerance):
    """Return whether a result is exact, up to rounding of it and of the operands; None if that is unknown.

    The operands have the dtype `dtype`, and the result may be wider.
    """
    truth = exact(name, aspect, operands, params)
    if truth is None:
        return None
    f, eps = np.finfo(found.dtype), np.finfo(dtype).eps
    if abs(truth) > mp.mpf(float(f.max)) * (1 + tolerance):
        return bool(np.isinf(found)) and (found > 0) == (truth > 0)
    if not np.isfinite(found):
        return abs(truth) > mp.mpf(float(f.max)) * (1 - 10 * tolerance) and (found > 0) == (truth > 0)
    moved = [exact(name, aspect, _perturbed(operands, i, eps), params) for i in range(len(operands))]
    blur = sum(abs(m - truth) for m in moved if m is not None and mp.isfinite(m)) if mp.isfinite(truth) else 0
    least = 4 * mp.mpf(float(f.smallest_subnormal))
    return abs(mp.mpf(float(found)) - truth) <= tolerance * abs(truth) + 4 * blur + least


def _perturbed(operands, i, eps):
    return [float(o) * (1 + 2 * float(eps)) if j == i else o for j, o in enumerate(operands)]
