"""Normalisation: to mean 0 and variance 1 over rows, channels or groups of channels.

Every norm here is seen as one of x with shape (n, c, l) over n and l, each of the c by itself: c are the channels of
`batch_norm`, the rows of `layer_norm`, the groups of all samples in `group_norm`.
"""

import math

from retrograd.core import Aval, Definition, op, registry
from retrograd.core import dtype as dtypes
from retrograd.ops.batching import all_batched
from retrograd.ops.family import Composite, Pointwise, broadcast_like, check_real, kernels_know, numel
from retrograd.ops.mutate import copy_
from retrograd.ops.norm_rows import normed
from retrograd.ops.pointwise import detach, pow, rsqrt, square
from retrograd.ops.reduce import mean
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import cat, expand, movedim, narrow, reshape

# ------------------------------------------------------------------------------- of each channel by itself


@op("channel_standardize(Tensor x, *, float eps, bool center=True) -> (Tensor out, Tensor mean, Tensor variance)")
class channel_standardize(Definition):
    """(x - mean) / sqrt(variance + eps), x (n, c, l), with the mean and the variance (over n * l) of each of the c.

    center=False: the mean is taken to be 0, and the variance the mean of the squares.
    With s = 1 / sqrt(variance + eps) and y the result, the Jacobian is s (1 - 1/N - y y^T / N): symmetric.
    """

    public = False
    method = False

    def impl(xp, x, *, eps, center):
        _check_channels("channel_standardize", x)
        if x.dtype != dtypes.float16:
            return _standardized(xp, x, eps, center)
        return tuple(a.astype(x.dtype) for a in _standardized(xp, x.astype(dtypes.float32), eps, center))

    def shape(x, *, eps, center):
        _check_channels("channel_standardize", x)
        each = Aval(x.shape[1:2], x.dtype)
        return x, each, each

    def vjp_x(g, out, eps, center):
        y, _, variance = out
        g, of_mean, of_variance = g
        count, scale = _count(y), rsqrt(variance + eps)
        away = of_variance * (2 / count) / scale - scale * channel_dot(g, y) / count
        level = (of_mean - scale * sum_over(g, (0, 2))) / count if center else None
        return channel_mix(g, scale, level, y, away)

    def jvp_x(t, out, eps, center):
        y, _, variance = out
        count, scale = _count(y), rsqrt(variance + eps)
        along, shift = channel_dot(t, y) / count, mean(t, (0, 2))
        moved = channel_mix(t, scale, -scale * shift if center else None, y, -scale * along)
        return moved, shift if center else shift * 0, 2 * along / scale

    def dependence(i, out, x, *, eps, center):
        return {1: 1 if out.ndim == 3 else 0}

    def batch(batched, n, x, *, eps, center):
        out, average, variance = channel_standardize(_beside(x), eps=eps, center=center)
        each = (n, x.shape[2])
        return _apart(out, x.shape), reshape(average, each), reshape(variance, each)

    def samples(r):
        yield (r(3, 2, 4),), {"eps": 0.1}
        yield (r(3, 2, 1),), {"eps": 1e-5}
        yield (r(1, 2, 4),), {"eps": 0.1, "center": False}

    def errors(r):
        yield (r(3, 4),), {"eps": 0.1}, ValueError, r"channel_standardize: expected shape \(n, c, l\), got \(3, 4\)"


def _beside(x):
    """The channels of all examples, (examples, n, c, l), beside each other; so numbers for each, (examples, c)."""
    if x is None or x.ndim == 2:
        return x if x is None else reshape(x, (numel(x.shape),))
    examples, n, c, size = x.shape
    return reshape(movedim(x, 0, 1), (n, examples * c, size))


def _apart(x, shape):
    """`_beside` undone."""
    examples, n, c, size = shape
    return movedim(reshape(x, (n, examples, c, size)), 1, 0)


def _standardized(xp, x, eps, center):
    if center and x.shape[0] == 1:
        out, average, variance = xp.standardize_rows(x[0], x.dtype.type(eps))
        return out[None], average, variance
    zero = xp.zeros(x.shape[1], x.dtype)
    average, variance = xp.channel_moments(x) if center else (zero, xp.channel_dots(x, x) / _count(x))
    return xp.channel_shift(x, average, 1 / xp.sqrt(variance + eps), zero), average, variance


def _count(x):
    """How many elements each channel has; 1 if none, so that nothing is divided by 0."""
    return max(x.shape[0] * x.shape[2], 1)


def _check_channels(name, x):
    check_real(name, x)
    if x.ndim != 3:
        raise ValueError(f"{name}: expected shape (n, c, l), got {x.shape}")


def _check_each(name, x, *each):
    _check_channels(name, x)
    for e in each:
        if e is not None and e.shape != x.shape[1:2]:
            raise ValueError(f"{name}: shape {e.shape} does not fit the channels of {x.shape}")


@op("channel_dot(Tensor x, Tensor y) -> Tensor")
class channel_dot(Definition, linear="x y"):
    """The sums of x * y, both (n, c, l), over n and l."""

    public = False
    method = False

    def impl(xp, x, y):
        _check_pair("channel_dot", x, y)
        return xp.einsum("ncl,ncl->c", x, y) if x.dtype == dtypes.float16 else xp.channel_dots(x, y)

    def shape(x, y):
        _check_pair("channel_dot", x, y)
        return Aval(x.shape[1:2], x.dtype)

    def vjp_x(g, y):
        return channel_mix(y, g)

    def vjp_y(g, x):
        return channel_mix(x, g)

    def dependence(i, out, x, y):
        return {1: 0}

    def batch(batched, n, x, y):
        x, y = all_batched((x, y), batched, n)
        return reshape(channel_dot(_beside(x), _beside(y)), (n, x.shape[2]))

    def samples(r):
        yield (r(3, 2, 4), r(3, 2, 4)), {}
        yield (r(3, 2, 1), r(3, 2, 1)), {}


def _check_pair(name, x, y):
    _check_channels(name, x)
    if x.shape != y.shape:
        raise ValueError(f"{name}: shapes {x.shape} and {y.shape} differ")


@op("channel_mix(Tensor x, Tensor p, Tensor? q=None, Tensor? y=None, Tensor? r=None) -> Tensor")
class channel_mix(Definition):
    """x * p + q + y * r: x and y (n, c, l), the others one number per channel, (c,)."""

    public = False
    method = False

    def impl(xp, x, p, q, y, r):
        _check_each("channel_mix", x, p, q, r)
        if x.dtype != dtypes.float16:
            zero = xp.zeros(x.shape[1], x.dtype)
            q = zero if q is None else q
            return xp.channel_shift(x, zero, p, q) if y is None else xp.channel_mix(x, p, q, y, r)
        out = x * p[:, None]
        if y is not None:
            out += y * r[:, None]
        if q is not None:
            out += q[:, None]
        return out

    def shape(x, p, q, y, r):
        _check_each("channel_mix", x, p, q, r)
        if y is not None:
            _check_pair("channel_mix", x, y)
        return x

    def vjp_x(g, p):
        return channel_mix(g, p)

    def vjp_p(g, x):
        return channel_dot(g, x)

    def vjp_q(g):
        return sum_over(g, (0, 2))

    def vjp_y(g, r):
        return channel_mix(g, r)

    def vjp_r(g, y):
        return channel_dot(g, y)

    def jvp_x(t, p):
        return channel_mix(t, p)

    def jvp_p(t, x):
        return channel_mix(x, t)

    def jvp_q(t, x):
        return expand(reshape(t, (-1, 1)), x.shape) * 1

    def jvp_y(t, r):
        return channel_mix(t, r)

    def jvp_r(t, y):
        return channel_mix(y, t)

    def dependence(i, out, x, p, q, y, r):
        return {0: 0, 1: 1, 2: 2} if i in (0, 3) else {0: 1}

    def batch(batched, n, x, p, q, y, r):
        if not (batched[1] or batched[2] or batched[4]):  # the channels of all examples are treated alike
            x, y = all_batched((x, y), (batched[0], batched[3]), n)
            rows = [a if a is None else reshape(a, (n * a.shape[1], *a.shape[2:])) for a in (x, y)]
            return reshape(channel_mix(rows[0], p, q, rows[1], r), x.shape)
        args = all_batched((x, p, q, y, r), batched, n)
        return _apart(channel_mix(*map(_beside, args)), args[0].shape)

    def samples(r):
        yield (r(3, 2, 4), r(2), None, None, None), {}
        yield (r(3, 2, 4), r(2), r(2), None, None), {}
        yield (r(3, 2, 1), r(2), r(2), r(3, 2, 1), r(2)), {}
        yield (r(3, 2, 4), r(2), None, r(3, 2, 4), r(2)), {}

    def errors(r):
        yield (r(3, 2, 4), r(3), None, None, None), {}, ValueError, r"channel_mix: shape \(3,\) does not fit"


@op("affine(Tensor x, Tensor weight, Tensor bias) -> Tensor")
class affine(Pointwise):
    """x * weight + bias; all three broadcast."""

    public = False
    method = False

    def impl(xp, x, weight, bias):
        xp.real_only("affine", x)
        if x.shape[-1:] == weight.shape == bias.shape and x.dtype in (dtypes.float32, dtypes.float64):
            return xp.affine_rows(x, weight, bias)
        out = xp.asarray(x * weight)
        return xp.add(out, bias, out=out) if bias.shape == out.shape[out.ndim - bias.ndim :] else out + bias

    def vjp_x(g, weight):
        return g * weight

    def vjp_weight(g, x, weight_aval):
        if x.shape[-1:] == weight_aval.shape and x.shape == g.shape and x.ndim > 1:  # the sum of many rows at once
            rows = (numel(x.shape[:-1]), *weight_aval.shape, 1)
            return channel_dot(reshape(g, rows), reshape(x, rows))
        return g * x

    def jvp_weight(t, x, out):
        return broadcast_like(t * x, out)

    def vjp_bias(g):
        return g

    def samples(r):
        yield (r(3, 4), r(4), r(4)), {}
        yield (r(4), r(2, 1), r(3, 1, 1)), {}
        yield (r(1, 4), r(4), r(3, 4)), {}


# ------------------------------------------------------------------------------------------- over trailing dimensions


def _rows(x, ndim, eps, center=True):
    """x standardized over its last `ndim` dimensions."""
    lead, count = math.prod(x.shape[: x.ndim - ndim]), math.prod(x.shape[x.ndim - ndim :])
    return reshape(channel_standardize(reshape(x, (1, lead, count)), eps=eps, center=center)[0], x.shape)


@op("standardize(Tensor x, int ndim=1, *, float eps=1e-05) -> Tensor")
class standardize(Composite):
    """(x - mean) / sqrt(variance + eps) over the last `ndim` dimensions; the variance is that over n."""

    method = False

    def compose(x, *, ndim, eps):
        check_real("standardize", x)
        if not 0 < ndim <= x.ndim:
            raise ValueError(
                f"standardize: ndim must be from 1 to {x.ndim} for a tensor of shape {x.shape}, got {ndim}"
            )
        return _rows(x, ndim, eps)

    def samples(r):
        yield (r(3, 4),), {}
        yield (r(2, 3, 4),), {"ndim": 2, "eps": 0.1}

    def errors(r):
        yield (r(3),), {"ndim": 2}, ValueError, "ndim must be from 1 to 1"


def _check_trailing(name, x, normalized_shape, **given):
    check_real(name, x)
    if not normalized_shape or x.shape[max(x.ndim - len(normalized_shape), 0) :] != normalized_shape:
        raise ValueError(f"{name}: normalized_shape {normalized_shape} is not how shape {x.shape} ends")
    for what, tensor in given.items():
        if tensor is not None and tensor.shape != normalized_shape:
            raise ValueError(
                f"{name}: {what} has shape {tensor.shape}, not normalized_shape {normalized_shape}"
            )


def _weighed(x, weight, bias):
    """x * weight + bias, either of which may be missing."""
    if weight is not None and bias is not None:
        return affine(x, weight, bias)
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


@op(
    "layer_norm(Tensor x, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) "
    "-> Tensor"
)
class layer_norm(Composite, aliases="nn.functional.layer_norm"):
    """x with mean 0 and variance 1 over its last dimensions, `normalized_shape`; times weight, plus bias.

    weight and bias have the shape `normalized_shape`.  J. L. Ba, J. R. Kiros and G. E. Hinton, Layer
    normalization, arXiv 1607.06450.

    >>> import retrograd as rg
    >>> rg.layer_norm(rg.tensor([[-1.0, 1.0]]), [2], eps=0.0).tolist()
    [[-1.0, 1.0]]
    """

    method = False

    def compose(x, weight, bias, *, normalized_shape, eps):
        _check_trailing("layer_norm", x, normalized_shape, weight=weight, bias=bias)
        if kernels_know(x, weight, bias):
            return normed(x, len(normalized_shape), weight, bias, eps)
        return _weighed(_rows(x, len(normalized_shape), eps), weight, bias)

    def samples(r):
        yield (r(3, 4), r(4), r(4)), {"normalized_shape": (4,)}
        yield (r(2, 3, 4), None, None), {"normalized_shape": (3, 4)}

    def errors(r):
        yield (
            (r(3, 4), None, None),
            {"normalized_shape": (3,)},
            ValueError,
            r"\(3,\) is not how shape \(3, 4\) ends",
        )
        yield (r(3, 4), r(3), None), {"normalized_shape": (4,)}, ValueError, r"weight has shape \(3,\)"


@op("rms_norm(Tensor x, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor")
class rms_norm(Composite, aliases="nn.functional.rms_norm"):
    """x / sqrt(mean(x^2) + eps) over its last dimensions, `normalized_shape`; times weight.

    eps: None for the distance from 1 to the next number of the dtype.  B. Zhang and R. Sennrich, Root mean square
    layer normalization, arXiv 1910.07467.

    >>> import retrograd as rg
    >>> rg.rms_norm(rg.tensor([2.0, 2.0]), [2]).tolist()
    [1.0, 1.0]
    """

    method = False

    def compose(x, weight, *, normalized_shape, eps):
        _check_trailing("rms_norm", x, normalized_shape, weight=weight)
        eps = dtypes.finfo(x.dtype).eps if eps is None else eps
        if kernels_know(x, weight):
            return normed(x, len(normalized_shape), weight, None, eps, center=False)
        return _weighed(_rows(x, len(normalized_shape), eps, center=False), weight, None)

    def samples(r):
        yield (r(3, 4), r(4)), {"normalized_shape": (4,)}
        yield (r(2, 3, 4), None), {"normalized_shape": (3, 4), "eps": 0.1}

    def errors(r):
        yield (r(3, 4), r(3)), {"normalized_shape": (4,)}, ValueError, r"rms_norm: weight has shape \(3,\)"


# -------------------------------------------------------------------------------------------- over channels


def _channels(name, x, **given):
    """x as (n, channels, l); a ValueError names what does not fit."""
    check_real(name, x)
    if x.ndim < 2:
        raise ValueError(f"{name}: expected at least 2 dimensions, (n, channels, ...), got shape {x.shape}")
    for what, tensor in given.items():
        if tensor is not None and tensor.shape != x.shape[1:2]:
            raise ValueError(f"{name}: {what} has shape {tensor.shape}, expected one number per channel of {x.shape}")
    return reshape(x, (*x.shape[:2], math.prod(x.shape[2:])))


def _mix(x, weight, bias):
    """`_weighed` by channels."""
    if weight is None:
        return x if bias is None else x + reshape(bias, (-1, 1))
    return channel_mix(x, weight, bias)


def _with_running(name, x, mean, var, weight, bias, eps):
    """(x - mean) / sqrt(var + eps) * weight + bias, in one step."""
    if mean is None or var is None:
        raise RuntimeError(f"{name}: running_mean and running_var are needed where the input's own are not used")
    scale = rsqrt(var + eps) if weight is None else rsqrt(var + eps) * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    return channel_mix(x, scale, shift)


def _keep_running(running, found, momentum):
    """Move a running statistic towards what was found."""
    if running is not None:
        copy_(running, detach(running) * (1 - momentum) + detach(found) * momentum)


@op(
    "batch_norm(Tensor x, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? bias=None, "
    "bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor"
)
class batch_norm(Composite, home="nn.functional"):
    """(x - mean) / sqrt(variance + eps) * weight + bias for each channel: x (n, channels, ...), the others (channels,).

    training: mean and variance are those of x, over all dimensions but the channels, and the running ones move
    towards them, in place, by the factor momentum, the variance unbiased.  Otherwise they are the running ones.
    S. Ioffe and C. Szegedy, Batch normalization, arXiv 1502.03167.

    >>> import retrograd as rg
    >>> mean, var = rg.zeros(1), rg.ones(1)
    >>> rg.nn.functional.batch_norm(rg.tensor([[2.0], [4.0]]), mean, var, training=True, momentum=0.5).tolist()
    [[-0.9999949932098389], [0.9999949932098389]]
    >>> mean.tolist(), var.tolist()
    ([1.5], [1.5])
    """

    def compose(x, running_mean, running_var, weight, bias, *, training, momentum, eps):
        parts = _channels(
            "batch_norm", x, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
        )
        if not training:
            out = _with_running("batch_norm", parts, running_mean, running_var, weight, bias, eps)
            return reshape(out, x.shape)
        count = parts.shape[0] * parts.shape[2]
        if count == 1:
            raise ValueError(f"batch_norm: expected more than 1 value per channel when training, got shape {x.shape}")
        out, mean, var = channel_standardize(parts, eps=eps)
        _keep_running(running_mean, mean, momentum)
        _keep_running(running_var, var * (count / max(count - 1, 1)), momentum)
        return reshape(_mix(out, weight, bias), x.shape)

    def samples(r):
        yield (r(4, 2, 3), None, None, r(2), r(2)), {"training": True}
        yield (r(4, 2), None, None, None, None), {"training": True, "eps": 0.1}
        yield (r(4, 2, 3), r(2), r(2, within=(0.5, 2.0)), r(2), r(2)), {}
        yield (r(4, 2), r(2), r(2, within=(0.5, 2.0)), None, None), {}

    def errors(r):
        none = (None,) * 4
        yield (r(4, 2), *none), {}, RuntimeError, "running_mean and running_var are needed"
        yield (r(1, 2), *none), {"training": True}, ValueError, "more than 1 value per channel"
        yield (r(4, 2), None, None, r(3), None), {"training": True}, ValueError, r"weight has shape \(3,\)"
        yield (r(4), *none), {"training": True}, ValueError, "at least 2 dimensions"


@op(
    "instance_norm(Tensor x, Tensor? running_mean=None, Tensor? running_var=None, Tensor? weight=None, "
    "Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> Tensor"
)
class instance_norm(Composite, home="nn.functional"):
    """`batch_norm` of each sample by itself; the running mean and variance move towards the means over the samples.

    D. Ulyanov, A. Vedaldi and V. Lempitsky, Instance normalization, arXiv 1607.08022.
    """

    def compose(x, running_mean, running_var, weight, bias, *, use_input_stats, momentum, eps):
        parts = _channels(
            "instance_norm", x, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
        )
        n, c, count = parts.shape
        if not use_input_stats:
            out = _with_running("instance_norm", parts, running_mean, running_var, weight, bias, eps)
            return reshape(out, x.shape)
        if count == 1:
            raise ValueError(f"instance_norm: expected more than 1 spatial element when training, got shape {x.shape}")
        out, found, var = channel_standardize(reshape(parts, (1, n * c, count)), eps=eps)
        if running_mean is not None or running_var is not None:
            _keep_running(running_mean, mean(reshape(found, (n, c)), 0), momentum)
            _keep_running(running_var, mean(reshape(var, (n, c)), 0) * (count / max(count - 1, 1)), momentum)
        return reshape(_mix(reshape(out, (n, c, count)), weight, bias), x.shape)

    def samples(r):
        yield (r(3, 2, 4), None, None, r(2), r(2)), {}
        yield (r(3, 2, 2, 2), None, None, None, None), {"eps": 0.1}
        yield (r(3, 2, 4), r(2), r(2, within=(0.5, 2.0)), None, None), {"use_input_stats": False}

    def errors(r):
        yield (r(3, 2, 1), *(None,) * 4), {}, ValueError, "more than 1 spatial element"


@op(
    "group_norm(Tensor x, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor"
)
class group_norm(Composite, aliases="nn.functional.group_norm"):
    """Each sample with mean 0 and variance 1 in each of `num_groups` groups of its channels; times weight, plus bias.

    x (n, channels, ...), weight and bias (channels,).  Y. Wu and K. He, Group normalization, arXiv 1803.08494.
    """

    method = False

    def compose(x, weight, bias, *, num_groups, eps):
        parts = _channels("group_norm", x, weight=weight, bias=bias)
        n, c, count = parts.shape
        if num_groups < 1 or c % num_groups:
            raise RuntimeError(f"group_norm: {c} channels can't be divided into num_groups={num_groups} groups")
        groups = reshape(parts, (1, n * num_groups, c // num_groups * count))
        out = reshape(channel_standardize(groups, eps=eps)[0], parts.shape)
        return reshape(_mix(out, weight, bias), x.shape)

    def samples(r):
        yield (r(3, 4, 2), r(4), r(4)), {"num_groups": 2}
        yield (r(3, 4), r(4), None), {"num_groups": 1, "eps": 0.1}

    def errors(r):
        yield (r(3, 4), None, None), {"num_groups": 3}, RuntimeError, "4 channels can't be divided into num_groups=3"


@op(
    "local_response_norm(Tensor x, int size, float alpha=0.0001, float beta=0.75, float k=1.0) -> Tensor"
)
class local_response_norm(Composite, home="nn.functional"):
    """x / (k + alpha * the mean of x^2 over `size` neighbouring channels) ^ beta; beyond the ends there are zeros.

    x (n, channels, ..., l).  A. Krizhevsky, I. Sutskever and G. E. Hinton, ImageNet classification with deep
    convolutional neural networks, NIPS 2012.
    """

    def compose(x, *, size, alpha, beta, k):
        if x.ndim < 3:
            raise ValueError(f"local_response_norm: expected at least 3 dimensions, got shape {x.shape}")
        if size < 1:
            raise ValueError(f"local_response_norm: size must be at least 1, got {size}")
        before, after = (registry["zeros"]((x.shape[0], m, *x.shape[2:]), dtype=x.dtype) for m in _sides(size))
        squares = cat([before, square(x), after], 1)
        total = narrow(squares, 1, 0, x.shape[1])
        for i in range(1, size):
            total = total + narrow(squares, 1, i, x.shape[1])
        return x / pow(total * (alpha / size) + k, beta)

    def samples(r):
        yield (r(2, 5, 3),), {"size": 3, "alpha": 0.5}
        yield (r(2, 3, 2),), {"size": 2, "alpha": 0.3, "beta": 0.5, "k": 2.0}

    def errors(r):
        yield (r(3, 4),), {"size": 2}, ValueError, "at least 3 dimensions"


def _sides(size):
    """How many neighbours count before a channel, and how many after it."""
    return size // 2, (size - 1) // 2
