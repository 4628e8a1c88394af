"""Elementwise operators: arithmetic, powers, exponentials, trigonometry, rounding, comparison, logic."""

# `pointwise` defines an operator in a few lines: schema, kernel, docstring, derivative.  The argument names of a rule
# say which tensors are saved (`out` is the output).  One formula serves vjp and jvp.

import cmath
import math
from operator import itemgetter

from retrograd.backend.type_info import check_element_fits, check_factor_fits, check_number_fits, finfo
from retrograd.core import Internal, Tensor, op, registry, xp
from retrograd.core import dtype as dtypes
from retrograd.core.dispatch import call_fast
from retrograd.core.hooks import conjugate
from retrograd.foundation.older_forms import numbers_among_tensors
from retrograd.ops.family import (
    Comparison,
    Composite,
    Pointwise,
    PointwiseOfIntegers,
    cast_to,
    pointwise,
    zero_cotangent,
)

POSITIVE = (0.2, 3.0)

# ------------------------------------------------------------------------------------------------ arithmetic


@op("add(Tensor a, Tensor b) -> Tensor")
class add(Pointwise, linear="a,b", keyword_overload="scaled_add"):
    """The elementwise sum a + b; a and b broadcast."""

    older_form = numbers_among_tensors("alpha")

    impl = xp.add

    def vjp_a(g):
        return g

    def vjp_b(g):
        return g

    oracle = "numpy.add"

    def samples(r):
        yield (r(4, 1), r(3)), {}
        yield (r(2, 3), 2.5), {}
        yield (r(), r(3)), {}


@op("mul(Tensor a, Tensor b) -> Tensor")
class mul(Pointwise, linear="a b", exact_numbers=True, aliases="multiply"):
    """The elementwise product a * b; a and b broadcast."""

    impl = xp.multiply

    def vjp_a(g, b):
        return g * b

    def vjp_b(g, a):
        return g * a

    oracle = "numpy.multiply"

    def samples(r):
        yield (r(3), r(3)), {}
        yield (r(4, 1), r(3)), {}
        yield (r(2, 3), 2.5), {}


sub = pointwise("sub(Tensor a, Tensor b) -> Tensor", xp.subtract,
    "The elementwise difference a - b; a and b broadcast.",
    vjp_a=lambda g: g, vjp_b=lambda g: -g, linear="a,b", keyword_overload="subtract",
    older_form=numbers_among_tensors("alpha"), oracle="numpy.subtract")  # fmt: skip
div = pointwise("div(Tensor a, Tensor b) -> Tensor", xp.true_divide,
    "The elementwise quotient a / b, in a floating dtype.",
    vjp_a=lambda g, b: g / b, vjp_b=lambda g, a, b: -g * (a / b) / b,  # not `out`: it may be written to
    jvp_b=lambda t, b, out: -t * out / b,
    promotion="float", exact_numbers=True, domain=(0.5, 2.0), aliases="true_divide", keyword_overload="divide",
    oracle="numpy.divide")  # fmt: skip
neg = pointwise("neg(Tensor x) -> Tensor", xp.negative,
    "The elementwise negation -x.",
    vjp=lambda g: -g, linear="x", aliases="negative", oracle="numpy.negative")  # fmt: skip
floor_divide = pointwise("floor_divide(Tensor a, Tensor b) -> Tensor", xp.floor_divide,
    "The quotient a / b rounded down.  Its derivative is 0.  Integer division by 0 raises ZeroDivisionError.",
    vjp_a=zero_cotangent, vjp_b=zero_cotangent,
    domain=(0.5, 5.0), oracle=lambda np, a, b: np.floor(a / b))  # fmt: skip
def name_by_operand(name, index):
    """Return a `node_name` with PyTorch's number of the overload: 1 if that operand requires grad, so is a tensor.

    A node keeps no trace of whether another operand was a number or a constant tensor: the names of both end with 0.
    """
    return lambda fn: f"{name}Backward{0 if fn.edges[index] is None else 1}"


remainder = pointwise("remainder(Tensor a, Tensor b) -> Tensor", xp.remainder,
    "The remainder a - floor(a / b) * b, with the sign of b.  Integer division by 0 raises ZeroDivisionError.",
    vjp_a=lambda g: g, vjp_b=lambda g, a, b: -g * floor_divide(a, b),
    domain=(0.7, 5.0), oracle=lambda np, a, b: a - np.floor(a / b) * b,
    node_name=name_by_operand("Remainder", 1))  # fmt: skip


def scale_operand(name, a, b, alpha):
    """Return alpha * b, to be added to a; RuntimeError where integers would be scaled by a fraction."""
    is_common = isinstance(b, Tensor) and b.dtype.kind == "f" and getattr(a, "dtype", None) is b.dtype
    if is_common and type(alpha) is not complex:
        check_number_fits(name, alpha, b.dtype)
        return b if alpha == 1 else mul(b, alpha)
    dtype = dtypes.result_type(a, b)
    if type(alpha) is complex and dtype.kind != "c":
        raise RuntimeError(
            f"{name}: For non-complex input tensors, argument alpha must not be a complex number, got {alpha!r}"
        )
    if dtype == dtypes.bool_ and isinstance(alpha, int):
        alpha = bool(alpha)
    elif type(alpha) is not int and dtype.kind in "biu":
        raise RuntimeError(f"{name}: alpha must be an int for integer tensors, got {alpha!r}")
    check_number_fits(name, alpha, dtype)
    return b if alpha == 1 else mul(in_dtype(b, dtype), alpha)


def in_dtype(operand, dtype):
    """Return a tensor in the dtype of the result, so that its multiples are in range; numbers as they are."""
    return cast_to(operand, dtype) if hasattr(operand, "dtype") else operand


@op("pow(Tensor a, Tensor exponent) -> Tensor")
class pow(PointwiseOfIntegers):
    """a raised elementwise to the power `exponent`.

    The derivative by a is 0 where the exponent is 0.  The derivative by the exponent is 0 where a is 0 and the exponent
    is not negative.  Integers raised to negative powers are rounded towards 0; a negative Python number as exponent of
    an integer tensor raises RuntimeError.
    """

    impl = xp.power
    node_name = name_by_operand("Pow", 1)

    def vjp_a(g, a, exponent):
        b = exponent
        if isinstance(b, (int, float, complex)):
            return g * (b * a ** (b - 1)) if b else zero_cotangent(g)
        return where(b == 0, 0, g * (b * a ** where(b == 0, 1, b - 1)))

    def vjp_exponent(g, a, exponent, out):
        if isinstance(a, (int, float, complex)):
            return g * (out * _logarithm(a, out.dtype) if a else _zero_power_derivative(exponent, out))
        zero = a == 0
        return g * where(zero, _zero_power_derivative(exponent, out), out * log(where(zero, 1, cast_to(a, out.dtype))))

    oracle = "numpy.float_power"

    def samples(r):
        yield (r(3, within=POSITIVE), r(2, 3)), {}
        yield (r(4, within=POSITIVE), 3), {}
        yield (r(4), 2), {}
        yield (r(within=POSITIVE), -0.5), {}
        yield (2.0, r(3)), {}


def _zero_power_derivative(exponent, out):
    """The derivative of 0**exponent by the exponent: -out, which is infinite, for negative exponents, else 0."""
    return where(exponent >= 0, 0, -out) if dtypes.is_floating(out.dtype) else 0


def _logarithm(number, dtype):
    """The natural logarithm of a nonzero Python number; NaN for negative ones in a real dtype."""
    if dtype.kind == "c":
        return cmath.log(number)
    return math.log(number) if number > 0 else math.nan


square = pointwise("square(Tensor x) -> Tensor", lambda xp, x: xp.square(x, dtype=_square_dtype(x)),
    "The elementwise square x * x; int64 for booleans.",
    vjp=lambda g, x: g * (2 * x), shape=lambda x: type(x)(x.shape, _square_dtype(x)),
    oracle=lambda np, x: x * x, node_name="PowBackward0")  # fmt: skip
sqrt = pointwise("sqrt(Tensor x) -> Tensor", xp.sqrt,
    "The elementwise square root; NaN for negative values.",
    vjp=lambda g, out: g / (2 * out), promotion="float", domain=POSITIVE,
    oracle=lambda np, x: x**0.5)  # fmt: skip
rsqrt = pointwise("rsqrt(Tensor x) -> Tensor", lambda xp, x: 1 / xp.sqrt(x),
    "The reciprocal of the square root, 1 / sqrt(x).",
    vjp=lambda g, out: g * (-0.5 * out * out * out), promotion="float", domain=POSITIVE,
    oracle=lambda np, x: x**-0.5)  # fmt: skip
reciprocal = pointwise("reciprocal(Tensor x) -> Tensor", xp.reciprocal,
    "The elementwise reciprocal 1 / x.",
    vjp=lambda g, out: g * -(out * out), promotion="float", domain=POSITIVE,
    oracle=lambda np, x: 1.0 / x)  # fmt: skip
abs = pointwise("abs(Tensor x) -> Tensor", xp.absolute,
    "The elementwise absolute value.  Its derivative at 0 is 0.",
    vjp=lambda g, x: g * _unit_direction(x), jvp=lambda t, x: real_part(t * _unit_direction(x)),
    result="real", aliases="absolute", oracle=lambda np, x: np.where(x < 0, -x, x))  # fmt: skip
conj = pointwise("conj(Tensor x) -> Tensor", lambda xp, x: xp.conjugate(x) if x.dtype.kind == "c" else x.copy(),
    "The complex conjugate, as a copy; real tensors are copied too.",
    vjp=lambda g: conjugate(g), jvp=lambda t: conjugate(t), in_place=False, internal=True,
    oracle="numpy.conj")  # fmt: skip
sign = pointwise("sign(Tensor x) -> Tensor", lambda xp, x: x.copy() if x.dtype.kind == "b" else xp.sign(x),
    "The sign of x: -1, 0 or 1.  Its derivative is 0.  For complex tensors use `sgn`.",
    vjp=zero_cotangent, oracle=lambda np, x: (x > 0) * 1.0 - (x < 0))  # fmt: skip


def _square_dtype(x):
    return dtypes.int64 if x.dtype.kind == "b" else x.dtype


def _unit_direction(x):
    """The derivative of |x|: sign(x), or conj(x) / |x| for complex x, and 0 at 0."""
    if x.dtype.kind != "c":
        return sign(x)
    x = scale_up_subnormals(x)
    size = abs(x)
    return conj(x) / where(size == 0, math.inf, size)


def scale_up_subnormals(x):
    """Complex x with its subnormal numbers multiplied by a power of 2: by their sizes nothing can be divided."""
    return where(abs(x) < finfo(x.dtype).smallest_normal, x * 2.0**64, x)


def real_part(x):
    """The real part of x; x itself if it is real."""
    return to(x, dtypes.real_of(x.dtype)) if x.dtype.kind == "c" else x


# ---------------------------------------------------------------------------------- exponentials, logarithms

exp = pointwise("exp(Tensor x) -> Tensor", xp.exp,
    "The exponential e**x.",
    vjp=lambda g, out: g * out, promotion="float", oracle="numpy.exp")  # fmt: skip
exp2 = pointwise("exp2(Tensor x) -> Tensor", xp.exp2,
    "The power 2**x.",
    vjp=lambda g, out: g * (out * math.log(2)), promotion="float", aliases="special.exp2",
    oracle=lambda np, x: 2.0**x)  # fmt: skip
expm1 = pointwise("expm1(Tensor x) -> Tensor", xp.expm1,
    "exp(x) - 1, accurate for small x.",
    vjp=lambda g, x: g * exp(x), promotion="float", snapshots="x", aliases="special.expm1",
    oracle="numpy.expm1")  # fmt: skip
log = pointwise("log(Tensor x) -> Tensor", xp.log,
    "The natural logarithm of x.",
    vjp=lambda g, x: g / x, promotion="float", domain=POSITIVE, oracle="numpy.log")  # fmt: skip
log2 = pointwise("log2(Tensor x) -> Tensor", xp.log2,
    "The logarithm of x to base 2.",
    vjp=lambda g, x: g / (x * math.log(2)), promotion="float", domain=POSITIVE,
    oracle="numpy.log2")  # fmt: skip
log10 = pointwise("log10(Tensor x) -> Tensor", xp.log10,
    "The logarithm of x to base 10.",
    vjp=lambda g, x: g / (x * math.log(10)), promotion="float", domain=POSITIVE,
    oracle="numpy.log10")  # fmt: skip
log1p = pointwise("log1p(Tensor x) -> Tensor",
    lambda xp, x: xp.complex_log1p(x) if x.dtype.kind == "c" else xp.log1p(x),
    "log(1 + x), accurate for small x.",
    vjp=lambda g, x: g / (1 + x), promotion="float", domain=(-0.5, 3.0), aliases="special.log1p",
    oracle="numpy.log1p")  # fmt: skip
logaddexp = pointwise("logaddexp(Tensor a, Tensor b) -> Tensor", xp.logaddexp,
    "log(exp(a) + exp(b)), without overflow.",
    vjp_a=lambda g, a, b: g * sigmoid(a - b), vjp_b=lambda g, a, b: g * sigmoid(b - a),
    promotion="float", oracle=lambda np, a, b: np.log(np.exp(a) + np.exp(b)))  # fmt: skip

# ---------------------------------------------------------------------------------------------- trigonometry

sin = pointwise("sin(Tensor x) -> Tensor", xp.sin,
    "The sine of x radians.",
    vjp=lambda g, x: g * cos(x), promotion="float", oracle="numpy.sin")  # fmt: skip
cos = pointwise("cos(Tensor x) -> Tensor", xp.cos,
    "The cosine of x radians.",
    vjp=lambda g, x: g * -sin(x), promotion="float", oracle="numpy.cos")  # fmt: skip
tan = pointwise("tan(Tensor x) -> Tensor", xp.tan,
    "The tangent of x radians.",
    vjp=lambda g, out: g * (1 + out * out), promotion="float", domain=(-1.2, 1.2),
    oracle=lambda np, x: np.sin(x) / np.cos(x))  # fmt: skip
asin = pointwise("asin(Tensor x) -> Tensor", xp.arcsin,
    "The inverse sine of x, in radians.",
    vjp=lambda g, x: g * rsqrt(1 - x * x), promotion="float", domain=(-0.9, 0.9), aliases="arcsin",
    oracle="numpy.arcsin")  # fmt: skip
acos = pointwise("acos(Tensor x) -> Tensor", xp.arccos,
    "The inverse cosine of x, in radians.",
    vjp=lambda g, x: g * -rsqrt(1 - x * x), promotion="float", domain=(-0.9, 0.9), aliases="arccos",
    oracle="numpy.arccos")  # fmt: skip
atan = pointwise("atan(Tensor x) -> Tensor", xp.arctan,
    "The inverse tangent of x, in radians.",
    vjp=lambda g, x: g / (1 + x * x), promotion="float", aliases="arctan", oracle="numpy.arctan")  # fmt: skip


def _angle_derivative(x, a, b):
    """x / (a^2 + b^2), computed without overflow or underflow of the squares; 0 at the origin."""
    origin = logical_and(a == 0, b == 0)
    size = registry["hypot"](where(origin, 1, a), b)
    return where(origin, 0, x / size / size)


atan2 = pointwise("atan2(Tensor a, Tensor b) -> Tensor", xp.arctan2,
    "The inverse tangent of a / b in the quadrant of the point (b, a), in radians.",
    vjp_a=lambda g, a, b: g * _angle_derivative(b, a, b), vjp_b=lambda g, a, b: g * -_angle_derivative(a, a, b),
    promotion="float", domain=POSITIVE, aliases="arctan2",
    oracle=lambda np, a, b: np.angle(b + 1j * a))  # fmt: skip
sinh = pointwise("sinh(Tensor x) -> Tensor", xp.sinh,
    "The hyperbolic sine of x.",
    vjp=lambda g, x: g * cosh(x), promotion="float", oracle="numpy.sinh")  # fmt: skip
cosh = pointwise("cosh(Tensor x) -> Tensor", xp.cosh,
    "The hyperbolic cosine of x.",
    vjp=lambda g, x: g * sinh(x), promotion="float", oracle="numpy.cosh")  # fmt: skip
tanh = pointwise("tanh(Tensor x) -> Tensor", xp.tanh,
    "The hyperbolic tangent of x.",
    vjp=lambda g, out: tanh_grad(g, out), promotion="float", aliases="nn.functional.tanh",
    oracle=lambda np, x: np.sinh(x) / np.cosh(x))  # fmt: skip
asinh = pointwise("asinh(Tensor x) -> Tensor", xp.arcsinh,
    "The inverse hyperbolic sine of x.",
    vjp=lambda g, x: g * rsqrt(x * x + 1), promotion="float", aliases="arcsinh",
    oracle=lambda np, x: np.log(x + np.sqrt(x * x + 1)))  # fmt: skip


def _acosh_derivative(x):
    """1 / sqrt(x^2 - 1); for complex x on the branch of the root that `acosh` uses."""
    return rsqrt(x + 1) * rsqrt(x - 1) if x.dtype.kind == "c" else rsqrt(x * x - 1)


acosh = pointwise("acosh(Tensor x) -> Tensor", xp.arccosh,
    "The inverse hyperbolic cosine of x, for x >= 1.",
    vjp=lambda g, x: g * _acosh_derivative(x), promotion="float", domain=(1.2, 3.0), aliases="arccosh",
    oracle=lambda np, x: np.log(x + np.sqrt(x * x - 1)))  # fmt: skip
atanh = pointwise("atanh(Tensor x) -> Tensor", xp.arctanh,
    "The inverse hyperbolic tangent of x, for -1 < x < 1.",
    vjp=lambda g, x: g / (1 - x * x), promotion="float", domain=(-0.9, 0.9), aliases="arctanh",
    oracle=lambda np, x: 0.5 * np.log((1 + x) / (1 - x)))  # fmt: skip
erf = pointwise("erf(Tensor x) -> Tensor", xp.erf,
    "The error function of x.",
    vjp=lambda g, x: g * (2 / math.sqrt(math.pi) * exp(-x * x)), promotion="float", aliases="special.erf",
    oracle=lambda np, x: np.vectorize(math.erf, otypes=[float])(x))  # fmt: skip

# ---------------------------------------------------------------------------------------------- activations

sigmoid = pointwise("sigmoid(Tensor x) -> Tensor", xp.sigmoid,
    "The logistic sigmoid 1 / (1 + exp(-x)).",
    vjp=lambda g, out: sigmoid_grad(g, out), promotion="float",
    aliases="nn.functional.sigmoid special.expit", oracle=lambda np, x: 1 / (1 + np.exp(-x)))  # fmt: skip
relu = pointwise("relu(Tensor x) -> Tensor", xp.relu,
    "The rectified linear unit max(x, 0).  Its derivative is 0 at 0, and 1 at NaN.",
    vjp=lambda g, out: relu_grad(g, out), in_place="argument", aliases="nn.functional.relu",
    oracle=lambda np, x: x * (x > 0))  # fmt: skip
silu = pointwise("silu(Tensor x) -> Tensor", xp.silu,
    "The sigmoid linear unit x * sigmoid(x), also called swish.",
    vjp=lambda g, x: silu_grad(g, x), promotion="float", in_place="argument", aliases="nn.functional.silu",
    oracle=lambda np, x: x / (1 + np.exp(-x)))  # fmt: skip


@op("softplus(Tensor x, float beta=1.0, float threshold=20.0) -> Tensor")
class softplus(Pointwise, promotion="float", aliases="nn.functional.softplus"):
    """log(1 + exp(beta * x)) / beta, without overflow; x itself where beta * x exceeds the threshold."""

    def impl(xp, x, *, beta, threshold):
        check_factor_fits("softplus", beta, x.dtype)
        check_factor_fits("softplus", threshold, x.dtype)
        return xp.softplus(x, beta, threshold)

    def vjp_x(g, x, beta, threshold):
        return softplus_grad(g, x, beta, threshold)

    def oracle(np, x, beta=1.0, threshold=math.inf):
        return np.where(beta * x > threshold, x, np.log(1 + np.exp(beta * x)) / beta)

    def samples(r):
        yield (r(3, 2),), {}
        yield (r(4),), {"beta": 2.5, "threshold": 1.0}
        yield (r(),), {"threshold": -0.5}


# ---- cotangent times derivative, fused into one pass over memory


def _derivative_operator(schema, impl, doc, **rules):
    return pointwise(schema, impl, doc, promotion="float", internal=True, in_place=False, **rules)


tanh_grad = _derivative_operator("tanh_grad(Tensor t, Tensor y) -> Tensor", xp.tanh_grad,
    "t times the derivative of `tanh`, from its output y.",
    vjp_t=lambda g, y: tanh_grad(g, y), vjp_y=lambda g, t, y: g * t * (-2 * y),
    oracle=lambda np, t, y: t * (1 - y) * (1 + y))  # fmt: skip
relu_grad = _derivative_operator("relu_grad(Tensor t, Tensor y) -> Tensor", xp.relu_grad,
    "t times the derivative of `relu`, from its output y.",
    vjp_t=lambda g, y: relu_grad(g, y), vjp_y=zero_cotangent,
    oracle=lambda np, t, y: np.where(y == 0, 0, t))  # fmt: skip
sigmoid_grad = _derivative_operator("sigmoid_grad(Tensor t, Tensor y) -> Tensor", xp.sigmoid_grad,
    "t times the derivative of `sigmoid`, from its output y.",
    vjp_t=lambda g, y: sigmoid_grad(g, y), vjp_y=lambda g, t, y: g * t * (1 - 2 * y),
    oracle=lambda np, t, y: t * y * (1 - y))  # fmt: skip


def _silu_second(x, s):
    """The second derivative of `silu` at x, where s = sigmoid(x)."""
    return s * (1 - s) * (2 + x * (1 - 2 * s))


silu_grad = _derivative_operator("silu_grad(Tensor t, Tensor x) -> Tensor", xp.silu_grad,
    "t times the derivative of `silu` at x.",
    vjp_t=lambda g, x: silu_grad(g, x), vjp_x=lambda g, t, x: g * t * _silu_second(x, sigmoid(x)),
    oracle="retrograd.testing.references.activation.silu_grad")  # fmt: skip
gelu_grad = _derivative_operator("gelu_grad(Tensor t, Tensor x) -> Tensor", xp.gelu_grad,
    "t times the derivative of the exact `gelu` at x: the normal CDF plus x times the normal density.",
    vjp_t=lambda g, x: gelu_grad(g, x),
    vjp_x=lambda g, t, x: g * t * ((2 - x * x) * exp(-0.5 * x * x) / math.sqrt(2 * math.pi)),
    oracle="retrograd.testing.references.activation.gelu_grad")  # fmt: skip


def _gelu_tanh_second(x):
    """The second derivative of x s(u), with s the sigmoid and u = 2 sqrt(2 / pi) (x + 0.044715 x^3)."""
    root = 2 * math.sqrt(2 / math.pi)
    s = sigmoid(root * (x + 0.044715 * x * x * x))
    first, second = root * (1 + 3 * 0.044715 * x * x), root * 6 * 0.044715 * x
    return s * (1 - s) * (2 * first + x * (second + first * first * (1 - 2 * s)))


gelu_tanh_grad = _derivative_operator("gelu_tanh_grad(Tensor t, Tensor x) -> Tensor", xp.gelu_tanh_grad,
    "t times the derivative of the tanh approximation of `gelu` at x.",
    vjp_t=lambda g, x: gelu_tanh_grad(g, x), vjp_x=lambda g, t, x: g * t * _gelu_tanh_second(x),
    oracle="retrograd.testing.references.activation.gelu_tanh_grad")  # fmt: skip


@op("softplus_grad(Tensor t, Tensor x, float beta=1.0, float threshold=20.0) -> Tensor")
class softplus_grad(Internal, Pointwise, promotion="float", in_place=False):
    """t times the derivative of `softplus` at x, a sigmoid."""

    def impl(xp, t, x, *, beta, threshold):
        return xp.softplus_grad(t, x, beta, threshold)

    def vjp_t(g, x, beta, threshold):
        return softplus_grad(g, x, beta, threshold)

    def vjp_x(g, t, x, beta, threshold):
        z = x * beta
        s = sigmoid(z)
        return where(z > threshold, 0, g * t * (s * (1 - s) * beta))

    oracle = "retrograd.testing.references.activation.softplus_grad"

    def samples(r):
        yield (r(3, 2), r(3, 2)), {}
        yield (r(4, 1), r(3)), {"beta": 2.5, "threshold": 1.0}


@op("scale_negative(Tensor t, Tensor x, number slope) -> Tensor")
class scale_negative(Internal, Pointwise, promotion="float", in_place=False):
    """t where x is positive, t times the slope elsewhere: t times the derivative of `leaky_relu` at x."""

    def impl(xp, t, x, *, slope):
        return xp.scale_negative(t, x, slope)

    def vjp_t(g, x, slope):
        return scale_negative(g, x, slope)

    vjp_x = zero_cotangent

    def oracle(np, t, x, slope):
        return np.where(x > 0, t, t * slope)

    def samples(r):
        yield (r(3, 2), r(3, 2)), {"slope": 0.1}
        yield (r(4, 1), r(3)), {"slope": -2.0}


@op("gelu(Tensor x, *, str approximate='none') -> Tensor")
class gelu(Pointwise, promotion="float", aliases="nn.functional.gelu"):
    """x times the normal CDF of x; approximate="tanh" uses the approximation with tanh.

    Hendrycks and Gimpel, Gaussian error linear units, arXiv 1606.08415.
    """

    def impl(xp, x, *, approximate):
        if approximate == "none":
            return xp.gelu(x)
        if approximate != "tanh":
            raise RuntimeError(f'gelu: approximate must be "none" or "tanh", got {approximate!r}')
        return xp.gelu_tanh(x)

    def vjp_x(g, x, approximate):
        if approximate == "none":
            return gelu_grad(g, x)
        return gelu_tanh_grad(g, x)

    oracle = "retrograd.testing.references.activation.gelu"

    def samples(r):
        yield (r(3, 2),), {}
        yield (r(4),), {"approximate": "tanh"}

    def errors(r):
        yield (r(2),), {"approximate": "erf"}, RuntimeError, "gelu: approximate must be .* got 'erf'"


@op("leaky_relu(Tensor x, number negative_slope=0.01) -> Tensor")
class leaky_relu(Pointwise, promotion="float", in_place="argument", aliases="nn.functional.leaky_relu"):
    """x where it is positive, negative_slope * x elsewhere."""

    def impl(xp, x, *, negative_slope):
        xp.real_only("leaky_relu", x)
        check_factor_fits("leaky_relu", negative_slope, x.dtype)
        return xp.scale_negative(x, x, negative_slope)

    def vjp_x(g, x, negative_slope):
        return scale_negative(g, x, negative_slope)

    def oracle(np, x, negative_slope):
        return np.where(x > 0, x, x * negative_slope)

    def samples(r):
        yield (r(3, 2),), {}
        yield (r(4),), {"negative_slope": 0.2}


# ----------------------------------------------------------------------------- choosing, bounding, rounding


@op("where(Tensor condition, Tensor input, Tensor other) -> Tensor")
class where(Pointwise, linear="input,other", masks=1, in_place=False, elements="moved"):
    """Elements of `input` where the condition is true, of `other` elsewhere; all three broadcast."""

    impl = xp.where

    @classmethod
    def promote(cls, arrays):
        """Promote as others, and refuse numbers that overflow the dtype."""
        dtype = cls.compute_dtype(arrays)
        for a in arrays[1:]:
            check_element_fits("where", a, dtype)
        return cls.promote_to(dtype, arrays)

    def vjp_input(g, condition):
        return where(condition, g, 0)

    def vjp_other(g, condition):
        return where(condition, 0, g)

    oracle = "numpy.where"

    def samples(r):
        yield (r.booleans(3), r(3), r(2, 3)), {}
        yield (r.booleans(2, 1), r(3), 0.5), {}


def _maximum_vjp(g, a, b):
    return where(a == b, g / 2, where(a < b, 0, g))


def _minimum_vjp(g, a, b):
    return where(a == b, g / 2, where(a > b, 0, g))


maximum = pointwise("maximum(Tensor a, Tensor b) -> Tensor", xp.maximum,
    "The elementwise maximum of a and b.  Equal elements share the gradient.",
    vjp_a=lambda g, a, b: _maximum_vjp(g, a, b), vjp_b=lambda g, a, b: _maximum_vjp(g, b, a),
    oracle=lambda np, a, b: np.where(a > b, a, b))  # fmt: skip
minimum = pointwise("minimum(Tensor a, Tensor b) -> Tensor", xp.minimum,
    "The elementwise minimum of a and b.  Equal elements share the gradient.",
    vjp_a=lambda g, a, b: _minimum_vjp(g, a, b), vjp_b=lambda g, a, b: _minimum_vjp(g, b, a),
    oracle=lambda np, a, b: np.where(a < b, a, b))  # fmt: skip


def _clamp_dtype(x, min, max):
    """The dtype of the result: a float bound converts an integer tensor to float."""
    return dtypes.result_type(x, *[bound for bound in (min, max) if bound is not None])


@op("clamp_numbers(Tensor x, number? min=None, number? max=None) -> Tensor")
class clamp_numbers(Internal, Pointwise, node_name="ClampBackward1"):
    """`clamp` with bounds that are Python numbers."""

    def impl(xp, x, *, min, max):
        xp.real_only("clamp_numbers", x)
        if min is None and max is None:
            raise ValueError("clamp: At least one of 'min' or 'max' must not be None: give min, max, or both")
        dtype = _clamp_dtype(x, min, max)
        check_number_fits("clamp", min, dtype)
        check_number_fits("clamp", max, dtype)
        return xp.clip(x if x.dtype is dtype else xp.cast(x, dtype), min, max)

    def shape(x, *, min, max):
        return type(x)(x.shape, _clamp_dtype(x, min, max))

    def vjp_x(g, x, min, max):
        return where(_within_bounds(x, min, max), g, 0)

    oracle = "retrograd.testing.references.floats.clamp"

    def samples(r):
        yield (r(3, 2),), {"min": -0.5, "max": 0.7}
        yield (r(4),), {"min": 0.1}
        yield (r(4),), {"max": 0.1}
        yield (r.ints(5, (4,)),), {"max": 2.5}


@op("clamp_tensors(Tensor x, Tensor? min, Tensor? max) -> Tensor")
class clamp_tensors(Internal, Pointwise, node_name="ClampBackward0"):
    """`clamp` with at least one bound that is a tensor."""

    def impl(xp, x, min, max):
        xp.real_only("clamp_tensors", x)
        low = x if min is None else xp.maximum(x, min)
        return low if max is None else xp.minimum(low, max)

    def vjp_x(g, x, min, max):
        return where(_within_bounds(x, min, max), g, 0)

    def vjp_min(g, x, min, max):
        return where(x < min if max is None else logical_and(x < min, min <= max), g, 0)

    def vjp_max(g, x, min, max):
        return where(x > max if min is None else logical_or(x > max, min > max), g, 0)

    oracle = "retrograd.testing.references.floats.clamp"

    def samples(r):
        yield (r(4, 3), r(3), None), {}
        yield (r(4, 3), r(3, within=(-2.0, 0.0)), r(4, 1, within=(0.1, 1.0))), {}
        yield (r(4), -0.5, r(4)), {}


def _within_bounds(x, min, max):
    inside = x == x if min is None else x >= min
    return inside if max is None else logical_and(inside, x <= max)


@op("clamp(Tensor x, Tensor? min=None, Tensor? max=None) -> Tensor")
class clamp(Composite, in_place=True, aliases="clip"):
    """x limited to the range from min to max: numbers, or tensors that broadcast.  If min > max, the result is max.

    The derivative by x is 1 from min to max, bounds included.  Outside, the gradient goes to the bound that is
    exceeded.  At NaN it is 0.
    """

    def compose(x, min, max):
        if not hasattr(min, "dtype") and not hasattr(max, "dtype"):
            return call_fast(clamp_numbers, (x,), {"min": min, "max": max})
        return clamp_tensors(x, min, max)

    def oracle(np, x, min, max):
        return np.minimum(np.maximum(x, -np.inf if min is None else min), np.inf if max is None else max)

    def samples(r):
        yield (r(3, 2), -0.5, 0.7), {}
        yield (r(4, 3), r(3), None), {}
        yield (r(4, 3), r(3, within=(-2.0, 0.0)), r(4, 1, within=(0.1, 1.0))), {}
        yield (r(4), -0.5, r(4)), {}

    def errors(r):
        yield (r(2),), {}, ValueError, "min, max, or both"


floor = pointwise("floor(Tensor x) -> Tensor", xp.floor,
    "x rounded down to an integer.  Its derivative is 0.",
    vjp=zero_cotangent, oracle="numpy.floor")  # fmt: skip
ceil = pointwise("ceil(Tensor x) -> Tensor", xp.ceil,
    "x rounded up to an integer.  Its derivative is 0.",
    vjp=zero_cotangent, oracle="numpy.ceil")  # fmt: skip
trunc = pointwise("trunc(Tensor x) -> Tensor", xp.trunc,
    "x rounded towards 0 to an integer.  Its derivative is 0.",
    vjp=zero_cotangent, aliases="fix", oracle=lambda np, x: np.sign(x) * np.floor(np.abs(x)))  # fmt: skip


@op("round(Tensor x, *, int decimals=0) -> Tensor")
class round(Pointwise, aliases="special.round", opmath="x"):
    """x rounded to `decimals` decimals, halves to even; negative decimals round to tens.  Its derivative is 0."""

    def impl(xp, x, *, decimals):
        if x.dtype.kind == "b":  # NumPy makes float16 of it
            raise TypeError("round: not defined for bool")
        return xp.round(x, decimals)

    def node_name(fn):
        return f"RoundBackward{1 if fn.params['decimals'] else 0}"

    def vjp_x(g):
        return zero_cotangent(g)

    def oracle(np, x, decimals):
        rounded = [float(f"{v:.{decimals}f}") if decimals >= 0 else 10 * float(f"{v / 10:.0f}") for v in x.flat]
        return np.reshape(rounded, x.shape)

    def samples(r):
        yield (r(3, 2),), {}
        yield (r(4),), {"decimals": 2}
        yield (r(4, within=(10.0, 999.0)),), {"decimals": -1}


# ------------------------------------------------------------------------------------- comparison and logic


def _define_comparison(name, impl, doc, aliases=""):
    return pointwise(f"{name}(Tensor a, Tensor b) -> Tensor", impl, doc,
        family=Comparison, aliases=aliases, oracle=f"numpy.{impl.name}")  # fmt: skip


eq = _define_comparison("eq", xp.equal, "Whether a == b, elementwise.")
ne = _define_comparison("ne", xp.not_equal, "Whether a != b, elementwise.", "not_equal")
lt = _define_comparison("lt", xp.less, "Whether a < b, elementwise.", "less")
le = _define_comparison("le", xp.less_equal, "Whether a <= b, elementwise.", "less_equal")
gt = _define_comparison("gt", xp.greater, "Whether a > b, elementwise.", "greater")
ge = _define_comparison("ge", xp.greater_equal, "Whether a >= b, elementwise.", "greater_equal")
logical_and = _define_comparison("logical_and", xp.logical_and, "Whether both elements are nonzero.")
logical_or = _define_comparison("logical_or", xp.logical_or, "Whether at least one of the elements is nonzero.")
logical_xor = _define_comparison("logical_xor", xp.logical_xor, "Whether exactly one of the elements is nonzero.")
logical_not = pointwise("logical_not(Tensor x) -> Tensor", xp.logical_not,
    "Whether each element is zero.", family=Comparison, oracle="numpy.logical_not")  # fmt: skip
isnan = pointwise("isnan(Tensor x) -> Tensor", xp.isnan,
    "Whether each element is NaN.", family=Comparison, in_place=False, oracle="numpy.isnan")  # fmt: skip
isinf = pointwise("isinf(Tensor x) -> Tensor", xp.isinf,
    "Whether each element is infinite, of either sign.", family=Comparison, in_place=False,
    oracle="numpy.isinf")  # fmt: skip
isfinite = pointwise("isfinite(Tensor x) -> Tensor", xp.isfinite,
    "Whether each element is finite: neither infinite nor NaN.", family=Comparison, in_place=False,
    oracle="numpy.isfinite")  # fmt: skip

# ------------------------------------------------------------------------------------ identity and conversion


@op("to(Tensor x, dtype dtype) -> Tensor")
class to(Internal, Pointwise, linear="x", promotion=None, in_place=False, node_name="ToCopyBackward0"):
    """x converted to another dtype; complex to real takes the real part."""

    def impl(xp, x, *, dtype):
        return xp.cast_copy(x, dtype)

    def shape(x, *, dtype):
        return type(x)(x.shape, dtype)

    @classmethod
    def bind_widened(cls, namespace):
        """Return the kernel itself, which converts from and to all dtypes."""
        return cls.bind(namespace)

    def vjp_x(g):
        return g  # `fit` converts it to the input's dtype

    def oracle(np, x, dtype):
        return x.astype(dtype)

    def samples(r):
        yield (r(3, 2),), {"dtype": "float32"}
        yield (r(3),), {"dtype": "float64"}
        yield (r(3),), {"dtype": "int64"}


clone = pointwise("clone(Tensor x) -> Tensor", xp.copy,
    "A copy of x; gradients pass through.",
    vjp=lambda g: g, linear="x", internal=True, in_place=False, elements="moved", oracle="numpy.array")  # fmt: skip

row_major = pointwise("row_major(Tensor x) -> Tensor", xp.row_major,
    "A copy of x with row-major strides; `contiguous` calls it.",
    vjp=lambda g: g, linear="x", internal=True, in_place=False, elements="moved", oracle="numpy.array",
    node_name="CloneBackward0")  # fmt: skip


@op("detach(Tensor x) -> Tensor")
class detach(Pointwise, differentiable=False, view="one", promotion=None, in_place=False):
    """A view of x outside every graph.  It is an operator, so that each level detaches its own value."""

    @classmethod
    def bind(cls, namespace):
        return itemgetter(...)  # x[...], without a Python frame: a state dict detaches each of its tensors

    def shape(x):
        return x

    oracle = "numpy.array"

    def samples(r):
        yield (r(3),), {}
