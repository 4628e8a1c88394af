"""Normalization over rows, channels or groups of channels: layer, RMS, batch, instance, group norm.

Each normalization reduces x of shape (n, c, l) over n and l, separately for each c: the channels in `batch_norm`, the
rows in `layer_norm`, the groups of all samples in `group_norm`.
"""

import math

from retrograd.backend.type_info import finfo
from retrograd.core import Internal, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.aval import symbolic
from retrograd.foundation.older_forms import other_names
from retrograd.ops.buffers import write_statistic
from retrograd.ops.channels import channel_dot, channel_mix, channel_standardize, norm_channels
from retrograd.ops.family import (
    Composite,
    Pointwise,
    broadcast_like,
    cast_to,
    check_floating,
    check_real,
    kernels_support,
    numel,
)
from retrograd.ops.norm_rows import norm_trailing_dims
from retrograd.ops.pointwise import clone, pow, rsqrt, square
from retrograd.ops.reduce import mean
from retrograd.ops.view import cat, narrow, reshape


@op("affine(Tensor x, Tensor weight, Tensor bias) -> Tensor")
class affine(Internal, Pointwise):
    """x * weight + bias; all three broadcast."""

    def impl(xp, x, weight, bias):
        xp.real_only("affine", x)
        if x.shape[-1:] == weight.shape == bias.shape and x.dtype in (dtypes.float32, dtypes.float64):
            return xp.affine_rows(x, weight, bias)
        out = xp.asarray(x * weight)
        return xp.add(out, bias, out=out) if bias.shape == out.shape[out.ndim - bias.ndim :] else out + bias

    def vjp_x(g, weight):
        return g * weight

    def vjp_weight(g, x, weight_aval):
        known = symbolic(x.shape) is None
        if known and x.shape[-1:] == weight_aval.shape and x.shape == g.shape and x.ndim > 1:  # sum many rows at once
            rows = (numel(x.shape[:-1]), *weight_aval.shape, 1)
            return channel_dot(reshape(g, rows), reshape(x, rows))
        return g * x

    def jvp_weight(t, x, out):
        return broadcast_like(t * x, out)

    def vjp_bias(g):
        return g

    def oracle(np, x, weight, bias):
        return x * weight + bias

    def samples(r):
        yield (r(3, 4), r(4), r(4)), {}
        yield (r(4), r(2, 1), r(3, 1, 1)), {}
        yield (r(1, 4), r(4), r(3, 4)), {}


# ------------------------------------------------------------------------------------------- over trailing dimensions


def _standardize(x, ndim, eps, center=True):
    """x standardized over its last `ndim` dimensions."""
    if not _rows_are_known(x, ndim):
        dims = tuple(range(-ndim, 0))
        x = x - mean(x, dims, keepdim=True) if center else x
        return x * rsqrt(mean(square(x), dims, keepdim=True) + eps)
    lead, count = math.prod(x.shape[: x.ndim - ndim]), math.prod(x.shape[x.ndim - ndim :])
    return reshape(channel_standardize(reshape(x, (1, lead, count)), eps=eps, center=center)[0], x.shape)


def _rows_are_known(x, ndim):
    """Whether the number of rows, of the last `ndim` dimensions, is a number: under `vmap` it may be ragged."""
    return symbolic(x.shape[: x.ndim - ndim]) is None


@op("standardize(Tensor x, int ndim=1, *, float eps=1e-05) -> Tensor")
class standardize(Composite, opmath="x"):
    """(x - mean) / sqrt(variance + eps) over the last `ndim` dimensions, with the biased variance."""

    method = False

    def compose(x, *, ndim, eps):
        check_real("standardize", x)
        if not 0 < ndim <= x.ndim:
            raise ValueError(
                f"standardize: ndim must be from 1 to {x.ndim} for a tensor of shape {x.shape}, got {ndim}"
            )
        return _standardize(x, ndim, eps)

    oracle = "retrograd.testing.references.normalize.standardize"

    def samples(r):
        yield (r(3, 4),), {}
        yield (r(2, 3, 4),), {"ndim": 2, "eps": 0.1}

    def errors(r):
        yield (r(3),), {"ndim": 2}, ValueError, "ndim must be from 1 to 1"


def _check_trailing(name, x, normalized_shape, weight, bias=None):
    shape = x.shape
    if not normalized_shape or shape[max(len(shape) - len(normalized_shape), 0) :] != normalized_shape:
        raise ValueError(
            f"{name}: normalized_shape {normalized_shape} is not how shape {x.shape} ends; Given "
            f"normalized_shape={list(normalized_shape)}, expected input with shape [*, "
            f"{', '.join(map(str, normalized_shape))}], but got input of size{list(x.shape)}"
        )
    for argument, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and tensor.shape != normalized_shape:
            raise ValueError(f"{name}: {argument} has shape {tensor.shape}, not normalized_shape {normalized_shape}")


def _scale_and_shift(x, weight, bias):
    """x * weight + bias; either may be None."""
    if weight is not None and bias is not None:
        return affine(x, weight, bias)
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


@op("layer_norm(Tensor x, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor")
class layer_norm(Composite, aliases="nn.functional.layer_norm", opmath="x weight bias", mixed=True):
    """Layer normalization: x standardized over its last dimensions, `normalized_shape`, times weight, plus bias.

    weight and bias have the shape `normalized_shape`.  J. L. Ba, J. R. Kiros and G. E. Hinton, Layer
    normalization, arXiv 1607.06450.

    >>> import retrograd as rg
    >>> rg.layer_norm(rg.tensor([[-1.0, 1.0]]), [2], eps=0.0).tolist()
    [[-1.0, 1.0]]
    """

    method = False
    older_form = other_names("input normalized_shape weight bias eps cudnn_enable", cudnn_enable=None)

    def compose(x, weight, bias, *, normalized_shape, eps):
        check_real("layer_norm", x)
        _check_trailing("layer_norm", x, normalized_shape, weight, bias)
        if kernels_support(x, weight, bias) and _rows_are_known(x, len(normalized_shape)):
            return norm_trailing_dims(x, len(normalized_shape), weight, bias, eps)
        return _scale_and_shift(_standardize(x, len(normalized_shape), eps), weight, bias)

    oracle = "retrograd.testing.references.normalize.layer_norm"

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
class rms_norm(Composite, aliases="nn.functional.rms_norm", opmath="x weight", mixed=True):
    """RMS normalization: x / sqrt(mean(x^2) + eps) over its last dimensions, `normalized_shape`, times weight.

    x may be complex.  eps: None for the machine epsilon of the dtype.  B. Zhang and R. Sennrich, Root mean square
    layer normalization, arXiv 1910.07467.

    >>> import retrograd as rg
    >>> rg.rms_norm(rg.tensor([2.0, 2.0]), [2]).tolist()
    [1.0, 1.0]
    """

    method = False

    def compose(x, weight, *, normalized_shape, eps):
        check_floating("rms_norm", x)
        _check_trailing("rms_norm", x, normalized_shape, weight)
        eps = finfo(x.dtype).eps if eps is None else eps
        if kernels_support(x, weight) and _rows_are_known(x, len(normalized_shape)):
            return norm_trailing_dims(x, len(normalized_shape), weight, None, eps, center=False)
        if x.dtype.kind == "c":
            dims = tuple(range(-len(normalized_shape), 0))
            return _scale_and_shift(x * rsqrt(mean(square(x), dims, keepdim=True) + eps), weight, None)
        return _scale_and_shift(_standardize(x, len(normalized_shape), eps, center=False), weight, None)

    oracle = "retrograd.testing.references.normalize.rms_norm"

    def samples(r):
        yield (r(3, 4), r(4)), {"normalized_shape": (4,)}
        yield (r(2, 3, 4), None), {"normalized_shape": (3, 4), "eps": 0.1}

    def errors(r):
        yield (r(3, 4), r(3)), {"normalized_shape": (4,)}, ValueError, r"rms_norm: weight has shape \(3,\)"


# -------------------------------------------------------------------------------------------- over channels


def _as_channels(name, x, **given):
    """x reshaped to (n, channels, l); ValueError names the argument that does not fit."""
    check_real(name, x)
    if x.shape == (0,):  # no samples, without channels
        x = reshape(x, (0, 0))
    if x.ndim < 2:
        raise ValueError(f"{name}: expected at least 2 dimensions, (n, channels, ...), got shape {x.shape}")
    for argument, tensor in given.items():
        if tensor is not None and tensor.shape != x.shape[1:2]:
            raise ValueError(
                f"{name}: {argument} should contain {x.shape[1]} elements not {tensor.size}: it has shape "
                f"{tensor.shape}, expected one number per channel of {x.shape}"
            )
    return reshape(x, (*x.shape[:2], math.prod(x.shape[2:])))


def _scale_and_shift_channels(x, weight, bias):
    """x * weight + bias per channel; either may be None."""
    if weight is None:
        return x if bias is None else x + reshape(bias, (-1, 1))
    return channel_mix(x, weight, bias)


def _normalize_by_running(name, x, mean, var, weight, bias, eps):
    """(x - mean) / sqrt(var + eps) * weight + bias in one step, from running statistics."""
    if mean is None or var is None:
        raise RuntimeError(f"{name}: running_mean and running_var are needed where the input's own are not used")
    mean, var = cast_to(mean, x.dtype), cast_to(var, x.dtype)
    scale = rsqrt(var + eps) if weight is None else rsqrt(var + eps) * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    return channel_mix(x, scale, shift)


def update_running(name, running, found, momentum):
    """Move a running statistic towards that of the batch, in place."""
    if running is not None:
        write_statistic(name, running, lambda old, new: old * (1 - momentum) + new * momentum, found)


@op(
    "batch_norm(Tensor x, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? bias=None, "
    "bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor"
)
class batch_norm(Composite, home="nn.functional", opmath="x weight bias", mixed=True):
    """Batch normalization: (x - mean) / sqrt(variance + eps) * weight + bias for each channel.

    x is (n, channels, ...), the others are (channels,).  training: mean and variance are those of x over all dimensions
    except the channels.  The running statistics move towards them in place by the factor momentum, with the unbiased
    variance.  Otherwise the running statistics are used.  S. Ioffe and C. Szegedy, Batch normalization, arXiv
    1502.03167.

    >>> import retrograd as rg
    >>> mean, var = rg.zeros(1), rg.ones(1)
    >>> rg.nn.functional.batch_norm(rg.tensor([[2.0], [4.0]]), mean, var, training=True, momentum=0.5).tolist()
    [[-0.9999949932098389], [0.9999949932098389]]
    >>> mean.tolist(), var.tolist()
    ([1.5], [1.5])
    """

    def compose(x, running_mean, running_var, weight, bias, *, training, momentum, eps):
        parts = _as_channels(
            "batch_norm", x, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
        )
        if eps < 0:
            wanted = "positive during training" if training else "non-negative"
            raise ValueError(f"batch_norm: batch_norm eps must be {wanted}, but got {eps}")
        if not training:
            out = _normalize_by_running("batch_norm", parts, running_mean, running_var, weight, bias, eps)
            return reshape(out, x.shape)
        count = parts.shape[0] * parts.shape[2]
        if count == 1:
            raise ValueError(
                f"batch_norm: Expected more than 1 value per channel when training, got input size {x.shape}"
            )
        weight = registry["ones"](parts.shape[1:2], dtype=x.dtype) if weight is None else weight
        bias = registry["zeros"](parts.shape[1:2], dtype=x.dtype) if bias is None else bias
        out, mean, var = norm_channels([parts, weight, bias], eps=eps)
        if count:  # an empty batch has no statistics
            update_running("batch_norm", running_mean, mean, momentum)
            update_running("batch_norm", running_var, var * (count / max(count - 1, 1)), momentum)
        return reshape(out, x.shape)

    oracle = "retrograd.testing.references.normalize.batch_norm"

    def samples(r):
        yield (r(4, 2, 3), None, None, r(2), r(2)), {"training": True}
        yield (r(4, 2), None, None, None, None), {"training": True, "eps": 0.1}
        yield (r(4, 2, 3), r(2), r(2, within=(0.5, 2.0)), r(2), r(2)), {}
        yield (r(4, 2), r(2), r(2, within=(0.5, 2.0)), None, None), {}

    def errors(r):
        none = (None,) * 4
        yield (r(4, 2), *none), {}, RuntimeError, "running_mean and running_var are needed"
        yield (r(1, 2), *none), {"training": True}, ValueError, "more than 1 value per channel"
        yield (r(4, 2), *none), {"training": True, "eps": -1.0}, ValueError, "eps must be positive during training"
        yield (r(4, 2), None, None, r(3), None), {"training": True}, ValueError, "weight should contain 2 elements"
        yield (r(4), *none), {"training": True}, ValueError, "at least 2 dimensions"


@op(
    "instance_norm(Tensor x, Tensor? running_mean=None, Tensor? running_var=None, Tensor? weight=None, "
    "Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> Tensor"
)
class instance_norm(Composite, home="nn.functional", opmath="x weight bias", mixed=True):
    """Instance normalization: `batch_norm` of each sample; running statistics follow the means over the samples.

    D. Ulyanov, A. Vedaldi and V. Lempitsky, Instance normalization, arXiv 1607.08022.
    """

    def compose(x, running_mean, running_var, weight, bias, *, use_input_stats, momentum, eps):
        parts = _as_channels(
            "instance_norm", x, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
        )
        n, c, count = parts.shape
        if not use_input_stats:
            out = _normalize_by_running("instance_norm", parts, running_mean, running_var, weight, bias, eps)
            return reshape(out, x.shape)
        if count == 1:
            raise ValueError(f"instance_norm: expected more than 1 spatial element when training, got shape {x.shape}")
        out, found, var = channel_standardize(reshape(parts, (1, n * c, count)), eps=eps)
        if running_mean is not None or running_var is not None:
            update_running("instance_norm", running_mean, mean(reshape(found, (n, c)), 0), momentum)
            variance = mean(reshape(var, (n, c)), 0) * (count / max(count - 1, 1))
            update_running("instance_norm", running_var, variance, momentum)
        return reshape(_scale_and_shift_channels(reshape(out, (n, c, count)), weight, bias), x.shape)

    oracle = "retrograd.testing.references.normalize.instance_norm"

    def samples(r):
        yield (r(3, 2, 4), None, None, r(2), r(2)), {}
        yield (r(3, 2, 2, 2), None, None, None, None), {"eps": 0.1}
        yield (r(3, 2, 4), r(2), r(2, within=(0.5, 2.0)), None, None), {"use_input_stats": False}

    def errors(r):
        yield (r(3, 2, 1), *(None,) * 4), {}, ValueError, "more than 1 spatial element"


@op("group_norm(Tensor x, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor")
class group_norm(
    Composite, aliases="nn.functional.group_norm", opmath="x weight bias", mixed=True, memory="images"
):
    """Group normalization: each of `num_groups` groups of channels standardized per sample, times weight, plus bias.

    x (n, channels, ...), weight and bias (channels,).  Y. Wu and K. He, Group normalization, arXiv 1803.08494.
    """

    method = False
    older_form = other_names("input num_groups weight bias eps cudnn_enabled", cudnn_enabled=None)

    def compose(x, weight, bias, *, num_groups, eps):
        parts = _as_channels("group_norm", x, weight=weight, bias=bias)
        n, c, count = parts.shape
        if num_groups < 1 or c % num_groups:
            raise RuntimeError(
                f"group_norm: {c} channels can't be divided into num_groups={num_groups} groups; Expected number of "
                f"channels in input to be divisible by num_groups, but got input of shape {list(x.shape)} and "
                f"num_groups={num_groups}"
            )
        if n * (c // num_groups) * count == 1:  # for one sample only, as PyTorch checks it
            raise ValueError(
                f"group_norm: Expected more than 1 value per channel when training, got input size {list(x.shape)}"
            )
        groups = reshape(parts, (1, n * num_groups, c // num_groups * count))
        out = reshape(channel_standardize(groups, eps=eps)[0], parts.shape)
        return reshape(_scale_and_shift_channels(out, weight, bias), x.shape)

    oracle = "retrograd.testing.references.normalize.group_norm"

    def samples(r):
        yield (r(3, 4, 2), r(4), r(4)), {"num_groups": 2}
        yield (r(3, 4), r(4), None), {"num_groups": 1, "eps": 0.1}

    def errors(r):
        yield (r(3, 4), None, None), {"num_groups": 3}, RuntimeError, "4 channels can't be divided into num_groups=3"
        yield (r(1, 4), None, None), {"num_groups": 4}, ValueError, "Expected more than 1 value per channel"


@op("local_response_norm(Tensor x, int size, float alpha=0.0001, float beta=0.75, float k=1.0) -> Tensor")
class local_response_norm(Composite, home="nn.functional", opmath="x", memory="images"):
    """x / (k + alpha * mean of x^2 over `size` neighbouring channels, zero-padded) ^ beta.

    x (n, channels, ..., l).  A. Krizhevsky, I. Sutskever and G. E. Hinton, ImageNet classification with deep
    convolutional neural networks, NIPS 2012.
    """

    def compose(x, *, size, alpha, beta, k):
        if x.ndim < 3:
            raise ValueError(f"local_response_norm: expected at least 3 dimensions, got shape {x.shape}")
        if size < 1:
            raise ValueError(f"local_response_norm: size must be at least 1, got {size}")
        if 0 in x.shape:  # there is nothing to divide, and integers stay integers
            return clone(x)
        counts = _neighbour_counts(size)
        before, after = (registry["zeros"]((x.shape[0], m, *x.shape[2:]), dtype=x.dtype) for m in counts)
        squares = cat([before, square(x), after], 1)
        total = narrow(squares, 1, 0, x.shape[1])
        for i in range(1, size):
            total = total + narrow(squares, 1, i, x.shape[1])
        return x / pow(total * (alpha / size) + k, beta)

    def oracle(np, x, size, alpha, beta, k):
        out = np.empty_like(x)
        for c in range(x.shape[1]):
            low, high = max(c - size // 2, 0), c + (size - 1) // 2 + 1
            out[:, c] = x[:, c] / (k + alpha * (x[:, low:high] ** 2).sum(1) / size) ** beta
        return out

    def samples(r):
        yield (r(2, 5, 3),), {"size": 3, "alpha": 0.5}
        yield (r(2, 3, 2),), {"size": 2, "alpha": 0.3, "beta": 0.5, "k": 2.0}

    def errors(r):
        yield (r(3, 4),), {"size": 2}, ValueError, "at least 3 dimensions"


def _neighbour_counts(size):
    """The numbers of neighbouring channels before and after a channel."""
    return size // 2, (size - 1) // 2
