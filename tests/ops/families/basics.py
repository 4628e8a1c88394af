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


def put_at(x, values, *ids, spec):
    out, rest = x.copy(), iter(ids)
    out[tuple(next(rest) if repr(s) == "T" else s for s in spec)] = values
    return out


def written(base, src, chain):
    out = base.copy()
    if chain:  # of the one sample: column 1
        out[:, 1] = src
    else:
        out[:] = src
    return out


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


def scattered(src, indices, shape, dim):
    out = np.zeros(shape)
    for place in np.ndindex(src.shape):
        target = list(place)
        target[dim] = indices[place]
        out[tuple(target)] += src[place]
    return out


def unsqueezed(x, dims):
    return x if dims is None else np.squeeze(x, tuple(d for d in np.atleast_1d(dims) if x.shape[d] == 1))


def like(function):
    return lambda x, dtype=None: function(x, dtype=dtype)


def softmax(x, dim):
    e = np.exp(x)
    return e / e.sum(axis=dim, keepdims=True)


def diagonals(x, offset, dim1, dim2):
    return np.diagonal(x, offset, dim1, dim2)


def on_diagonal(src, shape, offset, dim1, dim2):
    out = np.zeros(shape)
    last = np.moveaxis(out, (dim1, dim2), (-2, -1))
    for k in range(src.shape[-1]):
        last[..., k + max(-offset, 0), k + max(offset, 0)] = src[..., k]
    return out


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


ARITHMETIC = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "floor_divide": lambda a, b: np.floor(a / b),
    "remainder": lambda a, b: a - np.floor(a / b) * b,
    "pow": np.float_power,
    "square": lambda x: x * x,
    "sqrt": lambda x: x**0.5,
    "rsqrt": lambda x: x**-0.5,
    "reciprocal": lambda x: 1.0 / x,
    "abs": lambda x: np.where(x < 0, -x, x),
    "sign": lambda x: (x > 0) * 1.0 - (x < 0),
    "conj": np.conj,
    "maximum": lambda a, b: np.where(a > b, a, b),
    "minimum": lambda a, b: np.where(a < b, a, b),
    "clamp": lambda x, min, max: np.minimum(
        np.maximum(x, -np.inf if min is None else min), np.inf if max is None else max
    ),
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": lambda x: np.sign(x) * np.floor(np.abs(x)),
    "where": np.where,
}
FUNCTIONS = {
    "exp": np.exp,
    "exp2": lambda x: 2.0**x,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "logaddexp": lambda a, b: np.log(np.exp(a) + np.exp(b)),
    "sin": np.sin,
    "cos": np.cos,
    "tan": lambda x: np.sin(x) / np.cos(x),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": lambda a, b: np.angle(b + 1j * a),
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": lambda x: np.sinh(x) / np.cosh(x),
    "asinh": lambda x: np.log(x + np.sqrt(x * x + 1)),
    "acosh": lambda x: np.log(x + np.sqrt(x * x - 1)),
    "atanh": lambda x: 0.5 * np.log((1 + x) / (1 - x)),
    "erf": erf,
    "sigmoid": sigmoid,
    "relu": lambda x: x * (x > 0),
    "relu_grad": lambda t, y: np.where(y == 0, 0, t),
    "keep": lambda kept, x, scale: kept * x * scale,
    "share": lambda total, weight: total / weight,
    "share_grad": lambda t, weight: t / weight,
    "silu": lambda x: x * sigmoid(x),
    "gelu": gelu,
    "gelu_grad": lambda t, x: t * gelu_slope(x),
    "gelu_tanh_grad": lambda t, x: t * gelu_tanh_slope(x),
    "sigmoid_grad": lambda t, y: t * y * (1 - y),
    "tanh_grad": lambda t, y: t * (1 - y) * (1 + y),
    "silu_grad": lambda t, x: t * sigmoid(x) * (1 + x * sigmoid(-x)),
    "softplus_grad": lambda t, x, beta, threshold: t * np.where(beta * x > threshold, 1, sigmoid(beta * x)),
    "leaky_relu": lambda x, negative_slope: np.where(x > 0, x, x * negative_slope),
}
COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "logical_not": np.logical_not,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
}
REDUCTIONS = {
    "sum": reduction(np.sum),
    "mean": reduction(np.mean),
    "prod": reduction(np.prod),
    "amax": reduction(np.max),
    "amin": reduction(np.min),
    "all": lambda x, dim, keepdim: np.all(x, axis=dim, keepdims=keepdim),
    "any": lambda x, dim, keepdim: np.any(x, axis=dim, keepdims=keepdim),
    "argmax": reduction(np.argmax),
    "argmin": reduction(np.argmin),
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
    "reshape": lambda x, shape: np.reshape(x, shape),
    "view": lambda x, shape: np.reshape(x, shape),
    "expand": lambda x, shape: np.broadcast_to(
        x, [x.shape[i - len(shape)] if s == -1 else s for i, s in enumerate(shape)]
    ),
    "broadcast_to": lambda x, shape: np.broadcast_to(x, shape),
    "broadcast_tensors": np.broadcast_arrays,
    "squeeze": lambda x, dim: np.squeeze(x) if dim is None else unsqueezed(x, dim),
    "unsqueeze": lambda x, dim: np.expand_dims(x, dim),
    "flatten": lambda x, start_dim, end_dim: x.reshape(*x.shape[:start_dim], -1, *x.shape[x.ndim + end_dim + 1 :]),
    "unflatten": lambda x, dim, sizes: x.reshape(*x.shape[:dim], *sizes, *x.shape[dim + 1 :]),
    "permute": lambda x, dims: np.transpose(x, dims),
    "transpose": lambda x, dim0, dim1: np.swapaxes(x, dim0, dim1),
    "movedim": lambda x, source, destination: np.moveaxis(x, source, destination),
    "flip": lambda x, dims: np.flip(x, dims),
    "roll": lambda x, shifts, dim: np.roll(x, shifts, dim),
    "tril": lambda x, diagonal: np.tril(x, diagonal),
    "triu": lambda x, diagonal: np.triu(x, diagonal),
    "stack": lambda *tensors, dim: np.stack(tensors, axis=dim),
    "narrow": lambda x, dim, start, length: np.take(x, range(start, start + length), axis=dim),
    "split": sections,
    "chunk": lambda x, chunks, dim: sections(x, -(-x.shape[dim] // chunks), dim),
    "unbind": lambda x, dim: list(np.moveaxis(x, dim, 0)),
    "repeat": lambda x, repeats: np.tile(x, repeats),
}
PLACES = {
    "getitem": lambda x, *ids, spec: x[filled(ids, spec)],
    "slice": lambda x, spec: x[spec],
    "select": lambda x, dim, index: np.take(x, index, axis=dim),
    "index_put_sum": added_at,
    "index_put": put_at,
    "filled": lambda x, shape: np.full(shape, x.item()),
    "view_scatter": written,
    "scatter_sum": scattered,
    "masked_fill": lambda x, mask, value: np.where(mask, value, x),
    "nonzero": lambda x, as_tuple: np.nonzero(x) if as_tuple else np.argwhere(x),
    "nonzero_indices": np.argwhere,
    "one_hot": lambda x, num_classes: np.eye(x.max() + 1 if num_classes == -1 else num_classes, dtype=int)[x],
}
CREATION = {
    "arange": lambda start, end, step, dtype: np.arange(start, end, step),
    "linspace": lambda start, end, steps, dtype: np.linspace(start, end, steps),
    "eye": lambda n, m, dtype: np.eye(n, m),
    "full": lambda size, fill_value, dtype: np.full(size, fill_value),
    "ones": lambda size, dtype: np.ones(size),
    "zeros": lambda size, dtype: np.zeros(size),
    "full_like": lambda x, fill_value, dtype: np.full_like(x, fill_value),
    "ones_like": like(np.ones_like),
    "zeros_like": like(np.zeros_like),
    "to": lambda x, dtype: x.astype(dtype),
    "clone": np.array,
    "detach": np.array,
}
LINEAR_ALGEBRA = {
    "matmul": np.matmul,
    "mm": lambda a, b: np.einsum("ij,jk->ik", a, b),
    "bmm": lambda a, b: np.einsum("bij,bjk->bik", a, b),
    "mv": lambda a, b: (a * b).sum(1),
    "dot": lambda a, b: (a * b).sum(),
    "outer": np.outer,
    "addmm": lambda x, a, b, beta, alpha: beta * x + alpha * np.dot(a, b),
    "linear": lambda x, weight, bias: np.einsum("...i,oi->...o", x, weight) + (0 if bias is None else bias),
    "rows_dot": lambda a, b: a.reshape(-1, a.shape[-1]).T @ b.reshape(-1, b.shape[-1]),
    "diagonal": diagonals,
    "place_diagonal": on_diagonal,
    "trace": np.trace,
    "einsum": lambda *operands, equation: np.einsum(equation, *operands),
    "contract": lambda *operands, equation: np.einsum(equation, *operands),
}
NETWORKS = {
    "standardize": standardized,
    "layer_norm": layer_norm,
    "normalize": lambda x, p, dim, eps: x / (np.abs(x) ** p).sum(axis=dim, keepdims=True) ** (1 / p),
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
    "softmax_grad": lambda t, y, dim: y * t - y * (y * t).sum(dim, keepdims=True),
    "log_softmax_grad": lambda t, y, dim: t - np.exp(y) * t.sum(dim, keepdims=True),
    "pick_class": pick_class,
    "place_class": lambda src, target, classes, ignore_index: src[..., None] * one_hot(target, classes, ignore_index),
    "nll_loss": nll_loss,
    "cross_entropy": cross_entropy,
    "linear_cross_entropy": linear_cross_entropy,
    "kl_div": kl_div,
}
ORACLES = ARITHMETIC | FUNCTIONS | COMPARISONS | REDUCTIONS | SHAPES | PLACES | CREATION
BITS = {
    "row_major": np.array,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.bitwise_not,
}
COMPLEX_NUMBERS = {
    "real": np.real,
    "imag": np.imag,
    "view_as_real": lambda x: np.stack([x.real, x.imag], -1),
    "view_as_complex": lambda x: x[..., 0] + 1j * x[..., 1],
    "complex": lambda real, imag: real + 1j * imag,
    "polar": lambda abs, angle: abs * np.exp(1j * angle),
    "angle": np.angle,
    "real_angle": np.angle,
    "sgn": lambda x: x / np.abs(x),
    "conj_physical": np.conj,
    "resolve_conj": np.array,
    "isreal": np.isreal,
    "vdot": np.vdot,
    "adjoint": lambda x: np.swapaxes(x, -1, -2).conj(),
}
GRAPHS = {
    "pick": lambda *outputs, index: outputs[index],
    "guard": lambda x, expected, source: np.array_equal(x, expected),
    "pipe_split": lambda: np.zeros(()),
    "stage_backward": lambda stage_output, output_grads, input_values: (),
    "add_gradients": np.add,
    "overwritten": lambda x, numbers: numbers,
    "write": lambda target, value, recorded: np.full(2, value),
}
ORACLES |= LINEAR_ALGEBRA | NETWORKS | LOSSES | GRAPHS | BITS | COMPLEX_NUMBERS

# Why an operator has no reference implementation.
WITHOUT = dict.fromkeys(["rand", "randn", "randint", "randperm", "bernoulli"], "random: tests/ops/test_random.py")

# (operator, law): why the law is not checked for it.
EXEMPT = {
    **{
        ("nonzero_indices", law): "how many there are depends on the values, so there is no shape rule"
        for law in ("shape", "float32", "integers", "empty", "no_dimensions", "vmap")
    },
    ("nonzero", "vmap"): "how many there are depends on the values, and so the size of the result",
    ("view", "strides"): "as in PyTorch, memory that can't be shown in the shape is refused; reshape copies",
    ("view_as_complex", "strides"): "as in PyTorch, the two of a pair must lie next to each other in memory",
    ("index_put_sum", "no_dimensions"): "the transpose of indexing: its src always has the indexed shape",
}
