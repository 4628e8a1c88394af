"""Activation functions: elementwise ones, and those along one dimension."""

# Kernels write into one result array instead of making a temporary per step, and use minima and maxima instead of
# masks, which cost several times as much.  `asarray` converts NumPy scalars to arrays.

import math
from operator import index

from retrograd.backend.type_info import check_factor_fits, check_number_fits
from retrograd.core import Internal, op, registry, xp
from retrograd.core import dtype as dtypes
from retrograd.foundation.older_forms import dim_by_rank
from retrograd.ops.family import Composite, Pointwise, canonical_dim, cast_to, pointwise, zero_cotangent
from retrograd.ops.functions import function
from retrograd.ops.max_min import argmax
from retrograd.ops.mutate import inplace_function
from retrograd.ops.nn import softmax
from retrograd.ops.pointwise import (
    abs,
    clamp,
    detach,
    eq,
    exp,
    leaky_relu,
    log,
    log1p,
    relu,
    sigmoid,
    softplus,
    softplus_grad,
    square,
    tanh,
    where,
)
from retrograd.ops.view import narrow, reshape

# ---------------------------------------------------------------------------------------------- exponential

ALPHA, SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946  # of Klambauer et al.


@op("elu_grad(Tensor t, Tensor x, float alpha, float scale, float steep) -> Tensor")
class elu_grad(Internal, Pointwise, promotion="float", in_place=False):
    """t times the derivative at x of scale * x where x is positive, of scale * alpha * expm1(steep * x) elsewhere."""

    def impl(xp, t, x, *, alpha, scale, steep):
        return xp.elu_grad(t, x, alpha, scale, steep)

    def vjp_t(g, x, alpha, scale, steep):
        return elu_grad(g, x, alpha, scale, steep)

    def vjp_x(g, t, x, alpha, scale, steep):
        low = x <= 0
        return where(low, g * t * (exp(where(low, x, 0) * steep) * (alpha * scale * steep * steep)), 0)

    oracle = "retrograd.testing.references.activation.elu_grad"

    def samples(r):
        yield (r(3, 4), r(3, 4)), {"alpha": 1.0, "scale": 1.0, "steep": 1.0}
        yield (r(4, 1), r(3)), {"alpha": 0.5, "scale": 1.5, "steep": 2.0}
        yield (r(4), r(4)), {"alpha": -0.5, "scale": 1.0, "steep": -2.0}


def _elu(xp, name, x, alpha, scale=1.0, steep=1.0):
    """Return x where it is positive and alpha * expm1(steep * x) elsewhere, times scale."""
    xp.real_only(name, x)
    return xp.elu(x, alpha, scale, steep)


@op("elu(Tensor x, float alpha=1.0) -> Tensor")
class elu(Pointwise, promotion="float", in_place="argument", home="nn.functional"):
    """Exponential linear unit: x where positive, alpha * expm1(x) elsewhere; the derivative at 0 is alpha.

    D.-A. Clevert, T. Unterthiner and S. Hochreiter, Fast and accurate deep network learning by exponential linear
    units, arXiv 1511.07289.

    >>> import retrograd as rg
    >>> rg.nn.functional.elu(rg.tensor([-1000.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    def impl(xp, x, *, alpha):
        check_factor_fits("elu", alpha, x.dtype)
        return _elu(xp, "elu", x, alpha)

    def vjp_x(g, x, alpha):
        return elu_grad(g, x, alpha, 1.0, 1.0)

    oracle = "retrograd.testing.references.activation.elu"

    def samples(r):
        yield (r(3, 2),), {}
        yield (r(4),), {"alpha": 0.5}


@op("selu(Tensor x) -> Tensor")
class selu(Pointwise, promotion="float", in_place="argument", method=False, aliases="nn.functional.selu",
           node_name="EluBackward0"):
    """Scaled exponential linear unit: 1.0507 * elu(x, 1.6733); a stack of such layers keeps mean 0 and variance 1.

    G. Klambauer et al., Self-normalizing neural networks, arXiv 1706.02515, with the constants of its code.
    """

    def impl(xp, x):
        return _elu(xp, "selu", x, ALPHA, SCALE)

    def vjp_x(g, x):
        return elu_grad(g, x, ALPHA, SCALE, 1.0)

    oracle = "retrograd.testing.references.activation.selu"

    def samples(r):
        yield (r(3, 2),), {}


@op("celu(Tensor x, float alpha=1.0) -> Tensor")
class celu(Pointwise, promotion="float", in_place="argument", method=False, aliases="nn.functional.celu"):
    """Exponential linear unit with slope 1 at 0: x where positive, alpha * expm1(x / alpha) elsewhere; alpha is not 0.

    J. T. Barron, Continuously differentiable exponential linear units, arXiv 1704.07483.
    """

    def impl(xp, x, *, alpha):
        if alpha == 0:
            raise RuntimeError("celu: alpha must not be 0")
        check_factor_fits("celu", alpha, x.dtype)
        return _elu(xp, "celu", x, alpha, steep=1 / alpha)

    def vjp_x(g, x, alpha):
        return elu_grad(g, x, alpha, 1.0, 1 / alpha)

    oracle = "retrograd.testing.references.activation.celu"

    def samples(r):
        yield (r(3, 2),), {}
        yield (r(4),), {"alpha": 0.5}
        yield (r(4),), {"alpha": -1.5}

    def errors(r):
        yield (r(3),), {"alpha": 0.0}, RuntimeError, "celu: alpha must not be 0"


def _mish(xp, x):
    """Return x tanh(log(1 + e)) for e = exp(x), as x e (e + 2) / (e (e + 2) + 2): 1 long before e * e overflows."""
    xp.real_only("mish", x)
    e = xp.asarray(xp.minimum(x, 5.5 if x.dtype == dtypes.float16 else 20.0))
    xp.exp(e, out=e)
    out = xp.asarray(e + 2)
    out *= e
    out /= xp.add(out, 2, out=e)
    out *= x
    return out


def _mish_derivative(x, t):
    return t + x * sigmoid(x) * (1 - t * t)


mish = pointwise("mish(Tensor x) -> Tensor", _mish,
    """Mish: x * tanh(softplus(x)).  D. Misra, Mish, arXiv 1908.08681.""",
    vjp=lambda g, x: g * _mish_derivative(x, tanh(softplus(x))), promotion="float",
    in_place="argument", home="nn.functional", oracle=lambda np, x: x * np.tanh(np.log(1 + np.exp(x))))  # fmt: skip


def _logsigmoid(xp, x):
    xp.real_only("logsigmoid", x)
    return xp.softplus(x, -1.0, math.inf)  # -log(1 + exp(-x))


logsigmoid = pointwise("logsigmoid(Tensor x) -> Tensor", _logsigmoid,
    "Logarithm of the sigmoid: log(1 / (1 + exp(-x))), without overflow.",
    vjp=lambda g, x: softplus_grad(g, x, -1.0, math.inf), promotion="float", home="nn.functional",
    oracle=lambda np, x: -np.log(1 + np.exp(-x)), node_name="LogSigmoidBackward0")  # fmt: skip


tanhshrink = pointwise("tanhshrink(Tensor x) -> Tensor", lambda xp, x: x - xp.tanh(x),
    "x - tanh(x).",  # the derivative is tanh(x)^2: 1 - (1 - tanh(x)^2) would cancel near 0
    vjp=lambda g, x: g * square(tanh(x)), promotion="float", home="nn.functional", in_place=False,
    snapshots="x", oracle=lambda np, x: x - np.sinh(x) / np.cosh(x), node_name="SubBackward0")  # fmt: skip


def _softsign(xp, x):
    xp.real_only("real_softsign", x)
    return x / (xp.absolute(x) + 1)


real_softsign = pointwise("real_softsign(Tensor x) -> Tensor", _softsign,
    "x / (1 + abs(x)) of real values.",
    vjp=lambda g, x: g / square(abs(x) + 1), promotion="float", internal=True,
    oracle=lambda np, x: x / (1 + np.abs(x)), node_name="DivBackward0")  # fmt: skip


@op("softsign(Tensor x) -> Tensor")
class softsign(Composite, home="nn.functional", opmath="x"):
    """Softsign: x / (1 + abs(x))."""

    def compose(x):
        return x / (abs(x) + 1) if x.dtype.kind == "c" else real_softsign(x)

    def oracle(np, x):
        return x / (1 + np.abs(x))

    def samples(r):
        yield (r(3, 2),), {}


# ------------------------------------------------------------------------------------------------- piecewise


@op("between(Tensor t, Tensor x, number low, number high) -> Tensor")
class between(Internal, Pointwise, promotion="float", in_place=False):
    """t where x is strictly between two numbers, 0 elsewhere."""

    def impl(xp, t, x, *, low, high):
        return xp.between(t, x, low, high)

    def vjp_t(g, x, low, high):
        return between(g, x, low, high)

    vjp_x = zero_cotangent

    def oracle(np, t, x, low, high):
        return t * (x > low) * (x < high)

    def samples(r):
        yield (r(3, 4), r(3, 4)), {"low": -0.5, "high": 0.7}
        yield (r(4, 1), r(3)), {"low": -1, "high": 0}


@op("outside(Tensor t, Tensor x, number low, number high) -> Tensor")
class outside(Internal, Pointwise, promotion="float", in_place=False):
    """t where x is less than the first number, or more than the second, and 0 elsewhere, also where x is NaN."""

    def impl(xp, t, x, *, low, high):
        return xp.outside(t, x, low, high)

    def vjp_t(g, x, low, high):
        return outside(g, x, low, high)

    vjp_x = zero_cotangent

    def oracle(np, t, x, low, high):
        return t * ((x < low) | (x > high))

    def samples(r):
        yield (r(3, 4), r(3, 4)), {"low": -0.5, "high": 0.7}
        yield (r(4, 1), r(3)), {"low": -math.inf, "high": 0}


@op("hardtanh(Tensor x, number min_val=-1.0, number max_val=1.0) -> Tensor")
class hardtanh(Pointwise, in_place="argument", home="nn.functional"):
    """Clamp x to the range from min_val to max_val; the derivative at the bounds is 0."""

    def impl(xp, x, *, min_val, max_val):
        _check_bounds(xp, x, min_val, max_val)
        if x.dtype.kind in "iu":
            min_val, max_val = math.trunc(min_val), math.trunc(max_val)
            if x.dtype.kind == "u" and min_val < 0:
                raise RuntimeError("hardtanh: cannot do hardtanh on an unsigned type with negative limits")
        check_number_fits("hardtanh", min_val, x.dtype)
        check_number_fits("hardtanh", max_val, x.dtype)
        return xp.clip(x, x.dtype.type(min_val), x.dtype.type(max_val))

    def vjp_x(g, x, min_val, max_val):
        return between(g, x, min_val, max_val)

    def oracle(np, x, min_val, max_val):
        return np.maximum(np.minimum(x, max_val), min_val)

    def samples(r):
        yield (r(3, 2),), {}
        yield (r(4),), {"min_val": -0.3, "max_val": 0.5}

    def errors(r):
        yield (r(3),), {"min_val": 1.0, "max_val": -1.0}, ValueError, "min_val must not be larger than max_val"


def _check_bounds(xp, x, low, high):
    xp.real_only("hardtanh", x)
    if low > high:
        raise ValueError(f"hardtanh: min_val must not be larger than max_val, got {low} and {high}")


def _relu6(xp, x):
    xp.real_only("relu6", x)
    return xp.clip(x, x.dtype.type(0), x.dtype.type(6))


relu6 = pointwise("relu6(Tensor x) -> Tensor", _relu6,
    "Clamp x to the range from 0 to 6; the derivative at the bounds is 0.",
    vjp=lambda g, x: between(g, x, 0, 6), in_place="argument", home="nn.functional", domain=(-3.0, 9.0),
    oracle=lambda np, x: np.maximum(np.minimum(x, 6), 0), node_name="HardtanhBackward0")  # fmt: skip


hardsigmoid = pointwise("hardsigmoid(Tensor x) -> Tensor", xp.hardsigmoid,
    "Piecewise linear sigmoid: x / 6 + 1 / 2, clamped to the range from 0 to 1; the derivative at the bounds is 0.",
    vjp=lambda g, x: between(g / 6, x, -3, 3), promotion="float",
    in_place="argument", home="nn.functional", domain=(-6.0, 6.0),
    oracle=lambda np, x: np.where(x <= -3, 0, np.where(x >= 3, 1, x / 6 + 0.5)))  # fmt: skip
hardswish = pointwise("hardswish(Tensor x) -> Tensor", xp.hardswish,
    "x * hardsigmoid(x); the derivative is 0 at -3 and 1 at 3.  A. Howard et al., MobileNetV3, arXiv 1905.02244.",
    vjp=lambda g, x: hardswish_grad(g, x), promotion="float",
    in_place="argument", home="nn.functional", domain=(-6.0, 6.0),
    oracle=lambda np, x: np.where(x <= -3, 0, np.where(x >= 3, x, x * (x + 3) / 6)))  # fmt: skip
hardswish_grad = pointwise("hardswish_grad(Tensor t, Tensor x) -> Tensor", xp.hardswish_grad,
    "t times the derivative of `hardswish` at x.",
    vjp_t=lambda g, x: hardswish_grad(g, x), vjp_x=lambda g, t, x: between(g * t / 3, x, -3, 3),
    promotion="float", internal=True, in_place=False, domain=(-6.0, 6.0),
    oracle=lambda np, t, x: t * np.where(x <= -3, 0, np.where(x >= 3, 1, x / 3 + 0.5)))  # fmt: skip


@op("hardshrink(Tensor x, float lambd=0.5) -> Tensor")
class hardshrink(Pointwise, promotion="float", in_place=False, aliases="nn.functional.hardshrink"):
    """Return 0 where abs(x) is at most lambd, with derivative 0, and x elsewhere."""

    def impl(xp, x, *, lambd):
        xp.real_only("hardshrink", x)
        check_number_fits("hardshrink", lambd, x.dtype)
        return xp.hardshrink(x, lambd)

    def vjp_x(g, x, lambd):
        return outside(g, x, -lambd, lambd)

    def oracle(np, x, lambd):
        return np.where(np.abs(x) > lambd, x, 0)

    def samples(r):
        yield (r(3, 2),), {}
        yield (r(4),), {"lambd": 0.1}


@op("softshrink(Tensor x, float lambd=0.5) -> Tensor")
class softshrink(Pointwise, promotion="float", in_place=False, home="nn.functional"):
    """Move x towards 0 by lambd; where abs(x) is at most lambd, the result and the derivative are 0."""

    def impl(xp, x, *, lambd):
        xp.real_only("softshrink", x)
        if not lambd >= 0:
            raise RuntimeError(f"softshrink: lambd must be at least 0, got {lambd}")
        return xp.softshrink(x, lambd)

    def vjp_x(g, x, lambd):
        return outside(g, x, -lambd, lambd)

    def oracle(np, x, lambd):
        return np.sign(x) * np.maximum(np.abs(x) - lambd, 0)

    def samples(r):
        yield (r(3, 2),), {}
        yield (r(4),), {"lambd": 0.1}

    def errors(r):
        yield (r(3),), {"lambd": -1.0}, RuntimeError, "lambd must be at least 0, got -1.0"


@op("threshold(Tensor x, number threshold, number value) -> Tensor")
class threshold(Pointwise, in_place="argument", method=False, aliases="nn.functional.threshold"):
    """Return x where it is greater than the threshold, and `value`, with derivative 0, elsewhere."""

    def impl(xp, x, *, threshold, value):
        xp.real_only("threshold", x)
        check_factor_fits("threshold", threshold, x.dtype)
        check_number_fits("threshold", value, x.dtype)
        return xp.where(x <= threshold, x.dtype.type(value), x)

    def vjp_x(g, x, threshold):
        return where(x <= threshold, 0, g)

    def oracle(np, x, threshold, value):
        return np.where(x > threshold, x, value)

    def samples(r):
        yield (r(3, 2),), {"threshold": 0.1, "value": -3.0}


# ------------------------------------------------------------------------- with a weight for negative values


@op("prelu_scale(Tensor x, Tensor weight) -> Tensor")
class prelu_scale(Internal, Pointwise, node_name="PreluKernelBackward0"):
    """Return x where it is positive and weight * x elsewhere; the derivative at 0 is the weight."""

    def impl(xp, x, weight):
        xp.real_only("prelu_scale", x)
        if weight.ndim == 0:
            return xp.scale_negative(x, x, weight)
        return xp.where(x > 0, x, x * weight)

    def vjp_x(g, x, weight):
        return where(x > 0, g, g * weight)

    def vjp_weight(g, x):
        return where(x > 0, 0, g * x)

    def oracle(np, x, weight):
        return np.where(x > 0, x, weight * x)

    def samples(r):
        yield (r(3, 4), r(4)), {}
        yield (r(3), r(3)), {}


@op("prelu(Tensor x, Tensor weight) -> Tensor")
class prelu(Composite, aliases="nn.functional.prelu"):
    """Return x where positive and weight * x elsewhere: one weight, or one per channel, which is dimension 1 of x.

    K. He et al., Delving deep into rectifiers, arXiv 1502.01852.

    >>> import retrograd as rg
    >>> rg.prelu(rg.tensor([[-2.0, -2.0]]), rg.tensor([0.5, 0.25])).tolist()
    [[-1.0, -0.5]]
    """

    def compose(x, weight):
        _check_prelu(x, weight)
        if weight.numel() == 1:
            return prelu_scale(x, reshape(weight, ()))
        return prelu_scale(x, reshape(weight, (weight.numel(), *(1,) * (x.ndim - 2))))

    def oracle(np, x, weight):
        weight = weight if weight.size == 1 else weight.reshape(-1, *(1,) * (x.ndim - 2))
        return np.where(x > 0, x, weight * x)

    def samples(r):
        yield (r(3, 2), r(1)), {}
        yield (r(2, 3, 2), r(3)), {}
        yield (r(4), r()), {}

    def errors(r):
        yield (r(3, 2), r(3)), {}, RuntimeError, r"prelu: 3 weights do not fit shape \(3, 2\)"
        yield (r(3, 2), r(2, 1)), {}, RuntimeError, "prelu: the weight must have at most one dimension"


def _check_prelu(x, weight):
    if x.dtype != weight.dtype:
        raise RuntimeError(f"prelu: x and weight must have one dtype, got {x.dtype} and {weight.dtype}")
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: the weight must have at most one dimension, got shape {weight.shape}")
    count = weight.numel()
    if count != 1 and count != (index(x.shape[1]) if x.ndim > 1 else 1):
        raise RuntimeError(f"prelu: {count} weights do not fit shape {x.shape}: expected 1 or the size of dimension 1")


@op("rrelu(Tensor x, float lower=0.125, float upper=0.3333333333333333, bool training=False) -> Tensor")
class rrelu(Composite, in_place="argument", method=False, aliases="nn.functional.rrelu"):
    """Randomized leaky ReLU: x where positive, slope * x elsewhere; in training, slopes are drawn from [lower, upper].

    Otherwise the slope is (lower + upper) / 2.  B. Xu et al., Empirical evaluation of rectified activations,
    arXiv 1505.00853.
    """

    def compose(x, *, lower, upper, training):
        if lower > upper:
            raise RuntimeError(f"rrelu: lower must not be larger than upper, got {lower} and {upper}")
        if not training:
            return leaky_relu(x, (lower + upper) / 2)
        slopes = registry["rand"](x.shape, dtype=x.dtype) * (upper - lower) + lower
        return prelu_scale(x, slopes)

    def oracle(np, x, lower, upper, training):
        return np.where(x > 0, x, x * (lower + upper) / 2)

    def samples(r):
        yield (r(3, 2),), {}
        yield (r(4),), {"lower": 0.2, "upper": 0.4}

    def errors(r):
        yield (r(3),), {"lower": 0.5, "upper": 0.2}, RuntimeError, "lower must not be larger than upper"


# --------------------------------------------------------------------------------------- along one dimension


@op("glu(Tensor x, int dim=-1) -> Tensor")
class glu(Composite, home="nn.functional"):
    """Gated linear unit: the first half of x along dim, times the sigmoid of the second half.

    Y. Dauphin et al., Language modeling with gated convolutional networks, arXiv 1612.08083.

    >>> import retrograd as rg
    >>> rg.nn.functional.glu(rg.tensor([3.0, 0.0])).tolist()
    [1.5]
    """

    def compose(x, *, dim):
        at = canonical_dim("glu", dim, x.ndim)
        if x.ndim == 0:
            raise RuntimeError("glu does not support 0-dimensional tensors, as they have no dimension to be halved")
        if x.shape[at] % 2:
            raise RuntimeError(
                f"glu: dimension {dim} of shape {x.shape} must have an even size, to be halved; Halving dimension must "
                f"be even, but dimension {at} is size {x.shape[at]}"
            )
        half = x.shape[at] // 2
        return narrow(x, at, 0, half) * sigmoid(narrow(x, at, half, half))

    oracle = "retrograd.testing.references.activation.glu"

    def samples(r):
        yield (r(3, 4),), {}
        yield (r(4, 3),), {"dim": 0}

    def errors(r):
        yield (r(3, 3),), {}, RuntimeError, "must have an even size"


@op("softmin(Tensor x, int dim, dtype? dtype=None) -> Tensor")
class softmin(Composite, home="nn.functional"):
    """Softmax of -x along dim."""

    older_form = staticmethod(dim_by_rank)

    def compose(x, *, dim, dtype):
        return softmax(-x, dim, dtype)

    def oracle(np, x, dim, dtype):
        return np.exp(-x) / np.exp(-x).sum(dim, keepdims=True)

    def samples(r):
        yield (r(3, 4),), {"dim": 1}
        yield (r(4),), {"dim": 0, "dtype": "float64"}


@op("gumbel_softmax(Tensor logits, float tau=1.0, bool hard=False, float eps=1e-10, int dim=-1) -> Tensor")
class gumbel_softmax(Composite, home="nn.functional"):
    """Sample from the Gumbel-softmax distribution along dim: softmax((logits + Gumbel noise) / tau).

    Small tau gives samples close to one-hot.  With hard, the result is the nearest one-hot vector, with the derivative
    of the soft sample.  eps is not used, as in PyTorch.
    E. Jang, S. Gu and B. Poole, Categorical reparameterization with Gumbel-softmax, arXiv 1611.01144.
    """

    def compose(logits, *, tau, hard, eps, dim):
        soft = softmax((logits + _gumbel_noise(logits)) / tau, dim)
        if not hard:
            return soft
        at = canonical_dim("gumbel_softmax", dim, soft.ndim)
        numbers = registry["arange"](0, soft.shape[at] if soft.ndim else 1, 1)
        numbers = reshape(numbers, [-1 if d == at else 1 for d in range(soft.ndim)])
        chosen = eq(argmax(soft, at, keepdim=True), numbers) if soft.ndim else eq(soft, soft)
        return cast_to(chosen, soft.dtype) + (soft - detach(soft))  # the corner exactly: the difference is 0

    exempt = {
        "float32": "in single precision it draws other random numbers",
        "bfloat16": "random: the noise has the dtype of the input",
        "oracle": "random: tests/ops/test_activation.py",
    }

    def samples(r):
        yield (r(3, 4),), {"tau": 0.5}
        yield (r(4, 2),), {"dim": 0}


def _gumbel_noise(x):
    """Return Gumbel noise -log(-log(u)), for u uniform in (0, 1], in the shape and dtype of x."""
    waiting = -log1p(-registry["rand"](x.shape, dtype=x.dtype))
    return -log(clamp(waiting, min=1e-30 if x.dtype.itemsize > 2 else 1e-7))


# -------------------------------------------------------------------------------------------------- in place

for _operator, _homes in {
    relu: ("", "nn.functional."),
    selu: ("", "nn.functional."),
    celu: ("", "nn.functional."),
    rrelu: ("", "nn.functional."),
    threshold: ("", "nn.functional."),
    elu: ("nn.functional.",),
    hardtanh: ("nn.functional.",),
    leaky_relu: ("nn.functional.",),
}.items():
    function(*[f"{_home}{_operator.name}_" for _home in _homes])(inplace_function(_operator))
