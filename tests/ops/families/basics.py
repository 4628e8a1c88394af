"""Reference implementations of arithmetic, reductions, views, products and losses."""

import math

import numpy as np

erf = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 0.5 * (1 + np.tanh(x / 2))


def gelu(x, approximate):
    if approximate == "none":
        return x * 0.5 * (1 + erf(x / math.sqrt(2)))
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_slope(x):
    return 0.5 * (1 + erf(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def gelu_tanh_slope(x):
    u, du = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3), math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
    return 0.5 * (1 + np.tanh(u)) + 0.5 * x * du / np.cosh(u) ** 2


def axis(dim):
    return None if dim == () else dim


def reduction(function):
    return lambda x, dim=None, keepdim=False, dtype=None: function(x, axis=axis(dim), keepdims=keepdim)


def moments(x, dim, keepdim, correction, unbiased=None):
    """Return the variance, by its definition."""
    dim, unbiased = (None, dim) if isinstance(dim, bool) else (dim, unbiased)
    correction = 1 if correction is None else correction
    away = x - x.mean(axis=axis(dim), keepdims=True)
    n = x.size / max(away.sum(axis=axis(dim)).size, 1)
    freedom = n - (correction if unbiased is None else unbiased)
    return (away**2).sum(axis=axis(dim), keepdims=keepdim) / (freedom or math.nan)


def linear_cross_entropy(
    x, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing, options
):  # fmt: skip
    logits = np.tensordot(x, linear_weight, (-1, -1)) + (0 if linear_bias is None else linear_bias)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, target, weight, ignored, reduction, label_smoothing)


def extreme(function, where):
    """Return `max` and `min`: of all elements, of two operands, or along one dimension with the index."""

    def oracle(x, other, dim, keepdim):
        if other is not None or isinstance(dim, np.ndarray):
            return (np.maximum if function is np.max else np.minimum)(x, dim if other is None else other)
        if dim is None:
            return function(x)
        return function(x, axis=dim, keepdims=keepdim), where(x, axis=dim, keepdims=keepdim)

    return oracle


def sections(x, split_size_or_sections, dim):
    sizes = split_size_or_sections
    if isinstance(sizes, int):
        return np.split(x, range(sizes, x.shape[dim], sizes), axis=dim)
    return np.split(x, np.cumsum(sizes)[:-1], axis=dim)


def filled(ids, spec):
    """Return an index with its slots filled by the index arrays."""
    left = iter(ids)
    return tuple(next(left) if repr(s) == "T" else s for s in spec)


def added_at(src, *ids, shape, spec):
    out = np.zeros(shape)
    np.add.at(out, filled(ids, spec), src)
    return out


def unsqueezed(x, dims):
    return x if dims is None else np.squeeze(x, tuple(d for d in np.atleast_1d(dims) if x.shape[d] == 1))


def like(function):
    return lambda x, dtype=None: function(x, dtype=dtype)


def softmax(x, dim):
    e = np.exp(x)
    return e / e.sum(axis=dim, keepdims=True)


def standardized(x, ndim, eps):
    dims = tuple(range(-ndim, 0))
    return (x - x.mean(axis=dims, keepdims=True)) / np.sqrt(x.var(axis=dims, keepdims=True) + eps)


def layer_norm(x, weight, bias, normalized_shape, eps):
    out = standardized(x, len(normalized_shape), eps)
    return out * (1 if weight is None else weight) + (0 if bias is None else bias)


FINISH = {
    "mean": np.mean,
    "sum": np.sum,
    "none": np.asarray,
    "batchmean": lambda loss: loss.sum() / len(loss),
}


def huber(x, target, reduction, edge, height, weight=None):
    d = np.abs(x - target)
    return weighed(np.where(d < edge, 0.5 * d * d, edge * (d - 0.5 * edge)) * height, weight, reduction)


def over_weights(loss, weight, reduction):
    total = weighed(loss, weight, reduction)
    return total if weight is None or reduction != "mean" else total / np.mean(weight)


def bernoulli_loss(x, target):
    return -target * np.log(x) - (1 - target) * np.log(1 - x)


def weighed(loss, weight, reduction):
    return FINISH[reduction](loss if weight is None else loss * weight)


def kl_div(x, target, reduction, log_target):
    p, log_p = (np.exp(target), target) if log_target else (target, np.log(target))
    return FINISH[reduction](p * (log_p - x))


def one_hot(target, classes, ignore_index):
    """Return one-hot rows of classes, zeros for ignored ones."""
    return np.eye(classes)[target] * (target != ignore_index)[..., None]


def class_loss(x, target, ignore_index):
    return -(np.log(softmax(x, -1)) * one_hot(target, x.shape[-1], ignore_index)).sum(-1)


def class_residual(x, target, ignore_index):
    return (softmax(x, -1) - one_hot(target, x.shape[-1], ignore_index)) * (target != ignore_index)[..., None]


def pick_class(x, target, ignore_index):
    return (x * one_hot(target, x.shape[-1], ignore_index)).sum(-1)


def nll_loss(x, target, weight, ignore_index, reduction):
    x = np.moveaxis(x, min(1, x.ndim - 1), -1)
    chosen = one_hot(target, x.shape[-1], ignore_index) * (1 if weight is None else weight)
    loss = -(x * chosen).sum(-1)
    return loss.sum() / chosen.sum() if reduction == "mean" else FINISH[reduction](loss)


def cross_entropy(x, target, weight, ignore_index, reduction, label_smoothing):
    x = np.moveaxis(x, min(1, x.ndim - 1), -1)
    classes, weight = x.shape[-1], np.ones(x.shape[-1]) if weight is None else weight
    logs = np.log(softmax(x, -1))
    if target.dtype.kind == "f":
        wanted = np.moveaxis(target, min(1, target.ndim - 1), -1)
        share = wanted * (1 - label_smoothing) + label_smoothing / classes
        return FINISH[reduction](-(logs * share * weight).sum(-1))
    chosen = one_hot(target, classes, ignore_index)
    share = chosen * (1 - label_smoothing) + (target != ignore_index)[..., None] * label_smoothing / classes
    loss = -(logs * share * weight).sum(-1)
    return loss.sum() / (chosen * weight).sum() if reduction == "mean" else FINISH[reduction](loss)


FUNCTIONS = {
    "erf": erf,
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "gelu": gelu,
    "gelu_grad": lambda t, x: t * gelu_slope(x),
    "gelu_tanh_grad": lambda t, x: t * gelu_tanh_slope(x),
    "silu_grad": lambda t, x: t * sigmoid(x) * (1 + x * sigmoid(-x)),
    "softplus_grad": lambda t, x, beta, threshold: t * np.where(beta * x > threshold, 1, sigmoid(beta * x)),
}
REDUCTIONS = {
    "count_nonzero": lambda x, dim: np.count_nonzero(x, axis=axis(dim)),
    "logsumexp": reduction(lambda x, **where: np.log(np.sum(np.exp(x), **where))),
    "max": extreme(np.max, np.argmax),
    "min": extreme(np.min, np.argmin),
    "variance": moments,
    "var": moments,
    "std": lambda *args, **params: np.sqrt(moments(*args, **params)),
    "var_mean": lambda x, dim, unbiased, keepdim, correction: (
        moments(x, dim, keepdim, correction, unbiased),
        x.mean(axis=axis(dim), keepdims=keepdim),
    ),
}
SHAPES = {
    "squeeze": lambda x, dim: np.squeeze(x) if dim is None else unsqueezed(x, dim),
    "split": sections,
    "chunk": lambda x, chunks, dim: sections(x, -(-x.shape[dim] // chunks), dim),
}
PLACES = {
    "getitem": lambda x, *ids, spec: x[filled(ids, spec)],
    "index_put_sum": added_at,
}
CREATION = {
    "ones_like": like(np.ones_like),
    "zeros_like": like(np.zeros_like),
}
NETWORKS = {
    "standardize": standardized,
    "layer_norm": layer_norm,
}
LOSSES = {
    "mse_loss": lambda x, target, weight, reduction: over_weights((x - target) ** 2, weight, reduction),
    "l1_loss": lambda x, target, weight, reduction: over_weights(np.abs(x - target), weight, reduction),
    "smooth_l1_loss": lambda x, target, reduction, beta: huber(x, target, reduction, beta, 1 / beta),
    "huber_loss": lambda x, target, weight, reduction, delta: huber(x, target, reduction, delta, 1, weight),
    "bernoulli_loss": bernoulli_loss,
    "binary_cross_entropy": lambda x, target, weight, reduction: weighed(bernoulli_loss(x, target), weight, reduction),
    "binary_cross_entropy_with_logits": lambda x, target, weight, pos_weight, reduction: weighed(
        -(1 if pos_weight is None else pos_weight) * target * np.log(sigmoid(x)) - (1 - target) * np.log(sigmoid(-x)),
        weight,
        reduction,
    ),
    "class_loss": class_loss,
    "class_residual": class_residual,
    "class_grad": lambda t, x, target, ignore_index: t[..., None] * class_residual(x, target, ignore_index),
    "pick_class": pick_class,
    "place_class": lambda src, target, classes, ignore_index: src[..., None] * one_hot(target, classes, ignore_index),
    "nll_loss": nll_loss,
    "cross_entropy": cross_entropy,
    "linear_cross_entropy": linear_cross_entropy,
    "kl_div": kl_div,
}
ORACLES = FUNCTIONS | REDUCTIONS | SHAPES | PLACES | CREATION | NETWORKS | LOSSES
