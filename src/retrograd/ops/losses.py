"""Losses, by the names and rules of torch.nn.functional."""

import math
import warnings

from retrograd.core import Aval, Definition, op, xp
from retrograd.ops.activation import logsigmoid
from retrograd.ops.embedding import lookup
from retrograd.ops.family import Composite, Pointwise
from retrograd.ops.nn import log_softmax, softmax
from retrograd.ops.pointwise import abs, clamp, exp, isinf, log, logical_and, lt, ne, square, to, where
from retrograd.ops.reduce import mean
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import movedim, reshape, unsqueeze


def _itself(loss):
    return loss


REDUCTIONS = {"mean": mean, "sum": sum_over, "none": _itself}


def reduction_named(name, reduction):
    """What to do with the losses of the elements; a ValueError lists what there is."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"{name}: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    return REDUCTIONS[reduction]


def warn_of_broadcast(name, x, target):
    """Shapes that differ are mostly a mistake that nobody would notice: (n, 1) against (n,) is (n, n)."""
    if getattr(target, "shape", ()) != x.shape:
        warnings.warn(
            f"{name}: the input has shape {x.shape} and the target {getattr(target, 'shape', ())}: they "
            f"broadcast. Reshape one of them if that is not what you want.",
            stacklevel=4,
        )


def _pair_samples(r):
    yield (r(3, 4), r(3, 4)), {}
    yield (r(3, 4), r(3, 4)), {"reduction": "sum"}
    yield (r(3, 4), r(3, 4)), {"reduction": "none"}


def _reduction_error(r):
    yield (
        (r(3), r(3)),
        {"reduction": "max"},
        ValueError,
        "reduction must be 'mean', 'sum' or 'none', got 'max'",
    )


# ------------------------------------------------------------------------------------------ of differences


@op("mse_loss(Tensor x, Tensor target, str reduction='mean') -> Tensor")
class mse_loss(Composite, aliases="nn.functional.mse_loss"):
    """(x - target)^2, averaged, added up or as it is.

    >>> import retrograd as rg
    >>> rg.mse_loss(rg.tensor([1.0, 2.0]), rg.tensor([1.0, 4.0])).item()
    2.0
    """

    method = False

    def compose(x, target, *, reduction):
        finish = reduction_named("mse_loss", reduction)
        warn_of_broadcast("mse_loss", x, target)
        return finish(square(x - target))

    samples = _pair_samples
    errors = _reduction_error


@op("l1_loss(Tensor x, Tensor target, str reduction='mean') -> Tensor")
class l1_loss(Composite, aliases="nn.functional.l1_loss"):
    """abs(x - target), averaged, added up or as it is."""

    method = False

    def compose(x, target, *, reduction):
        finish = reduction_named("l1_loss", reduction)
        warn_of_broadcast("l1_loss", x, target)
        return finish(abs(x - target))

    samples = _pair_samples
    errors = _reduction_error


@op("smooth_l1_loss(Tensor x, Tensor target, str reduction='mean', float beta=1.0) -> Tensor")
class smooth_l1_loss(Composite, aliases="nn.functional.smooth_l1_loss"):
    """With d = abs(x - target): d^2 / (2 beta) where d < beta, d - beta / 2 elsewhere.

    R. Girshick, Fast R-CNN, arXiv 1504.08083.
    """

    method = False

    def compose(x, target, *, reduction, beta):
        finish = reduction_named("smooth_l1_loss", reduction)
        if beta < 0:
            raise ValueError(f"smooth_l1_loss: beta must be at least 0, got {beta}")
        warn_of_broadcast("smooth_l1_loss", x, target)
        difference = x - target
        d = abs(difference)
        return finish(d if beta == 0 else where(lt(d, beta), square(difference) * (0.5 / beta), d - 0.5 * beta))

    def samples(r):
        yield from _pair_samples(r)
        yield (r(4), r(4)), {"beta": 0.3}

    def errors(r):
        yield (r(3), r(3)), {"beta": -1.0}, ValueError, "beta must be at least 0"


@op("huber_loss(Tensor x, Tensor target, str reduction='mean', float delta=1.0) -> Tensor")
class huber_loss(Composite, aliases="nn.functional.huber_loss"):
    """With d = abs(x - target): d^2 / 2 where d < delta, delta * (d - delta / 2) elsewhere.

    P. J. Huber, Robust estimation of a location parameter, Ann. Math. Statist. 35 (1964).
    """

    method = False

    def compose(x, target, *, reduction, delta):
        finish = reduction_named("huber_loss", reduction)
        if delta <= 0:
            raise ValueError(f"huber_loss: delta must be more than 0, got {delta}")
        warn_of_broadcast("huber_loss", x, target)
        difference = x - target
        d = abs(difference)
        return finish(where(lt(d, delta), 0.5 * square(difference), delta * (d - 0.5 * delta)))

    def samples(r):
        yield from _pair_samples(r)
        yield (r(4), r(4)), {"delta": 0.3}

    def errors(r):
        yield (r(3), r(3)), {"delta": 0.0}, ValueError, "delta must be more than 0"


# ----------------------------------------------------------------------------------- of two probabilities


SMALLEST = math.exp(-100)  # logarithms of probabilities are at least -100, as in PyTorch


@op("bernoulli_loss(Tensor x, Tensor target) -> Tensor")
class bernoulli_loss(Pointwise, promotion="float"):
    """-(target log x + (1 - target) log(1 - x)), each logarithm at least -100; x from 0 to 1."""

    public = False
    method = False

    impl = xp.bernoulli_loss

    def vjp_x(g, x, target):
        return g * ((x - target) / clamp(x * (1 - x), min=1e-12))

    def vjp_target(g, x):
        return g * (log(clamp(1 - x, min=SMALLEST)) - log(clamp(x, min=SMALLEST)))

    def samples(r):
        yield (r(3, 4, within=(0.1, 0.9)), r(3, 4, within=(0.0, 1.0))), {}

    def errors(r):
        yield (r(3) + 5, r(3)), {}, ValueError, "probabilities must be from 0 to 1"


def _same_shape(name, x, target):
    if x.shape != target.shape:
        raise ValueError(f"{name}: the input has shape {x.shape}, the target {target.shape}: they must agree")


@op("binary_cross_entropy(Tensor x, Tensor target, Tensor? weight=None, str reduction='mean') -> Tensor")
class binary_cross_entropy(Composite, aliases="nn.functional.binary_cross_entropy"):
    """-(target log x + (1 - target) log(1 - x)) times weight, of probabilities x, logarithms at least -100.

    Of numbers that are not probabilities yet, take `binary_cross_entropy_with_logits`, which is more exact.
    """

    method = False

    def compose(x, target, weight, *, reduction):
        finish = reduction_named("binary_cross_entropy", reduction)
        _same_shape("binary_cross_entropy", x, target)
        loss = bernoulli_loss(x, target)
        return finish(loss if weight is None else loss * weight)

    def samples(r):
        yield (r(3, 4, within=(0.1, 0.9)), r(3, 4, within=(0.0, 1.0)), None), {}
        yield (r(3, 4, within=(0.1, 0.9)), r(3, 4, within=(0.0, 1.0)), r(4)), {"reduction": "sum"}

    def errors(r):
        yield (r(3), r(3, 1), None), {}, ValueError, "they must agree"


@op(
    "binary_cross_entropy_with_logits(Tensor x, Tensor target, Tensor? weight=None, str reduction='mean', "
    "Tensor? pos_weight=None) -> Tensor"
)
class binary_cross_entropy_with_logits(Composite, aliases="nn.functional.binary_cross_entropy_with_logits"):
    """`binary_cross_entropy` of sigmoid(x), without overflow; pos_weight weighs the positive part.

    >>> import retrograd as rg
    >>> rg.binary_cross_entropy_with_logits(rg.tensor([1000.0]), rg.tensor([1.0])).item()
    0.0
    """

    method = False

    def compose(x, target, weight, pos_weight, *, reduction):
        finish = reduction_named("binary_cross_entropy_with_logits", reduction)
        _same_shape("binary_cross_entropy_with_logits", x, target)
        positive = -logsigmoid(x)
        if pos_weight is not None:
            positive = positive * (1 + (pos_weight - 1) * target)
        loss = (1 - target) * x + positive
        return finish(loss if weight is None else loss * weight)

    def samples(r):
        yield (r(3, 4), r(3, 4, within=(0.0, 1.0)), None, None), {}
        yield (r(3, 4), r(3, 4, within=(0.0, 1.0)), r(4), r(4, within=(0.5, 2.0))), {"reduction": "none"}

    def errors(r):
        yield (r(3), r(3, 1), None, None), {}, ValueError, "they must agree"


# --------------------------------------------------------------------------------------------- of classes


@op("class_loss(Tensor x, Tensor target, *, int ignore_index=-100) -> Tensor")
class class_loss(Definition):
    """-log softmax(x) at the target: x (..., classes), integers (...) to (...); 0 for ignore_index."""

    public = False
    method = False

    def impl(xp, x, target, *, ignore_index):
        check_classes("cross_entropy", x, target)
        return xp.class_loss(x, target, ignore_index)

    def shape(x, target, *, ignore_index):
        check_classes("cross_entropy", x, target)
        return Aval(target.shape, x.dtype)

    def vjp_x(g, x, target, ignore_index):
        return unsqueeze(g, -1) * class_residual(x, target, ignore_index=ignore_index)

    def jvp_x(t, x, target, ignore_index):
        return sum_over(t * class_residual(x, target, ignore_index=ignore_index), -1)

    def samples(r):
        yield (r(3, 4), r.ints(4, (3,))), {}
        yield (r(2, 3, 4), r.ints(4, (2, 3))), {"ignore_index": 1}
        yield (r(4), r.ints(4, ())), {}

    def errors(r):
        yield (
            (r(3, 4), r.ints(1, (3,)) + 4),
            {},
            IndexError,
            "classes: 4 to 4 are named, but there are 0 to 3",
        )


@op("class_residual(Tensor x, Tensor target, *, int ignore_index=-100) -> Tensor")
class class_residual(Definition):
    """softmax(x) - one_hot(target), the derivative of `class_loss`; 0 where the target is ignore_index."""

    public = False
    method = False

    def impl(xp, x, target, *, ignore_index):
        check_classes("cross_entropy", x, target)
        return xp.class_residual(x, target, ignore_index)

    def shape(x, target, *, ignore_index):
        check_classes("cross_entropy", x, target)
        return x

    def vjp_x(g, x, target, ignore_index):
        return _softmax_slope(g, x, target, ignore_index)

    def jvp_x(t, x, target, ignore_index):
        return _softmax_slope(t, x, target, ignore_index)

    def samples(r):
        yield (r(3, 4), r.ints(4, (3,))), {}
        yield (r(2, 3, 4), r.ints(4, (2, 3))), {"ignore_index": 1}


def _softmax_slope(g, x, target, ignore_index):
    s = softmax(x, -1)
    return where(unsqueeze(ne(target, ignore_index), -1), s * (g - sum_over(g * s, -1, keepdim=True)), 0)


@op("pick_class(Tensor x, Tensor target, *, int ignore_index=-100) -> Tensor")
class pick_class(Definition, linear="x"):
    """x at the target: x (..., classes), integers (...) to (...); 0 where the target is ignore_index."""

    public = False
    method = False

    def impl(xp, x, target, *, ignore_index):
        check_classes("nll_loss", x, target)
        return xp.pick_class(x, target, ignore_index)

    def shape(x, target, *, ignore_index):
        check_classes("nll_loss", x, target)
        return Aval(target.shape, x.dtype)

    def vjp_x(g, x_aval, target, ignore_index):
        return place_class(g, target, classes=x_aval.shape[-1], ignore_index=ignore_index)

    def samples(r):
        yield (r(3, 4), r.ints(4, (3,))), {}
        yield (r(2, 3, 4), r.ints(4, (2, 3))), {"ignore_index": 1}


@op("place_class(Tensor src, Tensor target, *, int classes, int ignore_index=-100) -> Tensor")
class place_class(Definition, linear="src"):
    """Zeros (..., classes) with src (...) at the target: the transpose of `pick_class`."""

    public = False
    method = False

    def impl(xp, src, target, *, classes, ignore_index):
        check_classes("nll_loss", unsqueezed(src, classes), target)
        return xp.place_class(src, target, classes, ignore_index)

    def shape(src, target, *, classes, ignore_index):
        check_classes("nll_loss", unsqueezed(src, classes), target)
        return Aval((*target.shape, classes), src.dtype)

    def vjp_src(g, target, ignore_index):
        return pick_class(g, target, ignore_index=ignore_index)

    def samples(r):
        yield (r(3), r.ints(4, (3,))), {"classes": 4}
        yield (r(2, 3), r.ints(4, (2, 3))), {"classes": 4, "ignore_index": 1}


def unsqueezed(src, classes):
    """The aval of the tensor that `src` was picked from."""
    return Aval((*src.shape, classes), src.dtype)


def check_classes(name, x, target):
    """x (..., classes) and integer targets (...)."""
    if target.dtype.kind not in "iu":
        raise TypeError(
            f"{name}: class numbers must be integers, got {target.dtype}; convert with .to('int64')"
        )
    if x.ndim == 0 or x.shape[:-1] != target.shape:
        raise ValueError(f"{name}: inputs {x.shape} (classes last) and targets {target.shape} do not fit")


def classes_last(name, x, target):
    """x with its classes, dimension 1 of several or 0 of one, as the last; a ValueError names both shapes."""
    at = 1 if x.ndim > 1 else 0
    if x.ndim == 0 or (*x.shape[:at], *x.shape[at + 1 :]) != target.shape:
        raise ValueError(
            f"{name}: input {x.shape} and target {target.shape} do not fit: expected (n, classes, ...) and "
            f"(n, ...), or (classes,) and ()"
        )
    return x if at == x.ndim - 1 else movedim(x, at, -1)


def _check_weight(name, weight, classes):
    if weight is not None and weight.shape != (classes,):
        raise ValueError(
            f"{name}: weight has shape {weight.shape}, expected one number for each of {classes} classes"
        )


def target_weights(weight, target, ignore_index, dtype):
    """The weight of each target: 0 where it is ignored."""
    counts = ne(target, ignore_index)
    return to(counts, dtype) if weight is None else where(counts, lookup(weight, where(counts, target, 0)), 0)


def _weighted_mean(loss, weights):
    """NaN where nothing counts: of NaN as the divisor, since 0 / 0 would warn."""
    total = sum_over(weights)
    return sum_over(loss) / where(total == 0, math.nan, to(total, loss.dtype))


@op(
    "nll_loss(Tensor x, Tensor target, Tensor? weight=None, int ignore_index=-100, str reduction='mean') "
    "-> Tensor"
)
class nll_loss(Composite, aliases="nn.functional.nll_loss"):
    """-x at the target class, times that class's weight: x holds logarithms of probabilities.

    x (n, classes, ...) or (classes,), target (n, ...) or () of integers, weight (classes,).  The mean is
    weighted; targets of `ignore_index` do not count.
    """

    method = False

    def compose(x, target, weight, *, ignore_index, reduction):
        finish = reduction_named("nll_loss", reduction)
        x = classes_last("nll_loss", x, target)
        _check_weight("nll_loss", weight, x.shape[-1])
        loss = -pick_class(x, target, ignore_index=ignore_index)
        if weight is None and reduction != "mean":
            return finish(loss)
        weights = target_weights(weight, target, ignore_index, x.dtype)
        loss = loss if weight is None else loss * weights
        return _weighted_mean(loss, weights) if reduction == "mean" else finish(loss)

    def samples(r):
        yield (r(3, 4), r.ints(4, (3,)), None), {}
        yield (r(3, 4), r.ints(4, (3,)), r(4, within=(0.5, 2.0))), {"ignore_index": 1}
        yield (r(2, 4, 3), r.ints(4, (2, 3)), None), {"reduction": "none"}
        yield (r(4), r.ints(4, ()), None), {"reduction": "sum"}

    def errors(r):
        yield (r(3, 4), r.ints(4, (2,)), None), {}, ValueError, r"\(3, 4\) and target \(2,\) do not fit"
        yield (r(3, 4), r.ints(4, (3,)), r(3)), {}, ValueError, "each of 4 classes"
        yield (r(3, 4), r.ints(4, (3,)), None), {"reduction": "avg"}, ValueError, "'mean', 'sum' or 'none'"


@op(
    "cross_entropy(Tensor x, Tensor target, Tensor? weight=None, int ignore_index=-100, "
    "str reduction='mean', float label_smoothing=0.0) -> Tensor"
)
class cross_entropy(Composite, aliases="nn.functional.cross_entropy"):
    """-sum(p * log softmax(x)) over the classes: x any numbers, p the wanted probabilities.

    x: (n, classes, ...) or (classes,).  target: class numbers (n, ...) or (), of which `ignore_index` does
    not count; or probabilities, of x's shape.  weight: one number per class; with class numbers the mean is
    weighted by it.  label_smoothing: the part of p that is spread evenly, from 0 to 1.

    >>> import retrograd as rg
    >>> rg.cross_entropy(rg.tensor([[0.0, 0.0], [1000.0, 0.0]]), rg.tensor([0, 0]), reduction="none").tolist()
    [0.6931471824645996, 0.0]
    """

    method = False

    def compose(x, target, weight, *, ignore_index, reduction, label_smoothing):
        reduction_named("cross_entropy", reduction)
        if not 0 <= label_smoothing <= 1:
            raise ValueError(f"cross_entropy: label_smoothing must be from 0 to 1, got {label_smoothing}")
        if target.dtype.kind == "c":
            raise TypeError(f"cross_entropy: targets are class numbers or real probabilities, got {target.dtype}")
        if target.dtype.kind == "f":
            return _soft_cross_entropy(x, target, weight, reduction, label_smoothing)
        x = classes_last("cross_entropy", x, target)
        _check_weight("cross_entropy", weight, x.shape[-1])
        if weight is None and label_smoothing == 0:
            return _hard_cross_entropy(x, target, ignore_index, reduction)
        return _smooth_cross_entropy(x, target, weight, ignore_index, reduction, label_smoothing)

    def samples(r):
        yield (r(3, 4), r.ints(4, (3,)), None), {}
        yield (r(4), r.ints(4, ()), None), {"reduction": "sum"}
        yield (r(2, 4, 3), r.ints(4, (2, 3)), None), {"ignore_index": 1}
        yield (r(3, 4), r.ints(4, (3,)), r(4, within=(0.5, 2.0))), {"label_smoothing": 0.1, "ignore_index": 1}
        yield (r(3, 4), r.ints(4, (3,)), None), {"label_smoothing": 0.1, "reduction": "none"}
        yield (r(2, 4, 3), r(2, 4, 3, within=(0.0, 1.0)), r(4, within=(0.5, 2.0))), {"label_smoothing": 0.2}

    def errors(r):
        yield (r(3, 4), r.ints(4, (2,)), None), {}, ValueError, r"\(3, 4\) and target \(2,\) do not fit"
        yield (r(3, 4), r(3, 3), None), {}, ValueError, "probabilities of shape"
        yield (r(3, 4), r.ints(4, (3,)), None), {"label_smoothing": 2.0}, ValueError, "from 0 to 1, got 2.0"
        yield (r(3, 4), r.ints(4, (3,)), None), {"reduction": "avg"}, ValueError, "'mean', 'sum' or 'none'"


def _hard_cross_entropy(x, target, ignore_index, reduction):
    loss = class_loss(x, target, ignore_index=ignore_index)
    if reduction == "mean":
        return _weighted_mean(loss, ne(target, ignore_index))
    return REDUCTIONS[reduction](loss)


def _smooth_cross_entropy(x, target, weight, ignore_index, reduction, smoothing):
    logs = log_softmax(x, -1)
    weights = target_weights(weight, target, ignore_index, x.dtype)
    hard = -pick_class(logs, target, ignore_index=ignore_index) * weights
    spread = -mean(logs if weight is None else logs * weight, -1)
    loss = (1 - smoothing) * hard + smoothing * where(ne(target, ignore_index), spread, 0)
    return _weighted_mean(loss, weights) if reduction == "mean" else REDUCTIONS[reduction](loss)


def _soft_cross_entropy(x, target, weight, reduction, smoothing):
    if x.shape != target.shape or x.ndim == 0:
        raise ValueError(
            f"cross_entropy: input {x.shape} and probabilities of shape {target.shape} must agree"
        )
    at = 1 if x.ndim > 1 else 0
    classes = x.shape[at]
    _check_weight("cross_entropy", weight, classes)
    target = target if smoothing == 0 else target * (1 - smoothing) + smoothing / max(classes, 1)
    if weight is not None:
        target = target * reshape(weight, (classes, *(1,) * (x.ndim - at - 1)))
    return REDUCTIONS[reduction](-sum_over(log_softmax(x, at) * target, at))


# --------------------------------------------------------------------------------------- of distributions


@op("kl_div(Tensor x, Tensor target, str reduction='mean', bool log_target=False) -> Tensor")
class kl_div(Composite, aliases="nn.functional.kl_div"):
    """target * (log(target) - x), 0 where target is 0: x holds logarithms of probabilities.

    log_target: the target holds logarithms too.  reduction: "batchmean", the sum over the first size, is the
    divergence per sample.
    """

    method = False

    def compose(x, target, *, reduction, log_target):
        if reduction not in (*REDUCTIONS, "batchmean"):
            raise ValueError(
                f"kl_div: reduction must be 'batchmean', 'mean', 'sum' or 'none', got {reduction!r}"
            )
        loss = _divergence_of_logs(x, target) if log_target else _divergence(x, target)
        if reduction == "batchmean":
            return sum_over(loss) / ((x.shape[0] or math.nan) if x.ndim else 1)
        return REDUCTIONS[reduction](loss)

    def samples(r):
        yield (r(3, 4), r(3, 4, within=(0.1, 1.0))), {}
        yield (r(3, 4), r(3, 4, within=(0.1, 1.0))), {"reduction": "batchmean"}
        yield (r(3, 4), r(3, 4)), {"log_target": True, "reduction": "sum"}

    def errors(r):
        yield (r(3), r(3)), {"reduction": "max"}, ValueError, "'batchmean', 'mean', 'sum' or 'none'"


def _divergence_of_logs(x, target):
    none = target == -math.inf
    target, x = where(none, 0, target), where(none, 0, x)
    return exp(target) * (target - x)


def _divergence(x, target):
    none = logical_and(target == 0, isinf(x))  # 0 * inf is NaN
    return _entropy(target) - target * where(none, 0, x)


def _entropy(p):
    """p log p, 0 where p is not positive."""
    positive = p > 0
    return where(positive, p * log(where(positive, p, 1)), 0)
