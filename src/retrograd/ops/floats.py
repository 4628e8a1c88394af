"""Elementwise operators on floating values: rounding, signs, neighbours, comparison within tolerances, scaled sums."""

import math

from retrograd.backend.type_info import check_factor_fits, check_number_fits
from retrograd.core import Aval, Internal, Tensor, dtype_of, op, xp
from retrograd.core import dtype as dtypes
from retrograd.foundation.lazy_imports import add_attribute
from retrograd.foundation.older_forms import numbers_among_tensors
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.ops.batching import align_batched
from retrograd.ops.family import Comparison, Composite, Pointwise, cast_to, check_real, pointwise, zero_cotangent
from retrograd.ops.functions import check_tensor, function, overridable
from retrograd.ops.pointwise import (
    POSITIVE,
    add,
    clamp,
    clone,
    div,
    eq,
    exp2,
    in_dtype,
    isfinite,
    name_by_operand,
    pow,
    scale_operand,
    sigmoid,
    sign,
    sub,
    to,
    where,
)
from retrograd.ops.reduce import all as every


class Real(Pointwise):
    """An operator on real values.  The kernel may return another dtype than its operands have."""

    @classmethod
    def bind(cls, namespace):
        """Return the kernel, which refuses complex values."""
        return namespace.real_kernel(cls.__name__, super().bind(namespace))


# ------------------------------------------------------------------------------------------ arithmetic, scaled


def _scaled_samples(r):
    yield (r(3), r(3)), {}
    yield (r(4, 1), r(3)), {"alpha": 2.5}
    yield (r.ints(5, (3,)), r.ints(5, (3,))), {"alpha": 3}


def _fractional_alpha_errors(name):
    def errors(r):
        yield (r.ints(5, (3,)), r.ints(5, (3,))), {"alpha": 0.5}, RuntimeError, f"{name}: alpha must be an int"

    return errors


@op("scaled_add(Tensor a, Tensor b, *, number alpha=1) -> Tensor")
class scaled_add(Internal, Composite, in_place=True, opmath="a b"):
    """a + alpha * b: `add` with an alpha."""

    def compose(a, b, *, alpha):
        return add(a, scale_operand("add", a, b, alpha))

    samples, errors = _scaled_samples, _fractional_alpha_errors("add")

    def oracle(np, a, b, alpha):
        return a + alpha * b


@op("subtract(Tensor a, Tensor b, *, number alpha=1) -> Tensor")
class subtract(Composite, in_place=True, opmath="a b"):
    """Subtract: a - alpha * b."""

    def compose(a, b, *, alpha):
        return sub(a, scale_operand("subtract", a, b, alpha))

    samples, errors = _scaled_samples, _fractional_alpha_errors("subtract")

    def oracle(np, a, b, alpha):
        return a - alpha * b


@op("rsub(Tensor a, Tensor b, *, number alpha=1) -> Tensor")
class rsub(Composite, opmath="a b"):
    """Subtract with swapped operands: b - alpha * a."""

    def compose(a, b, *, alpha):
        return subtract(b, a, alpha=alpha)

    samples, errors = _scaled_samples, _fractional_alpha_errors("subtract")

    def oracle(np, a, b, alpha):
        return b - alpha * a


@op("rounded_quotient(Tensor a, Tensor b, *, str rounding_mode) -> Tensor")
class rounded_quotient(Internal, Pointwise, node_name="DivBackward2"):
    """a / b rounded down ("floor") or towards 0 ("trunc"); its derivatives are 0."""

    def impl(xp, a, b, *, rounding_mode):
        return xp.quotient(a, b, rounding_mode)

    def vjp_a(g):
        return zero_cotangent(g)

    def vjp_b(g):
        return zero_cotangent(g)

    oracle = "retrograd.testing.references.floats.rounded_quotient"

    def samples(r):
        yield (r(4, 1), r(3, within=(0.5, 2.0))), {"rounding_mode": "floor"}
        yield (r(4), r(4, within=(0.5, 2.0))), {"rounding_mode": "trunc"}
        yield (r.ints(9, (4,)) - 4, r.ints(3, (4,)) * 2 - 3), {"rounding_mode": "trunc"}


@op("divide(Tensor a, Tensor b, *, str? rounding_mode=None) -> Tensor")
class divide(Composite, in_place=True):
    """Divide: a / b; rounding_mode="floor" rounds down, "trunc" towards 0, in the operands' dtype with derivative 0.

    >>> import retrograd as rg
    >>> rg.divide(rg.tensor([-7, 7]), 2, rounding_mode="trunc").tolist()
    [-3, 3]
    """

    def compose(a, b, *, rounding_mode):
        if rounding_mode is None:
            return div(a, b)
        if rounding_mode not in ("floor", "trunc"):
            raise RuntimeError(f'divide: rounding_mode must be None, "floor" or "trunc", got {rounding_mode!r}')
        return rounded_quotient(a, b, rounding_mode=rounding_mode)

    oracle = "retrograd.testing.references.floats.divide"

    def samples(r):
        yield (r(3), r(3, within=(0.5, 2.0))), {}
        yield (r(4, 1), r(3, within=(0.5, 2.0))), {"rounding_mode": "trunc"}
        yield (r.ints(9, (4,)) - 4, 3), {"rounding_mode": "floor"}

    def errors(r):
        yield (r(2), r(2)), {"rounding_mode": "up"}, RuntimeError, "divide: rounding_mode must be .* got 'up'"


@op("addcmul(Tensor x, Tensor tensor1, Tensor tensor2, *, number value=1) -> Tensor")
class addcmul(Composite, in_place=True, opmath="x tensor1 tensor2"):
    """Add a scaled product: x + value * tensor1 * tensor2; all three broadcast."""

    older_form = numbers_among_tensors("value")

    def compose(x, tensor1, tensor2, *, value):
        dtype = dtypes.result_type(x, tensor1, tensor2)
        check_number_fits("addcmul: value", value, dtype)
        value = math.trunc(value) if dtype.kind in "iu" else value
        tensor1 = in_dtype(tensor1, dtype)
        return x + (tensor1 * tensor2 if value == 1 else tensor1 * value * tensor2)

    def oracle(np, x, a, b, value):
        return x + value * (a * b)

    def samples(r):
        yield (r(3), r(3), r(3)), {}
        yield (r(2, 3), r(2, 1), r(3)), {"value": -0.5}


@op("addcdiv(Tensor x, Tensor tensor1, Tensor tensor2, *, number value=1) -> Tensor")
class addcdiv(Composite, in_place=True, opmath="x tensor1 tensor2"):
    """Add a scaled quotient: x + value * tensor1 / tensor2; all three broadcast."""

    older_form = numbers_among_tensors("value")

    def compose(x, tensor1, tensor2, *, value):
        dtype = dtypes.result_type(x, tensor1, tensor2)
        check_number_fits("addcdiv: value", value, dtype)
        tensor1 = in_dtype(tensor1, dtype)
        return x + (tensor1 if value == 1 else tensor1 * value) / tensor2

    def oracle(np, x, a, b, value):
        return x + value * (a / b)

    def samples(r):
        yield (r(3), r(3), r(3, within=POSITIVE)), {}
        yield (r(2, 3), r(2, 1), r(3, within=POSITIVE)), {"value": -0.5}


@op("lerp(Tensor x, Tensor end, Tensor weight) -> Tensor")
class lerp(Pointwise, opmath="x end weight", exact_numbers=True):
    """Interpolate linearly: x + weight * (end - x), which is x where weight is 0, and exactly `end` where it is 1.

    >>> import retrograd as rg
    >>> rg.lerp(rg.tensor([0.0, 10.0]), rg.tensor([1.0, 20.0]), 0.25).tolist()
    [0.25, 12.5]
    """

    @classmethod
    def promote(cls, arrays):
        """Promote as others, and refuse numbers that overflow the dtype."""
        check_factor_fits("lerp", arrays[2], dtypes.result_type(*arrays[:2]))
        return super().promote(arrays)

    def impl(xp, x, end, weight):
        check_factor_fits("lerp", weight, x.dtype)  # in-place calls do not promote
        return xp.lerp(x, end, weight)

    node_name = name_by_operand("Lerp", 2)

    def vjp_x(g, weight):
        return g * (1 - weight)

    def vjp_end(g, weight):
        return g * weight

    def vjp_weight(g, x, end):
        return g * (end - x)

    def oracle(np, x, end, weight):
        return (1 - weight) * x + weight * end

    def samples(r):
        yield (r(3), r(3), 0.3), {}
        yield (r(4, 1), r(3), r(4, 3)), {}


@op("float_power(Tensor x, Tensor exponent) -> Tensor")
class float_power(Composite, in_place=True):
    """Raise x to the power exponent in double precision, for all dtypes of the operands."""

    def compose(x, exponent):
        wide = dtypes.complex128 if dtypes.result_type(x, exponent).kind == "c" else dtypes.float64
        return pow(*[cast_to(a, wide) if hasattr(a, "dtype") else a for a in (x, exponent)])

    exempt = {"float32 complex": "answers in double precision, as its name says"}

    def oracle(np, x, exponent):
        return np.exp(exponent * np.log(x))

    def samples(r):
        yield (r(3, within=POSITIVE), r(2, 3)), {}
        yield (r.ints(5, (3,)) + 1, -2), {}
        yield (2.0, r(3)), {}


@op("scale_by_power_of_2(Tensor x, Tensor exponent) -> Tensor")
class scale_by_power_of_2(Internal, Pointwise, promotion="float"):
    """x times 2 to the power of an integer, exact."""

    impl = xp.ldexp

    @classmethod
    def promote(cls, arrays):
        """Return x as a float, and the exponent unchanged."""
        return [*super().promote(arrays[:1]), arrays[1]]

    def vjp_x(g, exponent):
        return scale_by_power_of_2(g, exponent)

    def batch(batched, n, x, exponent):
        return scale_by_power_of_2(*align_batched((x, exponent), batched))

    def oracle(np, x, exponent):
        return x * 2.0**exponent

    def samples(r):
        yield (r(4, 1), r.ints(5, (3,)) - 2), {}
        yield (r(3), 3), {}


@op("ldexp(Tensor x, Tensor exponent) -> Tensor")
class ldexp(Composite, in_place=True):
    """Multiply x by 2 to the power exponent.

    This is exact for integers.  For other exponents, or complex x, the power is computed first, and must be in range.

    >>> import retrograd as rg
    >>> rg.ldexp(rg.tensor([1.0, 0.75]), rg.tensor([3, -1])).tolist()
    [8.0, 0.375]
    """

    def compose(x, exponent):
        if dtype_of(exponent).kind in "iu" and dtype_of(x).kind != "c":
            return scale_by_power_of_2(x, exponent)
        return clone(x) * exp2(exponent)  # so that x may be written to later

    def oracle(np, x, exponent):
        return x * 2.0**exponent

    def samples(r):
        yield (r(3), r.ints(5, (3,)) - 2), {}
        yield (r(4, 1), r(3)), {}


cbrt = pointwise("cbrt(Tensor x) -> Tensor", xp.cbrt,
    "Cube root, with the sign of x.",
    vjp=lambda g, out: g / (3 * out * out), promotion="float", domain=POSITIVE,
    oracle=lambda np, x: x ** (1 / 3))  # fmt: skip
hypot = pointwise("hypot(Tensor a, Tensor b) -> Tensor", xp.hypot,
    "sqrt(a^2 + b^2), without overflow; at the origin the derivative does not exist, and is NaN.",
    vjp_a=lambda g, a, out: g * (a / out), vjp_b=lambda g, b, out: g * (b / out),
    promotion="float", oracle=lambda np, a, b: np.sqrt(a * a + b * b))  # fmt: skip
logaddexp2 = pointwise("logaddexp2(Tensor a, Tensor b) -> Tensor", xp.logaddexp2,
    "log2(2^a + 2^b), without overflow.",
    vjp_a=lambda g, a, b: g * sigmoid((a - b) * math.log(2)), vjp_b=lambda g, a, b: g * sigmoid((b - a) * math.log(2)),
    promotion="float", oracle=lambda np, a, b: np.log2(2**a + 2**b))  # fmt: skip
rad2deg = pointwise("rad2deg(Tensor x) -> Tensor", xp.rad2deg,
    "Convert radians to degrees.",
    vjp=lambda g: g * (180 / math.pi), linear="x", promotion="float",
    oracle=lambda np, x: x * 180 / math.pi)  # fmt: skip
deg2rad = pointwise("deg2rad(Tensor x) -> Tensor", xp.deg2rad,
    "Convert degrees to radians.",
    vjp=lambda g: g * (math.pi / 180), linear="x", promotion="float",
    oracle=lambda np, x: x / 180 * math.pi)  # fmt: skip

# --------------------------------------------------------------------------------------------------- rounding


frac = pointwise("frac(Tensor x) -> Tensor", lambda xp, x: x - xp.trunc(x),
    "Fractional part with the sign of x: x - trunc(x); its derivative is 1.",
    vjp=lambda g: g, oracle=lambda np, x: np.modf(x)[0])  # fmt: skip
fmod = pointwise("fmod(Tensor a, Tensor b) -> Tensor", xp.fmod,
    "Remainder with the sign of a: a - trunc(a / b) * b.",
    vjp_a=lambda g: g, vjp_b=lambda g, a, b: -g * rounded_quotient(a, b, rounding_mode="trunc"),
    domain=(0.7, 5.0), node_name=name_by_operand("Fmod", 1),
    oracle=lambda np, a, b: a - np.trunc(a / b) * b)  # fmt: skip



@op("frexp_exponent(Tensor x) -> Tensor")
class frexp_exponent(Internal, Pointwise, differentiable=False):
    """The exponent of `frexp`, in int32."""

    def impl(xp, x):
        check_real("frexp_exponent", x)
        return xp.frexp(x)[1]

    def shape(x):
        check_real("frexp_exponent", x)
        return Aval(x.shape, dtypes.int32)

    oracle = "retrograd.testing.references.floats.frexp_exponent"

    def samples(r):
        yield (r(3, 2),), {}


@op("frexp_mantissa(Tensor x) -> Tensor")
class frexp_mantissa(Internal, Pointwise, snapshots="x", node_name="FrexpBackward0"):
    """The mantissa of `frexp`; its derivative is 2 to the power -exponent."""

    def impl(xp, x):
        check_real("frexp_mantissa", x)
        return xp.frexp(x)[0]

    def vjp_x(g, x):
        return g / 2 / exp2(to(frexp_exponent(x) - 1, g.dtype))  # halved: 2 to the largest exponent is infinite

    oracle = "retrograd.testing.references.floats.frexp_mantissa"

    def samples(r):
        yield (r(3, 2),), {}


@op("frexp(Tensor x) -> (Tensor mantissa, Tensor exponent)")
class frexp(Composite):
    """Decompose x into mantissa * 2**exponent, a named tuple: |mantissa| is in [0.5, 1), or 0; the exponent is int32.

    >>> import retrograd as rg
    >>> mantissa, exponent = rg.frexp(rg.tensor([6.0, -0.75]))
    >>> mantissa.tolist(), exponent.tolist()
    ([0.75, -0.75], [3, 0])
    """

    def compose(x):
        check_real("frexp", x)
        return frexp_mantissa(x), frexp_exponent(x)

    oracle = "retrograd.testing.references.floats.frexp"

    def samples(r):
        yield (r(3, 2),), {}

    def errors(r):
        yield (r.ints(5, (2,)),), {}, TypeError, "frexp: expected a real floating dtype, got int64"


# ------------------------------------------------------------------------------------------- signs, neighbours


copysign = pointwise("copysign(Tensor a, Tensor b) -> Tensor", xp.copysign,
    "|a| with the sign of b, also of -0.0; the derivative by a is 0 where a is 0, that by b is 0.",
    vjp_a=lambda g, a, b: g * (sign(a) * copysign(1.0, b)), vjp_b=zero_cotangent, snapshots="b",
    promotion="float", oracle=lambda np, a, b: np.abs(a) * np.sign(b))  # fmt: skip
nextafter = pointwise("nextafter(Tensor a, Tensor b) -> Tensor", xp.nextafter,
    "Next representable value after a towards b; b where they are equal, with derivative 0; by b it is always 0.",
    vjp_a=lambda g, a, b: where(eq(a, b), 0, g), vjp_b=zero_cotangent,
    promotion="float", oracle=lambda np, a, b: np.vectorize(math.nextafter)(a, b))  # fmt: skip
heaviside = pointwise("heaviside(Tensor x, Tensor values) -> Tensor", lambda xp, x, v: xp.where(x == 0, v, x > 0),
    "Heaviside step: 0 where x is negative, 1 where it is positive, `values` where it is 0; derivative 0 by x.",
    vjp_x=zero_cotangent, vjp_values=lambda g, x: where(eq(x, 0), g, 0), family=Real,
    oracle=lambda np, x, values: np.where(x == 0, values, x > 0))  # fmt: skip
signbit = pointwise("signbit(Tensor x) -> Tensor", xp.signbit,
    "Whether the sign bit is set, as in -0.0.", family=Comparison, in_place=False,
    oracle=lambda np, x: x < 0)  # fmt: skip


def _constant_predicate(name, value, doc):
    def impl(xp, x):
        xp.real_only(name, x)
        return x == value

    return pointwise(f"{name}(Tensor x) -> Tensor", impl, doc,
        family=Comparison, in_place=False, oracle=lambda np, x: x == value)  # fmt: skip


isposinf = _constant_predicate("isposinf", math.inf, "Whether x is infinite and positive.")
isneginf = _constant_predicate("isneginf", -math.inf, "Whether x is infinite and negative.")
fmax = pointwise("fmax(Tensor a, Tensor b) -> Tensor", xp.fmax,
    "Maximum of a and b, ignoring NaN if only one is; of equals, a has the gradient.",
    vjp_a=lambda g, a, b: where(a >= b, g, where(b == b, 0, g)),
    vjp_b=lambda g, a, b: where(a >= b, 0, where(b == b, g, 0)), family=Real,
    oracle=lambda np, a, b: np.where(a > b, a, b))  # fmt: skip
fmin = pointwise("fmin(Tensor a, Tensor b) -> Tensor", xp.fmin,
    "Minimum of a and b, ignoring NaN if only one is; of equals, a has the gradient.",
    vjp_a=lambda g, a, b: where(a <= b, g, where(b == b, 0, g)),
    vjp_b=lambda g, a, b: where(a <= b, 0, where(b == b, g, 0)), family=Real,
    oracle=lambda np, a, b: np.where(a < b, a, b))  # fmt: skip


@op("positive(Tensor x) -> Tensor")
class positive(Composite):
    """Return x itself; TypeError for booleans, which have no sign."""

    def compose(x):
        if x.dtype == dtypes.bool_:
            raise TypeError("positive: expected numbers, got bool")
        return x

    oracle = "numpy.array"

    def samples(r):
        yield (r(3, 2),), {}

    def errors(r):
        yield (r.booleans(3),), {}, TypeError, "positive: expected numbers, got bool"


@op("nan_to_num(Tensor x, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor")
class nan_to_num(Pointwise):
    """Replace NaN (default 0) and infinities (default the dtype's largest) by numbers; there the derivative is 0.

    >>> import retrograd as rg
    >>> rg.nan_to_num(rg.tensor([1.0, float("nan"), float("inf")]), posinf=9.0).tolist()
    [1.0, 0.0, 9.0]
    """

    def impl(xp, x, *, nan, posinf, neginf):
        return xp.nan_to_num(x, nan=nan or 0.0, posinf=posinf, neginf=neginf)

    def vjp_x(g, x):
        return where(isfinite(x), g, 0)

    def oracle(np, x, nan, posinf, neginf):
        largest = np.finfo(x.dtype).max
        posinf, neginf = largest if posinf is None else posinf, -largest if neginf is None else neginf
        values = [
            (nan or 0.0) if math.isnan(v) else posinf if v == math.inf else neginf if v == -math.inf else v
            for v in x.flat
        ]
        return np.reshape(values, x.shape)

    def samples(r):
        yield (r(3, 2),), {}
        yield (r(4),), {"nan": 1.5, "posinf": 2.5, "neginf": -3.0}


# ------------------------------------------------------------------------------------------------- comparison


@op("clamp_min(Tensor x, Tensor min) -> Tensor")
class clamp_min(Composite, in_place=True):
    """Clamp x to at least min, a number or a tensor: `clamp` with one bound."""

    def compose(x, min):
        return clamp(x, min, None)

    def oracle(np, x, min):
        return np.where(x < min, min, x)

    def samples(r):
        yield (r(3, 2), -0.3), {}
        yield (r(4, 3), r(3)), {}


@op("clamp_max(Tensor x, Tensor max) -> Tensor")
class clamp_max(Composite, in_place=True):
    """Clamp x to at most max, a number or a tensor: `clamp` with one bound."""

    def compose(x, max):
        return clamp(x, None, max)

    def oracle(np, x, max):
        return np.where(x > max, max, x)

    def samples(r):
        yield (r(3, 2), 0.3), {}
        yield (r(4, 3), r(3)), {}


@op("isclose(Tensor a, Tensor b, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor")
class isclose(Comparison, in_place=False):
    """Whether |a - b| <= atol + rtol * |b|; equal infinities are close, and NaN is close to NaN if equal_nan is set."""

    def impl(xp, a, b, *, rtol, atol, equal_nan):
        if rtol < 0 or atol < 0:
            raise ValueError(f"isclose: tolerances must not be negative, got rtol={rtol}, atol={atol}")
        return xp.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)

    def oracle(np, a, b, rtol, atol, equal_nan):
        return np.abs(a - b) <= atol + rtol * np.abs(b)

    def samples(r):
        yield (r(4, 1), r(3)), {}
        yield (r(3), 0.5), {"rtol": 0.5, "atol": 0.1}

    def errors(r):
        yield (r(2), r(2)), {"atol": -1.0}, ValueError, "isclose: tolerances must not be negative, .* atol=-1.0"


@function("allclose")
@overridable
@suggest_keywords
def allclose(input: Tensor, other: Tensor, rtol=1e-05, atol=1e-08, equal_nan=False) -> bool:
    """Whether all elements are close, by the rule of `isclose`.

    >>> import retrograd as rg
    >>> rg.allclose(rg.tensor([1.0, 2.0]), rg.tensor([1.0, 2.0 + 1e-9]))
    True
    """
    return bool(every(isclose(input, other, rtol, atol, equal_nan)))


@function("equal")
@overridable
def equal(input, other) -> bool:
    """Whether two tensors have the same shape and equal elements; NaN is not equal to itself.

    >>> import retrograd as rg
    >>> rg.equal(rg.ones(2), rg.ones(3))
    False
    """
    return check_tensor("equal", input).shape == check_tensor("equal", other).shape and bool(every(eq(input, other)))


add_attribute(Tensor, "allclose", allclose)
add_attribute(Tensor, "equal", equal)
