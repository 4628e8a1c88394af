"""Losses between predictions and target values, by the names and rules of torch.nn.functional."""

import math
from collections.abc import Callable

from retrograd.core import Internal, op, xp
from retrograd.foundation.older_forms import older_reduction
from retrograd.foundation.source_location import warn_user
from retrograd.ops.activation import logsigmoid
from retrograd.ops.family import Composite, Pointwise, broadcast_shapes, cast_to, pointwise
from retrograd.ops.pointwise import abs, clamp, exp, isinf, log, logical_and, lt, square, to, where
from retrograd.ops.reduce import mean
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import expand


def _identity(loss):
    return loss


REDUCTIONS: dict[str, Callable] = {"mean": mean, "sum": sum_over, "none": _identity}


def get_reduction(name, reduction):
    """Return the reduction of that name for elementwise losses; a ValueError lists the names."""
    if reduction not in REDUCTIONS:
        raise ValueError(
            f"{name}: reduction must be 'mean', 'sum' or 'none', got {reduction!r}; {reduction} is not a valid value "
            "for reduction"
        )
    return REDUCTIONS[reduction]


def broadcast_pair(name, x, target):
    """Return input and target, one without dimensions in the shape of the other; a warning if their shapes differ.

    An expanded tensor without dimensions takes part in promotion as any other, as in PyTorch.
    """
    warn_about_broadcast(name, x, target)
    if not hasattr(target, "shape") or x.ndim == target.ndim or min(x.ndim, target.ndim):
        return x, target
    shape = broadcast_shapes(name, (x.shape, target.shape))
    return expand(x, shape), expand(target, shape)


def warn_about_broadcast(name, x, target):
    """Warn of shapes that differ, mostly an unnoticed mistake: (n, 1) against (n,) is (n, n)."""
    shape = getattr(target, "shape", ())
    if shape == x.shape:
        return
    warn_user(
        f"{name}: the input has shape {x.shape} and the target {shape}: they broadcast. Reshape one of them if that "
        f"is not what you want."
    )


def _pair_samples(r):
    yield (r(3, 4), r(3, 4)), {}
    yield (r(3, 4), r(3, 4)), {"reduction": "sum"}
    yield (r(3, 4), r(3, 4)), {"reduction": "none"}


# ------------------------------------------------------------------------------------------ of differences


def _apply_weight(name, loss, weight, x):
    """Return the elementwise losses times weight, which has the shape of x."""
    if weight is None:
        return loss
    if weight.shape != x.shape:
        raise ValueError(f"{name}: weight has shape {weight.shape}, expected that of the input, {x.shape}")
    return loss * weight


def weighted_mean(loss, weights):
    """Divide the sum of the weighted losses by that of the weights; NaN if that is 0, with gradient 0."""
    return share(sum_over(loss), to(sum_over(weights), loss.dtype))


share = pointwise("share(Tensor total, Tensor weight) -> Tensor", xp.quotient_or_nan,
    "total / weight, a mean; its derivative is 0 where the weight is 0.",
    vjp_total=lambda g, weight: share_grad(g, weight),
    vjp_weight=lambda g, total, weight: -share_grad(g * share(total, weight), weight),
    jvp_weight=lambda t, weight, out: -share_grad(t * out, weight),
    promotion="float", internal=True, in_place=False, domain=(0.5, 2.0),
    oracle=lambda np, total, weight: total / weight)  # fmt: skip
share_grad = pointwise("share_grad(Tensor t, Tensor weight) -> Tensor", xp.quotient_or_zero,
    "t / weight, and 0 where the weight is 0.",
    vjp_t=lambda g, weight: share_grad(g, weight),
    vjp_weight=lambda g, t, weight: -share_grad(g * share_grad(t, weight), weight),
    jvp_weight=lambda t, weight, out: -share_grad(t * out, weight),
    promotion="float", internal=True, in_place=False, domain=(0.5, 2.0),
    oracle=lambda np, t, weight: t / weight)  # fmt: skip


def _difference_loss(name, loss, x, target, weight, reduction):
    """Return the losses of x and target, times weight, reduced; the mean is weighted."""
    finish = get_reduction(name, reduction)
    x, target = broadcast_pair(name, x, target)
    out = _apply_weight(name, loss(x, target), weight, x)
    return finish(out) if weight is None or reduction != "mean" else weighted_mean(out, weight)


def _weighted_samples(r):
    yield (r(3, 4), r(3, 4), None), {}
    yield (r(3, 4), r(3, 4), None), {"reduction": "sum"}
    yield (r(3, 4), r(3, 4), r(3, 4, within=(0.5, 2.0))), {}
    yield (r(3, 4), r(3, 4), r(3, 4, within=(0.5, 2.0))), {"reduction": "none"}


def _weighted_errors(r):
    yield (r(3), r(3), None), {"reduction": "max"}, ValueError, "reduction must be 'mean', 'sum' or 'none', got 'max'"
    yield (r(3), r(3), r(1)), {}, ValueError, r"weight has shape \(1,\), expected that of the input, \(3,\)"


@op("mse_loss(Tensor x, Tensor target, str reduction='mean', Tensor? weight=None) -> Tensor")
class mse_loss(Composite, aliases="nn.functional.mse_loss"):
    """Mean squared error: (x - target)^2 times weight, reduced by mean, sum or none; the mean is weighted.

    >>> import retrograd as rg
    >>> rg.mse_loss(rg.tensor([1.0, 2.0]), rg.tensor([1.0, 4.0])).item()
    2.0
    """

    older_form = older_reduction("input target size_average reduce reduction weight")
    method = False

    def compose(x, target, weight, *, reduction):
        # With weights, PyTorch too computes the difference by itself: later writes to x do not change its gradient.
        fused = weight is None and x.dtype.kind == "f"
        loss = squared_difference if fused else lambda x, target: square(x - target)
        return _difference_loss("mse_loss", loss, x, target, weight, reduction)

    oracle = "retrograd.testing.references.losses.mse_loss"

    samples = _weighted_samples
    errors = _weighted_errors


@op("l1_loss(Tensor x, Tensor target, str reduction='mean', Tensor? weight=None) -> Tensor")
class l1_loss(Composite, aliases="nn.functional.l1_loss"):
    """Mean absolute error: abs(x - target) times weight, reduced by mean, sum or none; the mean is weighted."""

    older_form = older_reduction("input target size_average reduce reduction weight")
    method = False

    def compose(x, target, weight, *, reduction):
        return _difference_loss("l1_loss", lambda x, target: abs(x - target), x, target, weight, reduction)

    oracle = "retrograd.testing.references.losses.l1_loss"

    samples = _weighted_samples
    errors = _weighted_errors


squared_difference = pointwise("squared_difference(Tensor x, Tensor target) -> Tensor", xp.squared_difference,
    "(x - target)^2 of real values.",
    vjp_x=lambda g, x, target: squared_difference_grad(g, x, target),
    vjp_target=lambda g, x, target: squared_difference_grad(g, target, x),
    promotion="float", internal=True, in_place=False,
    oracle=lambda np, x, target: (x - target) ** 2, node_name="MseLossBackward0")  # fmt: skip


@op("squared_difference_grad(Tensor t, Tensor x, Tensor target) -> Tensor")
class squared_difference_grad(Internal, Pointwise, promotion="float", in_place=False):
    """t times the derivative of `squared_difference` with respect to x."""

    impl = xp.squared_difference_grad

    def vjp_t(g, x, target):
        return squared_difference_grad(g, x, target)

    def vjp_x(g, t):
        return g * t * 2

    def vjp_target(g, t):
        return g * t * -2

    def oracle(np, t, x, target):
        return t * 2 * (x - target)

    def samples(r):
        yield (r(3, 4), r(3, 4), r(3, 4)), {}
        yield (r(4, 1), r(3), r(4, 3)), {}


@op("huber(Tensor x, Tensor target, float delta, float divisor) -> Tensor")
class huber(Internal, Pointwise, promotion="float", in_place=False):
    """d^2 / 2 where d = abs(x - target) is at most delta, delta * (d - delta / 2) elsewhere, divided by a number."""

    def impl(xp, x, target, *, delta, divisor):
        return xp.huber(x, target, delta, divisor)

    def vjp_x(g, x, target, delta, divisor):
        return huber_grad(g, x, target, delta, divisor)

    def vjp_target(g, x, target, delta, divisor):
        return huber_grad(g, target, x, delta, divisor)

    def oracle(np, x, target, delta, divisor):
        d = np.abs(x - target)
        return np.where(d < delta, d * d / 2, delta * (d - delta / 2)) / divisor

    def samples(r):
        yield (r(3, 4), r(3, 4)), {"delta": 1.0, "divisor": 1.0}
        yield (r(4), r(3, 1)), {"delta": 0.3, "divisor": 0.3}


@op("huber_grad(Tensor t, Tensor x, Tensor target, float delta, float divisor) -> Tensor")
class huber_grad(Internal, Pointwise, promotion="float", in_place=False):
    """t times the derivative of `huber` with respect to x."""

    def impl(xp, t, x, target, *, delta, divisor):
        return xp.huber_grad(t, x, target, delta, divisor)

    def vjp_t(g, x, target, delta, divisor):
        return huber_grad(g, x, target, delta, divisor)

    def vjp_x(g, t, x, target, delta, divisor):
        return where(lt(abs(x - target), delta), g * t / divisor, 0)

    def vjp_target(g, t, x, target, delta, divisor):
        return where(lt(abs(x - target), delta), g * t / -divisor, 0)

    def oracle(np, t, x, target, delta, divisor):
        d = x - target
        return t * np.where(np.abs(d) < delta, d, delta * np.sign(d)) / divisor

    def samples(r):
        yield (r(3, 4), r(3, 4), r(3, 4)), {"delta": 1.0, "divisor": 1.0}
        yield (r(4, 1), r(3), r(4, 3)), {"delta": 0.3, "divisor": 0.3}


@op("smooth_l1_loss(Tensor x, Tensor target, str reduction='mean', float beta=1.0) -> Tensor")
class smooth_l1_loss(Composite, aliases="nn.functional.smooth_l1_loss"):
    """Smooth L1 loss: with d = abs(x - target), d^2 / (2 beta) where d < beta, d - beta / 2 elsewhere.

    R. Girshick, Fast R-CNN, arXiv 1504.08083.
    """

    older_form = older_reduction("input target size_average reduce reduction beta")
    method = False

    def compose(x, target, *, reduction, beta):
        finish = get_reduction("smooth_l1_loss", reduction)
        if beta < 0:
            raise ValueError(f"smooth_l1_loss: beta must be at least 0, got {beta}")
        x, target = broadcast_pair("smooth_l1_loss", x, target)
        return finish(huber(x, target, beta, beta) if beta else abs(x - target))

    oracle = "retrograd.testing.references.losses.smooth_l1_loss"

    def samples(r):
        yield from _pair_samples(r)
        yield (r(4), r(4)), {"beta": 0.3}

    def errors(r):
        yield (r(3), r(3)), {"beta": -1.0}, ValueError, "beta must be at least 0"


@op("huber_loss(Tensor x, Tensor target, str reduction='mean', float delta=1.0, Tensor? weight=None) -> Tensor")
class huber_loss(Composite, aliases="nn.functional.huber_loss"):
    """Huber loss: with d = abs(x - target), d^2 / 2 where d < delta, delta * (d - delta / 2) elsewhere; times weight.

    The mean is over the elements even with weights, as in PyTorch and unlike `mse_loss` and `l1_loss`.

    P. J. Huber, Robust estimation of a location parameter, Ann. Math. Statist. 35 (1964).
    """

    method = False

    def compose(x, target, weight, *, reduction, delta):
        finish = get_reduction("huber_loss", reduction)
        if delta <= 0:
            raise ValueError(f"huber_loss: delta must be more than 0, got {delta}")
        x, target = broadcast_pair("huber_loss", x, target)
        loss = huber(x, target, delta, 1.0)
        loss = cast_to(loss, x.dtype) if x.dtype.kind == "f" else loss  # also with a wider target, as in PyTorch
        return finish(_apply_weight("huber_loss", loss, weight, x))

    oracle = "retrograd.testing.references.losses.huber_loss"

    def samples(r):
        yield from _weighted_samples(r)
        yield (r(4), r(4), None), {"delta": 0.3}

    def errors(r):
        yield (r(3), r(3), None), {"delta": 0.0}, ValueError, "delta must be more than 0"


# ----------------------------------------------------------------------------------- of two probabilities


SMALLEST = math.exp(-100)  # log-probabilities are clamped to at least -100, as in PyTorch


@op("bernoulli_loss(Tensor x, Tensor target) -> Tensor")
class bernoulli_loss(Internal, Pointwise, promotion="float"):
    """-(target log x + (1 - target) log(1 - x)), with logarithms clamped to at least -100; x from 0 to 1."""

    impl = xp.bernoulli_loss

    def vjp_x(g, x, target):
        return g * ((x - target) / clamp(x * (1 - x), min=1e-12))

    def vjp_target(g, x):
        return g * (log(clamp(1 - x, min=SMALLEST)) - log(clamp(x, min=SMALLEST)))

    oracle = "retrograd.testing.references.losses.bernoulli_loss"

    def samples(r):
        yield (r(3, 4, within=(0.1, 0.9)), r(3, 4, within=(0.0, 1.0))), {}

    def errors(r):
        yield (r(3) + 5, r(3)), {}, ValueError, "probabilities must be from 0 to 1"


def _check_same_shape(name, x, target):
    if x.shape != target.shape:
        raise ValueError(
            f"{name}: Using a target size ({target.shape}) that is different to the input size ({x.shape}) is "
            f"deprecated. Please ensure they have the same size. The input has shape {x.shape}, the target "
            f"{target.shape}: they must agree; Target size ({target.shape}) must be the same as input size ({x.shape})"
        )


@op("binary_cross_entropy(Tensor x, Tensor target, Tensor? weight=None, str reduction='mean') -> Tensor")
class binary_cross_entropy(Composite, aliases="nn.functional.binary_cross_entropy"):
    """Binary cross entropy of probabilities: -(target log x + (1 - target) log(1 - x)) times weight.

    Logarithms are clamped to at least -100.  For logits, `binary_cross_entropy_with_logits` is more accurate.
    """

    older_form = older_reduction("input target weight size_average reduce reduction")
    method = False

    def compose(x, target, weight, *, reduction):
        finish = get_reduction("binary_cross_entropy", reduction)
        _check_same_shape("binary_cross_entropy", x, target)
        loss = bernoulli_loss(x, target)
        return finish(loss if weight is None else loss * weight)

    oracle = "retrograd.testing.references.losses.binary_cross_entropy"

    def samples(r):
        yield (r(3, 4, within=(0.1, 0.9)), r(3, 4, within=(0.0, 1.0)), None), {}
        yield (r(3, 4, within=(0.1, 0.9)), r(3, 4, within=(0.0, 1.0)), r(4)), {"reduction": "sum"}

    def errors(r):
        yield (r(3), r(3, 1), None), {}, ValueError, "they must agree"


@op(
    "binary_cross_entropy_with_logits(Tensor x, Tensor target, Tensor? weight=None, str reduction='mean', "
    "Tensor? pos_weight=None) -> Tensor"
)
class binary_cross_entropy_with_logits(Composite, home="nn.functional", opmath="x target weight pos_weight"):
    """Binary cross entropy of logits: that of sigmoid(x), without overflow; pos_weight scales the positive part.

    >>> import retrograd as rg
    >>> rg.nn.functional.binary_cross_entropy_with_logits(rg.tensor([1000.0]), rg.tensor([1.0])).item()
    0.0
    """

    older_form = older_reduction("input target weight size_average reduce reduction pos_weight")

    def compose(x, target, weight, pos_weight, *, reduction):
        finish = get_reduction("binary_cross_entropy_with_logits", reduction)
        _check_same_shape("binary_cross_entropy_with_logits", x, target)
        positive = -logsigmoid(x)
        if pos_weight is not None:
            positive = positive * (1 + (pos_weight - 1) * target)
        loss = (1 - target) * x + positive
        return finish(loss if weight is None else loss * weight)

    oracle = "retrograd.testing.references.losses.binary_cross_entropy_with_logits"

    def samples(r):
        yield (r(3, 4), r(3, 4, within=(0.0, 1.0)), None, None), {}
        yield (r(3, 4), r(3, 4, within=(0.0, 1.0)), r(4), r(4, within=(0.5, 2.0))), {"reduction": "none"}

    def errors(r):
        yield (r(3), r(3, 1), None, None), {}, ValueError, "they must agree"


# --------------------------------------------------------------------------------------- of distributions


@op("kl_div(Tensor x, Tensor target, str reduction='mean', bool log_target=False) -> Tensor")
class kl_div(Composite, home="nn.functional"):
    """Kullback-Leibler divergence: target * (log(target) - x), 0 where target is 0; x holds log-probabilities.

    log_target: the target holds log-probabilities too.  reduction: "batchmean", the sum divided by the first size, is
    the divergence per sample.
    """

    older_form = older_reduction("input target size_average reduce reduction log_target")

    def compose(x, target, *, reduction, log_target):
        if reduction not in (*REDUCTIONS, "batchmean"):
            raise ValueError(
                f"kl_div: reduction must be 'batchmean', 'mean', 'sum' or 'none', got {reduction!r}"
            )
        loss = _kl_of_logs(x, target) if log_target else _kl(x, target)
        if reduction == "batchmean":
            return sum_over(loss) / ((x.shape[0] or math.nan) if x.ndim else 1)
        return REDUCTIONS[reduction](loss)

    oracle = "retrograd.testing.references.losses.kl_div"

    def samples(r):
        yield (r(3, 4), r(3, 4, within=(0.1, 1.0))), {}
        yield (r(3, 4), r(3, 4, within=(0.1, 1.0))), {"reduction": "batchmean"}
        yield (r(3, 4), r(3, 4)), {"log_target": True, "reduction": "sum"}

    def errors(r):
        yield (r(3), r(3)), {"reduction": "max"}, ValueError, "'batchmean', 'mean', 'sum' or 'none'"


def _kl_of_logs(x, target):
    none = target == -math.inf
    target, x = where(none, 0, target), where(none, 0, x)
    return exp(target) * (target - x)


def _kl(x, target):
    none = logical_and(target == 0, isinf(x))  # 0 * inf is NaN
    return _entropy(target) - target * where(none, 0, x)


def _entropy(p):
    """Return p log p: 0 where p is 0, NaN where it is negative."""
    positive = p > 0
    return where(positive, p * log(where(positive, p, 1)), p * cast_to(where(p >= 0, 1, math.nan), p.dtype))
