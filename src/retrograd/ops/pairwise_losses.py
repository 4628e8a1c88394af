"""Margin, pairwise, triplet, Poisson, Gaussian and CTC losses, as in torch.nn.functional."""

import math
from itertools import accumulate

from retrograd.core import Internal, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.errors import OperandTypeError
from retrograd.foundation.older_forms import older_reduction
from retrograd.ops.activation import logsigmoid
from retrograd.ops.create import tensor
from retrograd.ops.embedding import lookup
from retrograd.ops.family import Composite, Pointwise, numel
from retrograd.ops.gather import gather, one_hot, take_along_dim
from retrograd.ops.index import T, getitem, select
from retrograd.ops.losses import get_reduction
from retrograd.ops.nn import log_softmax
from retrograd.ops.norm import norm
from retrograd.ops.pad import pad
from retrograd.ops.pointwise import (
    clamp,
    eq,
    exp,
    log,
    logical_and,
    logical_not,
    minimum,
    ne,
    sqrt,
    square,
    to,
    where,
)
from retrograd.ops.reduce import any as any_of
from retrograd.ops.reduce import logsumexp, mean
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.scan import cumsum
from retrograd.ops.statistics import within
from retrograd.ops.view import cat, expand, narrow, reshape, stack, unsqueeze


def _sign_sample(r, *shape):
    """Sample targets, each -1 or 1."""
    return r.ints(2, shape) * 2 - 1


def _check_positive(name, what, value):
    if not value > 0:
        raise ValueError(f"{name}: {what} must be more than 0, got {value}")


# ---------------------------------------------------------------------------------------------- -1 or 1


@op(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, str reduction='mean') -> Tensor"
)
class margin_ranking_loss(Composite, home="nn.functional"):
    """max(0, margin - target * (input1 - input2)); target 1 ranks input1 higher, -1 input2."""

    older_form = older_reduction("input1 input2 target margin size_average reduce reduction")

    def compose(input1, input2, target, *, margin, reduction):
        finish = get_reduction("margin_ranking_loss", reduction)
        if not input1.ndim == input2.ndim == target.ndim:
            raise RuntimeError(
                f"margin_ranking_loss: the inputs and the target must have as many dimensions, got shapes "
                f"{input1.shape}, {input2.shape} and {target.shape}"
            )
        return finish(clamp(margin + -target * (input1 - input2), min=0))  # saves -target: the target may change

    oracle = "retrograd.testing.references.pairwise_losses.margin_ranking_loss"

    def samples(r):
        yield (r(3), r(3), _sign_sample(r, 3)), {}
        yield (r(3, 4), r(3, 4), _sign_sample(r, 3, 4)), {"margin": 0.5, "reduction": "none"}

    def errors(r):
        yield (r(3), r(3, 1), r(3)), {}, RuntimeError, "must have as many dimensions"


@op("hinge_embedding_loss(Tensor x, Tensor target, float margin=1.0, str reduction='mean') -> Tensor")
class hinge_embedding_loss(Composite, home="nn.functional"):
    """The distance x where the target is 1, max(0, margin - x) where it is -1."""

    older_form = older_reduction("input target margin size_average reduce reduction")

    def compose(x, target, *, margin, reduction):
        finish = get_reduction("hinge_embedding_loss", reduction)
        return finish(where(ne(target, 1), clamp(margin - x, min=0), 0) + where(ne(target, -1), x, 0))

    oracle = "retrograd.testing.references.pairwise_losses.hinge_embedding_loss"

    def samples(r):
        yield (r(3, 4), _sign_sample(r, 3, 4)), {}
        yield (r(5), _sign_sample(r, 5)), {"margin": 0.3, "reduction": "none"}


@op("soft_margin_loss(Tensor x, Tensor target, str reduction='mean') -> Tensor")
class soft_margin_loss(Composite, home="nn.functional"):
    """The logistic loss log(1 + exp(-target * x)), without overflow; each target is -1 or 1."""

    older_form = older_reduction("input target size_average reduce reduction")

    def compose(x, target, *, reduction):
        return get_reduction("soft_margin_loss", reduction)(-logsigmoid(target * x))

    oracle = "retrograd.testing.references.pairwise_losses.soft_margin_loss"

    def samples(r):
        yield (r(3, 4), _sign_sample(r, 3, 4)), {}
        yield (r(5), _sign_sample(r, 5)), {"reduction": "sum"}


@op(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, "
    "str reduction='mean') -> Tensor"
)
class cosine_embedding_loss(Composite, home="nn.functional"):
    """1 - c where the target is 1, max(0, c - margin) where it is -1, with c the cosine similarity.

    input1 and input2 (n, size) and target (n,), or (size,) and ().
    """

    older_form = older_reduction("input1 input2 target margin size_average reduce reduction")

    def compose(input1, input2, target, *, margin, reduction):
        finish = get_reduction("cosine_embedding_loss", reduction)
        if target.ndim > 1 or not input1.ndim == input2.ndim == target.ndim + 1:
            raise RuntimeError(
                f"cosine_embedding_loss: expected inputs (n, size) and target (n,), or (size,) and (), got "
                f"{input1.shape}, {input2.shape} and {target.shape}"
            )
        sizes = [sum_over(square(x), -1) + 1e-12 for x in (input1, input2)]
        cosine = sum_over(input1 * input2, -1) / sqrt(sizes[0] * sizes[1])
        return finish(where(eq(target, 1), 1 - cosine, 0) + where(eq(target, -1), clamp(cosine - margin, min=0), 0))

    oracle = "retrograd.testing.references.pairwise_losses.cosine_embedding_loss"

    def samples(r):
        yield (r(3, 4), r(3, 4), _sign_sample(r, 3)), {}
        yield (r(4), r(4), _sign_sample(r)), {"margin": -0.5, "reduction": "sum"}

    def errors(r):
        yield (r(3, 4), r(3, 4), r(3, 4)), {}, RuntimeError, "cosine_embedding_loss: expected inputs"


# ----------------------------------------------------------------------------------------------- of classes


@op(
    "multi_margin_loss(Tensor x, Tensor target, int p=1, float margin=1.0, Tensor? weight=None, "
    "str reduction='mean') -> Tensor"
)
class multi_margin_loss(Composite, home="nn.functional"):
    """The mean over classes i other than the target y of max(0, margin - x[y] + x[i])^p, times weight[y].

    x (n, classes) or (classes,), target (n,), () or (1,) of class indices, p 1 or 2.  The divisor is the number of all
    classes.
    """

    older_form = older_reduction("input target p margin weight size_average reduce reduction")

    def compose(x, target, weight, *, p, margin, reduction):
        finish = get_reduction("multi_margin_loss", reduction)
        shape = target.shape  # also of the losses without reduction
        if x.ndim < 2 and numel(shape) == 1:  # one sample; without dimensions, of one class
            x, target = reshape(x, (-1,)), reshape(target, ())
        _check_multi_margin(x, target, weight, p)
        classes = x.shape[-1]
        chosen = eq(one_hot(target, classes), 1)
        own = sum_over(where(chosen, x, 0), -1, keepdim=True)
        loss = clamp(margin - own + x, min=0)
        loss = sum_over(where(chosen, 0, loss if p == 1 else square(loss)), -1) / classes
        losses = loss if weight is None else loss * lookup(weight, target)
        return finish(reshape(losses, shape))

    oracle = "retrograd.testing.references.pairwise_losses.multi_margin_loss"

    def samples(r):
        yield (r(3, 4), r.ints(4, (3,)), None), {}
        yield (r(3, 4), r.ints(4, (3,)), r(4)), {"p": 2, "margin": 0.7, "reduction": "none"}
        yield (r(4), r.ints(4, ()), None), {"reduction": "sum"}
        yield (r(4), r.ints(4, (1,)), None), {"reduction": "none"}

    def errors(r):
        yield (r(3, 4), r.ints(4, (3,)), None), {"p": 3}, ValueError, "p must be 1 or 2, got 3"
        yield (r(3, 4), r.ints(4, (2,)), None), {}, ValueError, "do not fit"
        yield (r(3, 4), r.ints(1, (3,)) + 4, None), {}, ValueError, "classes 4 to 4 do not fit into 4"


def _check_multi_margin(x, target, weight, p):
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: p must be 1 or 2, got {p}")
    if x.ndim not in (1, 2) or target.shape != x.shape[:-1]:
        raise ValueError(
            f"multi_margin_loss: input {x.shape} and target {target.shape} do not fit: expected (n, classes) and "
            f"(n,), or (classes,) and ()"
        )
    if weight is not None and weight.shape != x.shape[-1:]:
        raise ValueError(f"multi_margin_loss: weight has shape {weight.shape}, expected {x.shape[-1:]}")


@op("multilabel_margin_loss(Tensor x, Tensor target, str reduction='mean') -> Tensor")
class multilabel_margin_loss(Composite, home="nn.functional"):
    """The sum over labels y and other classes i of max(0, 1 - x[y] + x[i]), divided by the number of classes.

    x (n, classes) or (classes,); target of the same shape holds the labels, up to the first -1.
    """

    older_form = older_reduction("input target size_average reduce reduction")

    def compose(x, target, *, reduction):
        finish = get_reduction("multilabel_margin_loss", reduction)
        if x.ndim == 0 and target.ndim == 0:
            x, target = reshape(x, (1,)), reshape(target, (1,))
        if x.ndim not in (1, 2) or target.shape != x.shape:
            raise ValueError(
                f"multilabel_margin_loss: input {x.shape} and target {target.shape} must agree, with 1 or 2 dimensions"
            )
        classes = x.shape[-1]
        counts = eq(cumsum(target < 0, -1), 0)
        labels = where(counts, target, 0)
        is_target = logical_and(eq(one_hot(labels, classes), 1), unsqueeze(counts, -1))
        gaps = clamp(1 - unsqueeze(take_along_dim(x, labels, -1), -1) + unsqueeze(x, -2), min=0)
        paired = logical_and(unsqueeze(counts, -1), unsqueeze(logical_not(any_of(is_target, -2)), -2))
        return finish(sum_over(where(paired, gaps, 0), (-2, -1)) / max(classes, 1))

    oracle = "retrograd.testing.references.pairwise_losses.multilabel_margin_loss"

    def samples(r):
        labels = registry["stack"]([r.ints(4, (4,)), r.ints(2, (4,)) * -1, r.ints(4, (4,))])
        yield (r(3, 4), labels), {}
        yield (r(4), labels[0]), {"reduction": "sum"}
        yield (r(3, 4), labels), {"reduction": "none"}

    def errors(r):
        yield (r(3, 4), r.ints(4, (3,))), {}, ValueError, "must agree, with 1 or 2 dimensions"


@op("multilabel_soft_margin_loss(Tensor x, Tensor target, Tensor? weight=None, str reduction='mean') -> Tensor")
class multilabel_soft_margin_loss(Composite, home="nn.functional"):
    """The mean over the classes, the last dimension, of `binary_cross_entropy_with_logits`, times weight."""

    older_form = older_reduction("input target weight size_average reduce reduction")

    def compose(x, target, weight, *, reduction):
        finish = get_reduction("multilabel_soft_margin_loss", reduction)
        loss = -(target * logsigmoid(x) + (1 - target) * logsigmoid(-x))
        return finish(mean(loss if weight is None else loss * weight, -1))

    oracle = "retrograd.testing.references.pairwise_losses.multilabel_soft_margin_loss"

    def samples(r):
        yield (r(3, 4), r(3, 4, within=(0.0, 1.0)), None), {}
        yield (r(3, 4), r(3, 4, within=(0.0, 1.0)), r(4)), {"reduction": "none"}


# ----------------------------------------------------------------------------------------------- of triplets


def _triplet_loss(name, near, far, between, margin, swap, reduction):
    """max(0, margin + near - far), with far the smaller distance to the negative if `swap`."""
    finish = get_reduction(name, reduction)
    far = minimum(far, between()) if swap else far
    return finish(clamp(margin + near - far, min=0))


@op(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, number p=2, "
    "float eps=1e-06, bool swap=False, str reduction='mean') -> Tensor"
)
class triplet_margin_loss(Composite, home="nn.functional"):
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), with d the p-norm of the difference plus eps.

    The vectors are the last dimension.  swap: if the positive is nearer to the negative than the anchor, its distance
    is used.  V. Balntas et al., Learning local feature descriptors with triplets, BMVC 2016.
    """

    older_form = older_reduction("anchor positive negative margin p eps swap size_average reduce reduction")

    def compose(anchor, positive, negative, *, margin, p, eps, swap, reduction):
        _check_positive("triplet_margin_loss", "margin", margin)
        _check_triplet("triplet_margin_loss", anchor, positive, negative)
        near, far = (norm(anchor - x + eps, p, dim=-1) for x in (positive, negative))

        def between():
            return norm(positive - negative + eps, p, dim=-1)

        return _triplet_loss("triplet_margin_loss", near, far, between, margin, swap, reduction)

    oracle = "retrograd.testing.references.pairwise_losses.triplet_margin_loss"

    def samples(r):
        yield (r(3, 4), r(3, 4), r(3, 4)), {}
        yield (r(3, 4), r(3, 4), r(3, 4)), {"swap": True, "p": 3, "margin": 2.0, "reduction": "none"}
        yield (r(4), r(4), r(4)), {"reduction": "sum"}

    def errors(r):
        yield (r(3, 4), r(3, 4), r(3, 4)), {"margin": 0.0}, ValueError, "margin must be more than 0, got 0.0"
        pattern = "triplet_margin_loss: anchor, positive and negative .* do not broadcast"
        yield (r(3, 4), r(3, 5), r(3, 4)), {}, ValueError, pattern
        yield (r(4), r(3, 4), r(3, 4)), {}, ValueError, "must have as many dimensions"


def _check_triplet(name, *tensors):
    """Check for vectors of equal length and number: PyTorch refuses broadcasting here, as it is usually a mistake."""
    shapes = [x.shape for x in tensors]
    message = f"{name}: anchor, positive and negative of shapes {shapes[0]}, {shapes[1]} and {shapes[2]}"
    if len({len(shape) for shape in shapes}) > 1:
        raise ValueError(f"{message} must have as many dimensions each")
    for sizes in zip(*shapes, strict=True):
        if len({size for size in sizes if size != 1}) > 1:
            raise ValueError(f"{message} do not broadcast")


@op(
    "triplet_margin_with_distance_loss(Tensor anchor, Tensor positive, Tensor negative, *, "
    "any distance_function=None, float margin=1.0, bool swap=False, str reduction='mean') -> Tensor"
)
class triplet_margin_with_distance_loss(Composite, home="nn.functional"):
    """`triplet_margin_loss` with any distance, a function of two tensors; None for the Euclidean one."""

    def compose(anchor, positive, negative, *, distance_function, margin, swap, reduction):
        name = "triplet_margin_with_distance_loss"
        _check_positive(name, "margin", margin)
        _check_triplet(name, anchor, positive, negative)
        distance = _euclidean if distance_function is None else distance_function
        near, far = distance(anchor, positive), distance(anchor, negative)
        return _triplet_loss(name, near, far, lambda: distance(positive, negative), margin, swap, reduction)

    oracle = "retrograd.testing.references.pairwise_losses.triplet_margin_with_distance_loss"

    def samples(r):
        yield (r(3, 4), r(3, 4), r(3, 4)), {}
        yield (r(3, 4), r(3, 4), r(3, 4)), {"swap": True, "distance_function": _taxi, "reduction": "none"}


def _euclidean(a, b):
    return norm(a - b + 1e-6, 2, dim=-1)


def _taxi(a, b):
    return (a - b).abs().sum(-1)


# ------------------------------------------------------------------------------------------ of distributions


@op(
    "poisson_nll_loss(Tensor x, Tensor target, bool log_input=True, bool full=False, float eps=1e-08, "
    "str reduction='mean') -> Tensor"
)
class poisson_nll_loss(Composite, home="nn.functional"):
    """The Poisson loss exp(x) - target * x, with x the log of the mean; else x - target * log(x + eps).

    full: with Stirling's approximation of log(target!) for targets larger than 1.
    """

    older_form = older_reduction("input target log_input full size_average eps reduce reduction")

    def compose(x, target, *, log_input, full, eps, reduction):
        finish = get_reduction("poisson_nll_loss", reduction)
        loss = exp(x) - target * x if log_input else x - target * log(x + eps)
        return finish(loss + _stirling(target) if full else loss)

    oracle = "retrograd.testing.references.pairwise_losses.poisson_nll_loss"

    def samples(r):
        yield (r(3, 4), r(3, 4, within=(0.2, 5.0))), {}
        yield (r(3, 4), r(3, 4, within=(0.2, 5.0))), {"full": True, "reduction": "none"}
        yield (r(4, within=(0.2, 3.0)), r(4, within=(0.2, 5.0))), {"log_input": False, "reduction": "sum"}


def _stirling(n):
    """Stirling's n log n - n + log(2 pi n) / 2 where n > 1, 0 elsewhere."""
    is_large = n > 1
    n = where(is_large, n, 1)
    return where(is_large, n * log(n) - n + 0.5 * log(2 * math.pi * n), 0)


@op("variance_at_least(Tensor x, float eps) -> Tensor")
class variance_at_least(Internal, Pointwise, promotion="float"):
    """max(x, eps), with derivative 1 everywhere; ValueError for negative x, which is no variance."""

    def impl(xp, x, *, eps):
        xp.real_only("variance_at_least", x)
        if xp.on_host and (x < 0).any():
            raise ValueError(f"gaussian_nll_loss: a variance is negative: {x.min()}")
        return xp.maximum(x, eps)

    def vjp_x(g):
        return g

    def oracle(np, x, eps):
        return np.maximum(x, eps)

    def samples(r):
        yield (r(3, 2, within=(0.5, 2.0)),), {"eps": 0.1}


@op(
    "gaussian_nll_loss(Tensor x, Tensor target, Tensor var, bool full=False, float eps=1e-06, "
    "str reduction='mean') -> Tensor"
)
class gaussian_nll_loss(Composite, home="nn.functional"):
    """The Gaussian loss (log(var) + (x - target)^2 / var) / 2, with mean x and variance var.

    var, clamped to at least eps, has the shape of x, or lacks its last dimension, or has size 1 in one dimension, or is
    a number.
    full: with the constant log(2 pi) / 2.
    """

    def compose(x, target, var, *, full, eps, reduction):
        finish = get_reduction("gaussian_nll_loss", reduction)
        _check_positive("gaussian_nll_loss", "eps", eps)
        var = variance_at_least(_broadcast_variance(x, var), eps=eps)
        loss = 0.5 * (log(var) + square(x - target) / var)
        return finish(loss + 0.5 * math.log(2 * math.pi) if full else loss)

    oracle = "retrograd.testing.references.pairwise_losses.gaussian_nll_loss"

    def samples(r):
        yield (r(3, 4), r(3, 4), r(3, 4, within=(0.5, 2.0))), {}
        yield (r(3, 4), r(3, 4), r(3, within=(0.5, 2.0))), {"full": True, "reduction": "none"}
        yield (r(3, 4), r(3, 4), r(3, 1, within=(0.5, 2.0))), {"reduction": "sum"}
        yield (r(3, 4), r(3, 4), r(1, 4, within=(0.5, 2.0))), {}

    def errors(r):
        yield (r(3, 4), r(3, 4), r(4)), {}, ValueError, r"var has shape \(4,\)"
        yield (r(3, 4), r(3, 4), r(1, 1)), {}, ValueError, r"var has shape \(1, 1\)"
        yield (r(3), r(3), r(3) * 0 - 1), {}, ValueError, "a variance is negative: -1"
        yield (r(3), r(3), r(3)), {"eps": 0.0}, ValueError, "eps must be more than 0"


def _broadcast_variance(x, var):
    """The variances reshaped to broadcast against x."""
    if not hasattr(var, "shape"):
        return registry["full"]((), float(var), dtype=x.dtype)
    if var.ndim == x.ndim:
        differing = [size for size, own in zip(var.shape, x.shape, strict=True) if size != own]
        if differing in ([], [1]):
            return var
    if x.ndim and var.shape == x.shape[:-1]:
        return unsqueeze(var, -1)
    raise ValueError(f"gaussian_nll_loss: var has shape {var.shape}, which is not that of the input, {x.shape}")


# --------------------------------------------------------------------------------------------- of sequences


@op(
    "ctc_loss(Tensor log_probs, Tensor targets, any input_lengths, any target_lengths, int blank=0, "
    "str reduction='mean', bool zero_infinity=False) -> Tensor"
)
class ctc_loss(Composite, home="nn.functional"):
    """The CTC loss: -log of the probability of the target after repeated labels are merged and blanks dropped.

    log_probs (steps, n, classes), logarithms of probabilities, as of `log_softmax`; targets (n, longest), or all
    labels of the n targets in a row; the lengths of both: n integers each.  Or one sample, without n.  "mean" divides
    each loss by the length of its target first.  A target that can't be spelled in so few steps costs infinity, or 0
    if zero_infinity, and has gradient 0.

    The gradient is that by log_probs as they are; PyTorch's has the one of log_softmax in it already.  From there on
    back they agree.  A. Graves et al., Connectionist temporal classification, ICML 2006.

    >>> import retrograd as rg
    >>> steps = rg.log_softmax(rg.zeros(2, 1, 2), 2)
    >>> round(rg.ctc_loss(steps, rg.tensor([[1]]), (2,), (1,)).exp().item(), 4)  # 3 of 4: 11, 01, 10
    1.3333
    """

    def compose(log_probs, targets, *, input_lengths, target_lengths, blank, reduction, zero_infinity):
        finish = get_reduction("ctc_loss", reduction)
        if log_probs.dtype not in (dtypes.float32, dtypes.float64):
            raise TypeError(f"ctc_loss: expected log_probs of float32 or float64, got {log_probs.dtype}")
        is_unbatched = log_probs.ndim == 2
        if is_unbatched:
            log_probs, targets = unsqueeze(log_probs, 1), reshape(targets, (1, -1))
        if log_probs.ndim != 3:
            raise ValueError(f"ctc_loss: expected log_probs (steps, n, classes), got shape {log_probs.shape}")
        total, n, classes = log_probs.shape
        if not 0 <= blank < classes:
            raise IndexError(f"ctc_loss: blank must be from 0 to {classes - 1}, got {blank}")
        steps = _check_lengths("input_lengths", input_lengths, n, total)
        lengths = _check_lengths("target_lengths", target_lengths, n, targets.shape[-1])
        labels = _pad_targets(targets, lengths)
        counted = registry["arange"](0, labels.shape[1], 1) < unsqueeze(lengths, 1)
        labels = within(where(counted, labels, blank), what="ctc_loss: labels", low=0, high=classes - 1)
        costs = _ctc_costs(log_probs, steps, labels, lengths, blank)
        costs = where(costs > -0.1 * IMPOSSIBLE, 0.0 if zero_infinity else math.inf, costs)
        if reduction == "mean":
            costs = costs / to(clamp(lengths, min=1), costs.dtype)
        return finish(costs[0] if is_unbatched else costs)

    oracle = "retrograd.testing.references.pairwise_losses.ctc_loss"

    def samples(r):
        logs = log_softmax(r(4, 2, 3), 2)
        yield (logs, r.ints(2, (2, 2)) + 1), {"input_lengths": (4, 4), "target_lengths": (2, 1)}
        yield (
            (log_softmax(r(5, 2, 3), 2), r.ints(2, (3,))),
            {"input_lengths": (5, 4), "target_lengths": (1, 2), "blank": 2, "reduction": "none"},
        )
        yield (logs[:, 0], r.ints(2, (2,)) + 1), {"input_lengths": (4,), "target_lengths": (2,), "reduction": "sum"}

    def errors(r):
        lengths = {"input_lengths": (4, 4), "target_lengths": (1, 1)}
        logs, targets = r(4, 2, 3), r.ints(2, (2, 1))
        yield (logs, targets), {**lengths, "input_lengths": (4,)}, ValueError, "2 lengths of inputs and of targets"
        yield (logs, targets), {**lengths, "input_lengths": (5, 4)}, ValueError, "input_lengths must be from 0 to 4"
        yield (logs, targets), {**lengths, "target_lengths": (1, 2)}, ValueError, "target_lengths must be from 0 to 1"
        yield (logs, targets[:, 0]), {**lengths, "target_lengths": (1, 2)}, ValueError, "do not fit the targets"
        yield (logs, targets + 3), lengths, ValueError, "labels must be from 0 to 2"
        yield (logs, targets), {**lengths, "blank": 3}, IndexError, "blank must be from 0 to 2"


IMPOSSIBLE = -1e30  # the logarithm of no probability: finite, so that differences of two are no NaN


def _check_lengths(what, lengths, n, most):
    """The lengths, one per sample, from 0 to `most`, as a tensor."""
    lengths = tensor(lengths)
    if lengths.numel() and lengths.dtype.kind not in "iu":
        raise OperandTypeError(f"ctc_loss: {what} must be integral, got {lengths.dtype}")
    lengths = reshape(to(lengths, dtypes.int64), (-1,))
    if lengths.shape != (n,):
        raise ValueError(f"ctc_loss: expected {n} lengths of inputs and of targets, got {lengths.shape[0]}")
    return within(lengths, what=f"ctc_loss: {what}", low=0, high=most)


def _pad_targets(targets, lengths):
    """The labels of the targets, one per row; concatenated targets are split by their lengths."""
    if targets.ndim == 2 and targets.shape[0] == lengths.shape[0]:
        return targets
    counts = lengths.tolist()
    if targets.ndim != 1 or sum(counts) != targets.shape[0]:
        raise ValueError(f"ctc_loss: target_lengths {counts} do not fit the targets, of shape {targets.shape}")
    longest, starts = max(counts, default=0), accumulate(counts, initial=0)
    indices = [[start + k if k < n else 0 for k in range(longest)] for start, n in zip(starts, counts, strict=False)]
    return getitem(targets, [reshape(tensor(indices, dtype=dtypes.int64), (len(counts), longest))], spec=(T,))


def _ctc_costs(log_probs, steps, labels, lengths, blank):
    """Per sample, -log of the probability of all alignments with its labels: the forward recursion in log space.

    State 2k + 1 is label k, state 2k the blank before it.  Each state is reached from itself and from the one
    before; a label that differs from the last also from that.
    """
    total, path = log_probs.shape[0], _interleave_blank(blank, labels)
    shape = path.shape
    emitted = clamp(gather(log_probs, 2, expand(unsqueeze(path, 0), (total, *shape))), min=IMPOSSIBLE)
    skips = _interleave_blank(IMPOSSIBLE, _mask_costs(_differ_from_previous(labels), emitted))
    position = registry["arange"](0, shape[1], 1)
    # before and after the first step
    state, first = (expand(_mask_costs(position < k, emitted), shape) for k in (1, 2))
    for t in range(total):
        new = (first if t == 0 else _sum_predecessors(state, skips)) + select(emitted, 0, t)
        state = where(unsqueeze(steps > t, 1), new, state)
    ends = stack([2 * lengths, clamp(2 * lengths - 1, min=0)], 1)
    last = gather(state, 1, ends) + _mask_costs(unsqueeze(lengths, 1) > tensor([-1, 0]), emitted)
    return -logsumexp(last, 1)


def _interleave_blank(value, x):
    """x with columns of a constant before, between and after its columns."""
    n, size = x.shape
    columns = registry["full"]((n, size + 1), value, dtype=x.dtype)
    pairs = stack([narrow(columns, 1, 0, size), x], 2)
    return cat([reshape(pairs, (n, 2 * size)), narrow(columns, 1, size, 1)], 1)


def _differ_from_previous(labels):
    """Whether each label differs from the previous one; False for the first."""
    n, size = labels.shape
    rest = max(size - 1, 0)
    front = registry["zeros"]((n, size - rest), dtype=dtypes.bool_)
    return cat([front, ne(narrow(labels, 1, size - rest, rest), narrow(labels, 1, 0, rest))], 1)


def _mask_costs(allowed, reference):
    """0 where allowed, IMPOSSIBLE elsewhere."""
    return where(allowed, registry["zeros"]((), dtype=reference.dtype), IMPOSSIBLE)


def _sum_predecessors(state, skips):
    """The logsumexp over the states from which each state can be reached."""
    size = state.shape[1]
    before = pad(state, (2, 0), value=IMPOSSIBLE)
    predecessors = [state, narrow(before, 1, 1, size), narrow(before, 1, 0, size) + skips]
    return logsumexp(stack(predecessors), 0)
