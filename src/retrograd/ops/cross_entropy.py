"""Classification losses: predictions (..., classes, ...) against class indices or class probabilities."""

from retrograd.core import Aval, Definition, Internal, call, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.dtype import is_floating, opmath_of
from retrograd.foundation.lazy_imports import lazy_module
from retrograd.foundation.older_forms import older_reduction
from retrograd.ops import batch_loop
from retrograd.ops.batching import batch_all
from retrograd.ops.embedding import lookup
from retrograd.ops.family import Composite, broadcast_dims, check_floating
from retrograd.ops.gather import gather
from retrograd.ops.linalg import linear
from retrograd.ops.losses import REDUCTIONS, get_reduction, share, share_grad, weighted_mean
from retrograd.ops.nn import log_softmax, softmax
from retrograd.ops.pointwise import logical_and, ne, to, where
from retrograd.ops.reduce import mean
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import expand, movedim, reshape, unsqueeze

NO_INDEX = -(2**63)  # an `ignore_index` that no target has


class ClassOperator(Definition):
    """Takes predictions, with classes last or without classes, and class indices, with the same leading dimensions."""

    @classmethod
    def batch(cls, batched, n, /, *args, **params):
        """Treat the batch dimension as one more leading dimension."""
        return registry[cls.__name__](*batch_all(args, batched, n), **params)

    @classmethod
    def dependence(cls, i, out, /, x, target, **params):
        """Elements depend on those at the same leading index."""
        return broadcast_dims(target.ndim, target.ndim)


@op("class_loss(Tensor x, Tensor target, *, int ignore_index=-100) -> Tensor")
class class_loss(Internal, ClassOperator, snapshots="x", node_name="NllLossBackward0"):
    """-log softmax(x) at the target: x (..., classes), integers (...) to (...); 0 for ignore_index."""

    def impl(xp, x, target, *, ignore_index):
        check_classes("cross_entropy", x, target)
        return xp.class_loss(x, target, ignore_index)

    def shape(x, target, *, ignore_index):
        check_classes("cross_entropy", x, target)
        return Aval(target.shape, x.dtype)

    def vjp_x(g, x, target, ignore_index):
        return class_grad(g, x, target, ignore_index=ignore_index)

    def jvp_x(t, x, target, ignore_index):
        return sum_over(t * class_residual(x, target, ignore_index=ignore_index), -1)

    def compose_divided(x, target, *, ignore_index):
        return -class_gather(log_softmax(x, -1), target, ignore_index=ignore_index)

    @classmethod
    def batch(cls, batched, n, /, x, target, *, ignore_index):
        """Compute the softmax of a shared x once for all examples."""
        if batched[0]:
            return super().batch(batched, n, x, target, ignore_index=ignore_index)
        check_classes("cross_entropy", *batch_loop.example_avals(batched, (x, target)))
        return -_gather_unbatched(log_softmax(x, -1), target, ignore_index)

    oracle = "retrograd.testing.references.cross_entropy.class_loss"

    def samples(r):
        yield (r(3, 4), r.ints(4, (3,))), {}
        yield (r(2, 3, 4), r.ints(4, (2, 3))), {"ignore_index": 1}
        yield (r(4), r.ints(4, ())), {}

    def errors(r):
        yield (
            (r(3, 4), r.ints(1, (3,)) + 4),
            {},
            IndexError,
            "Target 4 is out of bounds",
        )


@op("mean_class_loss(Tensor x, Tensor target, *, int ignore_index=-100) -> Tensor")
class mean_class_loss(Internal, snapshots="x", node_name="NllLossBackward0"):
    """The mean of `class_loss` over the targets that are not ignore_index: one operator for the usual loss."""

    def impl(xp, x, target, *, ignore_index):
        check_classes("cross_entropy", x, target)
        return xp.mean_class_loss(x, target, ignore_index)

    def shape(x, target, *, ignore_index):
        check_classes("cross_entropy", x, target)
        return Aval((), x.dtype)

    def vjp_x(g, x, target, ignore_index):
        return mean_class_grad(g, x, target, ignore_index=ignore_index)

    def jvp_x(t, x, target, ignore_index):
        tangents = class_loss.definition.jvp_x(t, x, target, ignore_index)
        return share(sum_over(tangents), _count(target, ignore_index, x.dtype))

    def compose_divided(x, target, *, ignore_index):
        losses = class_loss(x, target, ignore_index=ignore_index)
        return share(sum_over(losses), _count(target, ignore_index, x.dtype))

    def batch(batched, n, x, target, *, ignore_index):
        loss = class_loss.definition.batch(batched, n, x, target, ignore_index=ignore_index)
        losses = reshape(loss, (loss.shape[0], -1))
        return share(sum_over(losses, 1), _count_of_examples(batched[1], target, ignore_index, x.dtype))

    oracle = "retrograd.testing.references.cross_entropy.mean_class_loss"

    def samples(r):
        yield (r(3, 4), r.ints(4, (3,))), {}
        yield (r(2, 3, 4), r.ints(4, (2, 3))), {"ignore_index": 1}
        yield (r(4), r.ints(4, ())), {}


def _count(target, ignore_index, dtype):
    """Return the number of targets that are not ignored, as a tensor of a dtype."""
    return to(sum_over(ne(target, ignore_index)), dtype)


def _count_of_examples(batched, target, ignore_index, dtype):
    """Return `_count` of each example, (n,), or (1,) if all examples have the same target."""
    counts = ne(target, ignore_index)
    return to(sum_over(reshape(counts, (counts.shape[0] if batched else 1, -1)), 1), dtype)


@op("mean_class_grad(Tensor t, Tensor x, Tensor target, *, int ignore_index=-100) -> Tensor")
class mean_class_grad(Internal):
    """The derivative of `mean_class_loss` times t (): `class_grad` with the same value for all rows."""

    @classmethod
    def dependence(cls, i, out, /, t, x, target, **params):
        """Elements depend on those of x at the same leading index, and all on t and on how many targets count."""
        return broadcast_dims(target.ndim, target.ndim) if i == 1 else {}

    def impl(xp, t, x, target, *, ignore_index):
        check_classes("cross_entropy", x, target)
        return xp.mean_class_grad(t, x, target, ignore_index)

    def shape(t, x, target, *, ignore_index):
        check_classes("cross_entropy", x, target)
        if t.shape:
            raise ValueError(f"mean_class_grad: expected one weight (), got {t.shape}")
        return x

    def vjp_t(g, x, target, ignore_index):
        return mean_class_loss.definition.jvp_x(g, x, target, ignore_index)

    def vjp_x(g, t, x, target, ignore_index):
        weight = share_grad(t, _count(target, ignore_index, x.dtype))
        return weight * _softmax_jacobian_product(g, x, target, ignore_index)

    def jvp_t(t, x, target, ignore_index):
        return mean_class_grad(t, x, target, ignore_index=ignore_index)

    def jvp_x(t_x, t, x, target, ignore_index):
        return mean_class_grad.definition.vjp_x(t_x, t, x, target, ignore_index)

    def batch(batched, n, t, x, target, *, ignore_index):
        weights = share_grad(t, _count_of_examples(batched[2], target, ignore_index, x.dtype))
        weights, x, target = batch_all((weights, x, target), (weights.shape == (n,), *batched[1:]), n)
        rows = expand(reshape(weights, (n, *(1,) * (target.ndim - 1))), target.shape)
        return class_grad(rows, x, target, ignore_index=ignore_index)

    oracle = "retrograd.testing.references.cross_entropy.mean_class_grad"

    def samples(r):
        yield (r(), r(3, 4), r.ints(4, (3,))), {}
        yield (r(), r(2, 3, 4), r.ints(4, (2, 3))), {"ignore_index": 1}


@op("class_residual(Tensor x, Tensor target, *, int ignore_index=-100) -> Tensor")
class class_residual(Internal, ClassOperator):
    """softmax(x) - one_hot(target), the derivative of `class_loss`; 0 where the target is ignore_index."""

    def impl(xp, x, target, *, ignore_index):
        check_classes("cross_entropy", x, target)
        return xp.class_residual(x, target, ignore_index)

    def shape(x, target, *, ignore_index):
        check_classes("cross_entropy", x, target)
        return x

    def vjp_x(g, x, target, ignore_index):
        return _softmax_jacobian_product(g, x, target, ignore_index)

    def jvp_x(t, x, target, ignore_index):
        return _softmax_jacobian_product(t, x, target, ignore_index)

    oracle = "retrograd.testing.references.cross_entropy.class_residual"

    def samples(r):
        yield (r(3, 4), r.ints(4, (3,))), {}
        yield (r(2, 3, 4), r.ints(4, (2, 3))), {"ignore_index": 1}


@op("class_grad(Tensor t, Tensor x, Tensor target, *, int ignore_index=-100) -> Tensor")
class class_grad(Internal, ClassOperator):
    """The derivative of `class_loss` times t (...), one value per row: a weighted `class_residual`."""

    @classmethod
    def dependence(cls, i, out, /, t, x, target, **params):
        """Elements depend on those at the same leading index."""
        return broadcast_dims(target.ndim, target.ndim)

    def impl(xp, t, x, target, *, ignore_index):
        check_classes("cross_entropy", x, target)
        return xp.class_grad(t, x, target, ignore_index)

    def shape(t, x, target, *, ignore_index):
        check_classes("cross_entropy", x, target)
        if t.shape != target.shape:
            raise ValueError(f"class_grad: weights {t.shape} and targets {target.shape} do not fit")
        return x

    def vjp_t(g, x, target, ignore_index):
        return sum_over(g * class_residual(x, target, ignore_index=ignore_index), -1)

    def vjp_x(g, t, x, target, ignore_index):
        return unsqueeze(t, -1) * _softmax_jacobian_product(g, x, target, ignore_index)

    def jvp_t(t, x, target, ignore_index):
        return class_grad(t, x, target, ignore_index=ignore_index)

    def jvp_x(t_x, t, x, target, ignore_index):
        return unsqueeze(t, -1) * _softmax_jacobian_product(t_x, x, target, ignore_index)

    oracle = "retrograd.testing.references.cross_entropy.class_grad"

    def samples(r):
        yield (r(3), r(3, 4), r.ints(4, (3,))), {}
        yield (r(2, 3), r(2, 3, 4), r.ints(4, (2, 3))), {"ignore_index": 1}


def _softmax_jacobian_product(g, x, target, ignore_index):
    s = softmax(x, -1)
    return where(unsqueeze(ne(target, ignore_index), -1), s * (g - sum_over(g * s, -1, keepdim=True)), 0)


@op("class_gather(Tensor x, Tensor target, *, int ignore_index=-100) -> Tensor")
class class_gather(Internal, ClassOperator, linear="x", elements="moved", saves_input=True):
    """x at the target: x (..., classes), integers (...) to (...); 0 where the target is ignore_index."""

    def impl(xp, x, target, *, ignore_index):
        check_classes("nll_loss", x, target)
        return xp.class_gather(x, target, ignore_index)

    def shape(x, target, *, ignore_index):
        check_classes("nll_loss", x, target)
        return Aval(target.shape, x.dtype)

    def vjp_x(g, x_aval, target, ignore_index):
        return class_scatter(g, target, classes=x_aval.shape[-1], ignore_index=ignore_index)

    def indexed(x, target, *, ignore_index):
        return x.ndim - 1

    def select_part(part, x, target, *, ignore_index):
        counts = ne(target, ignore_index)
        own, inside = part.find(where(counts, target, 0))
        return where(logical_and(own, counts), class_gather(x, inside, ignore_index=NO_INDEX), 0)

    @classmethod
    def batch(cls, batched, n, /, x, target, *, ignore_index):
        """Do not repeat a shared x for each example."""
        if batched[0]:
            return super().batch(batched, n, x, target, ignore_index=ignore_index)
        check_classes("nll_loss", *batch_loop.example_avals(batched, (x, target)))
        return _gather_unbatched(x, target, ignore_index)

    oracle = "retrograd.testing.references.cross_entropy.class_gather"

    def samples(r):
        yield (r(3, 4), r.ints(4, (3,))), {}
        yield (r(2, 3, 4), r.ints(4, (2, 3))), {"ignore_index": 1}


@op("class_scatter(Tensor src, Tensor target, *, int classes, int ignore_index=-100) -> Tensor")
class class_scatter(Internal, ClassOperator, linear="src", elements="moved"):
    """Zeros (..., classes) with src (...) at the target: the transpose of `class_gather`."""

    def impl(xp, src, target, *, classes, ignore_index):
        check_classes("nll_loss", _gather_input_aval(src, classes), target)
        return xp.class_scatter(src, target, classes, ignore_index)

    def shape(src, target, *, classes, ignore_index):
        check_classes("nll_loss", _gather_input_aval(src, classes), target)
        return Aval((*target.shape, classes), src.dtype)

    def vjp_src(g, target, ignore_index):
        return class_gather(g, target, ignore_index=ignore_index)

    oracle = "retrograd.testing.references.cross_entropy.class_scatter"

    def samples(r):
        yield (r(3), r.ints(4, (3,))), {"classes": 4}
        yield (r(2, 3), r.ints(4, (2, 3))), {"classes": 4, "ignore_index": 1}


def _gather_unbatched(x, target, ignore_index):
    """Pick targets (n, ...) of many examples from one x (..., classes), as more targets per row of x."""
    counts = ne(target, ignore_index)
    picked = gather(x, -1, movedim(where(counts, target, 0), 0, -1))
    return where(counts, movedim(picked, -1, 0), 0)


def _gather_input_aval(src, classes):
    """Return the aval of the tensor that `src` was picked from."""
    return Aval((*src.shape, classes), src.dtype)


def check_classes(name, x, target):
    """Raise unless x is (..., classes) and the targets are integers (...)."""
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        raise TypeError(
            f"{name}: class numbers must be integers of 64 bits or uint8, got {target.dtype}; convert with "
            f".to('int64'): expected target dtype to be Long or Byte"
        )
    if x.ndim == 0 or x.shape[:-1] != target.shape:
        raise ValueError(f"{name}: inputs {x.shape} (classes last) and targets {target.shape} do not fit")


def _batch_mismatch(x, target):
    """Return PyTorch's words for different batch sizes; none if they agree."""
    if x.ndim < 2 or target.ndim < 1 or x.shape[0] == target.shape[0]:
        return ""
    return f"Expected input batch_size ({x.shape[0]}) to match target batch_size ({target.shape[0]}). "


def _squeeze_hint(x, target):
    """Return the way out for a target with a dimension of size 1 in the position of the classes."""
    extra = target.ndim == x.ndim > 1 and target.shape[1] == 1
    return "; remove the dimension of size 1 with target.squeeze(1)" if extra else ""


def _order_hint(x, target):
    """Return the way out for input and target in the wrong order, and for classes that are the last dimension."""
    if x.dtype.kind in "iu" and is_floating(target.dtype):
        return "; the input is integer and the target floating: the input comes first, then the target"
    last = x.ndim > 2 and x.shape[:-1] == target.shape
    return "; the classes, the last dimension of the input, must be dimension 1: input.movedim(-1, 1)" if last else ""


def move_classes_last(name, x, target):
    """Move the classes of x, dimension 1, or 0 of a vector, to the end; a ValueError names both shapes."""
    shape = x.shape
    at = 1 if len(shape) > 1 else 0
    if not shape or (*shape[:at], *shape[at + 1 :]) != target.shape:
        raise ValueError(
            f"{name}: {_batch_mismatch(x, target)}input {x.shape} and target {target.shape} do not fit: expected "
            f"(n, classes, ...) and (n, ...), or (classes,) and ()"
            f"{_squeeze_hint(x, target)}{_order_hint(x, target)}"
        )
    return x if at == len(shape) - 1 else movedim(x, at, -1)


def _check_weight(name, weight, classes):
    if weight is not None and weight.shape != (classes,):
        raise ValueError(
            f"{name}: weight has shape {weight.shape}, expected one number for each of {classes} classes; weight "
            f"tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: "
            f"{list(weight.shape)}"
        )


def target_weights(weight, target, ignore_index, dtype):
    """Return the weight of each target: 0 if it is ignored."""
    counts = ne(target, ignore_index)
    return to(counts, dtype) if weight is None else where(counts, lookup(weight, where(counts, target, 0)), 0)


@op("nll_loss(Tensor x, Tensor target, Tensor? weight=None, int ignore_index=-100, str reduction='mean') -> Tensor")
class nll_loss(Composite, aliases="nn.functional.nll_loss"):
    """Negative log likelihood: -x at the target class, times the weight of the class; x are log-probabilities.

    x (n, classes, ...) or (classes,), target (n, ...) or () of integers, weight (classes,).  The mean is
    weighted; targets equal to `ignore_index` are skipped.
    """

    older_form = older_reduction("input target weight size_average ignore_index reduce reduction")
    method = False

    def compose(x, target, weight, *, ignore_index, reduction):
        finish = get_reduction("nll_loss", reduction)
        x = move_classes_last("nll_loss", x, target)
        _check_weight("nll_loss", weight, x.shape[-1])
        loss = -class_gather(x, target, ignore_index=ignore_index)
        if weight is None and reduction != "mean":
            return finish(loss)
        weights = target_weights(weight, target, ignore_index, x.dtype)
        loss = loss if weight is None else loss * weights
        return weighted_mean(loss, weights) if reduction == "mean" else finish(loss)

    oracle = "retrograd.testing.references.cross_entropy.nll_loss"

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
class cross_entropy(Composite, aliases="nn.functional.cross_entropy", opmath="x target weight"):
    """Cross entropy of logits x: -sum(p * log softmax(x)) over the classes, for target probabilities p.

    x: (n, classes, ...) or (classes,).  target: class indices (n, ...) or (), where `ignore_index` is skipped;
    or probabilities, in the shape of x.  weight: one value per class; with class indices the mean is weighted by it.
    label_smoothing: the fraction of p, from 0 to 1, that is spread evenly over the classes.

    >>> import retrograd as rg
    >>> rg.cross_entropy(rg.tensor([[0.0, 0.0], [1000.0, 0.0]]), rg.tensor([0, 0]), reduction="none").tolist()
    [0.6931471824645996, 0.0]
    """

    older_form = older_reduction("input target weight size_average ignore_index reduce reduction label_smoothing")
    method = False

    def compose(x, target, weight, *, ignore_index, reduction, label_smoothing):
        get_reduction("cross_entropy", reduction)
        if not 0 <= label_smoothing <= 1:
            raise ValueError(
                f"cross_entropy: label_smoothing must be from 0 to 1, got {label_smoothing}; label_smoothing must be "
                f"between 0.0 and 1.0. Got: {label_smoothing}"
            )
        if target.dtype.kind == "c":
            raise TypeError(f"cross_entropy: targets are class numbers or real probabilities, got {target.dtype}")
        if is_floating(target.dtype):
            if ignore_index >= 0:
                raise ValueError(
                    f"cross_entropy: ignore_index is not supported for floating point target, got {ignore_index}: "
                    "probabilities have no class to ignore"
                )
            return _soft_cross_entropy(x, target, weight, reduction, label_smoothing)
        x = move_classes_last("cross_entropy", x, target)
        if weight is not None:
            _check_weight("cross_entropy", weight, x.shape[-1])
        elif label_smoothing == 0:
            return _hard_cross_entropy(x, target, ignore_index, reduction)
        return _smooth_cross_entropy(x, target, weight, ignore_index, reduction, label_smoothing)

    oracle = "retrograd.testing.references.cross_entropy.cross_entropy"

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
        yield (r(3, 4), r(3, 4), None), {"ignore_index": 0}, ValueError, "ignore_index is not supported for floating"
        yield (r.ints(4, (3, 4)), r.ints(4, (3,)), None), {}, TypeError, "cross_entropy: expected a floating"
        yield (r(3, 4), r.ints(4, (3,)), None), {"label_smoothing": 2.0}, ValueError, "from 0 to 1, got 2.0"
        yield (r(3, 4), r.ints(4, (3,)), None), {"reduction": "avg"}, ValueError, "'mean', 'sum' or 'none'"


@op(
    "linear_cross_entropy(Tensor x, Tensor linear_weight, Tensor target, *, Tensor? linear_bias=None, "
    "Tensor? weight=None, str reduction='mean', int? ignore_index=None, float label_smoothing=0.0, any options=None) "
    "-> Tensor"
)
class linear_cross_entropy(Composite, home="nn.functional"):
    """Return `cross_entropy` of a linear map of x (n, features) or (features,).

    linear_weight is (classes, ..., features), linear_bias (classes, ...); target has x's n and the dimensions between
    classes and features, or is probabilities.  ignore_index None is -100.  `options`, PyTorch's to save memory, are
    hints: all rows are computed together.
    """

    def compose(
        x, linear_weight, target, linear_bias, weight, *, reduction, ignore_index, label_smoothing, options
    ):  # fmt: skip
        _check_options(options, x.dtype)
        if linear_weight.ndim < 2 or (x.ndim != 2 and (x.ndim != 1 or linear_weight.ndim > 2)):
            raise ValueError(
                f"linear_cross_entropy: expected (n, features) and weights (classes, ..., features), or (features,) "
                f"and (classes, features), got shapes {x.shape} and {linear_weight.shape}"
            )
        if ignore_index is not None and is_floating(target.dtype):
            raise ValueError("linear_cross_entropy: probabilities have no class to ignore; leave ignore_index=None")
        classes = linear_weight.shape[:-1]
        bias = None if linear_bias is None else reshape(linear_bias, (-1,))
        logits = linear(x, reshape(linear_weight, (-1, linear_weight.shape[-1])), bias)
        logits = reshape(logits, (*x.shape[:-1], *classes))
        ignored = -100 if ignore_index is None else ignore_index
        return cross_entropy(logits, target, weight, ignored, reduction, label_smoothing)

    oracle = "retrograd.testing.references.cross_entropy.linear_cross_entropy"

    def samples(r):
        yield (r(5, 3), r(4, 3), r.ints(4, (5,)), None, None), {}
        yield (r(3), r(4, 3), r.ints(4, ()), r(4), r(4, within=(0.5, 2.0))), {"reduction": "sum"}
        yield (r(2, 3), r(4, 2, 3), r.ints(4, (2, 2)), r(4, 2), None), {"ignore_index": 1, "label_smoothing": 0.1}
        yield (r(2, 3), r(4, 3), r(2, 4, within=(0.0, 1.0)), None, None), {"reduction": "none"}

    def errors(r):
        yield (r(3), r(3), r.ints(3, ()), None, None), {}, ValueError, r"got shapes \(3,\) and \(3,\)"
        given = (r(2, 3), r(4, 3), r.ints(4, (2,)), None, None)
        yield given, {"options": {}}, TypeError, "options must be LinearCrossEntropyOptions"
        options_of = lazy_module("retrograd.ops.linear_cross_entropy_options").LinearCrossEntropyOptions
        options = options_of(acc_dtype="float16")
        yield given, {"options": options}, NotImplementedError, "leave acc_dtype=None"
        soft = (r(2, 3), r(4, 3), r(2, 4, within=(0.0, 1.0)), None, None)
        yield soft, {"ignore_index": 1}, ValueError, "leave ignore_index=None"


def _check_options(options, dtype):
    """Raise TypeError for anything but options, NotImplementedError for sums in another dtype."""
    if options is None:
        return
    if not hasattr(options, "chunking_method"):
        raise TypeError(f"linear_cross_entropy: options must be LinearCrossEntropyOptions, got {options!r}")
    sums = str(opmath_of(dtype))
    if options.acc_dtype is not None and str(options.acc_dtype).removeprefix("torch.") not in (sums, str(dtype)):
        raise NotImplementedError(
            f"linear_cross_entropy: sums over {dtype} are computed in {sums}, got acc_dtype={options.acc_dtype}; "
            f"leave acc_dtype=None"
        )


def _hard_cross_entropy(x, target, ignore_index, reduction):
    check_floating("cross_entropy", x)
    if reduction == "mean":
        return call(mean_class_loss, (x, target), {"ignore_index": ignore_index})
    return REDUCTIONS[reduction](class_loss(x, target, ignore_index=ignore_index))


def _smooth_cross_entropy(x, target, weight, ignore_index, reduction, smoothing):
    logs = log_softmax(x, -1)
    weights = target_weights(weight, target, ignore_index, x.dtype)
    hard = -class_gather(logs, target, ignore_index=ignore_index) * weights
    uniform_loss = -mean(logs if weight is None else logs * weight, -1)
    loss = (1 - smoothing) * hard + smoothing * where(ne(target, ignore_index), uniform_loss, 0)
    return weighted_mean(loss, weights) if reduction == "mean" else REDUCTIONS[reduction](loss)


def _soft_cross_entropy(x, target, weight, reduction, smoothing):
    if x.shape != target.shape or x.ndim == 0:
        raise ValueError(
            f"cross_entropy: input {x.shape} and probabilities of shape {target.shape} must agree: a target of dtype "
            f"{target.dtype} holds a probability for each class; class numbers are integers, convert with .to('int64')"
            f"{_order_hint(x, target)}"
        )
    at = 1 if x.ndim > 1 else 0
    classes = x.shape[at]
    _check_weight("cross_entropy", weight, classes)
    target = target if smoothing == 0 else target * (1 - smoothing) + smoothing / max(classes, 1)
    if weight is not None:
        target = target * reshape(weight, (classes, *(1,) * (x.ndim - at - 1)))
    return REDUCTIONS[reduction](-sum_over(log_softmax(x, at) * target, at))
