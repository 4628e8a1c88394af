"""PyTorch's older and low-level names: layers with all their results, integer modes, and recurrent cells."""

import inspect

from retrograd.core import Tensor, registry
from retrograd.core import dtype as dtypes
from retrograd.core.errors import OperandValueError
from retrograd.foundation.suggestions import bind_arguments
from retrograd.ops import recurrent
from retrograd.ops.create import empty
from retrograd.ops.dropout import check_scalable, keep
from retrograd.ops.functions import function, overridable
from retrograd.ops.linalg import linear
from retrograd.ops.methods import method
from retrograd.ops.mutate import in_place
from retrograd.ops.pointwise import detach, ge, row_major, rsqrt, tanh
from retrograd.ops.reduce import mean, variance
from retrograd.ops.view import permute, reshape


def _statistics(x, dims, eps):
    """Return the means and the inverse standard deviations over dimensions, with keepdim."""
    return mean(x, dims, True), rsqrt(variance(x, dims, True, correction=0) + eps)


# --------------------------------------------------------------------------------------------------- of tensors


@method
def dim_order(x, *, ambiguity_check=False):
    """Return the dimensions in the order of their strides in memory, the outermost first.

    With `ambiguity_check`, RuntimeError if several orders fit, as for dimensions of size 1; with a list of memory
    formats, if not exactly one of them fits.

    >>> import retrograd as rg
    >>> rg.ones(2, 3, 4).transpose(0, 2).dim_order()
    (2, 1, 0)
    """
    if ambiguity_check:
        _check_one_order(x, ambiguity_check)
    steps = x.stride()
    return tuple(sorted(range(x.ndim), key=lambda d: (steps[d] != 0, -steps[d])))


def _check_one_order(x, formats):
    if formats is True:
        steps = [step for step, size in zip(x.stride(), x.shape, strict=True) if size > 1]
        fits = len(steps) == x.ndim and len(set(steps)) == x.ndim
    elif isinstance(formats, (list, tuple)):
        fits = sum(x.is_contiguous(memory_format=form) for form in formats) == 1
    else:
        raise TypeError("dim_order: the ambiguity_check argument must be a bool or a list of memory formats")
    if not fits:
        raise RuntimeError(
            "dim_order: the tensor does not have unique dim order, or cannot map to exact one of the given memory "
            "formats"
        )


@method
def polygamma_(x, n) -> Tensor:
    """Write `polygamma(n, x)` into the tensor; return it."""
    return in_place(registry["polygamma"], x, (), {"n": n})


@method
def float_power_(x, exponent) -> Tensor:
    """Write `float_power(x, exponent)` into the tensor, which must have that dtype; return it."""
    dtype = dtypes.complex128 if dtypes.result_type(x, exponent).kind == "c" else dtypes.float64
    if x.dtype != dtype:
        raise RuntimeError(f"float_power_: the result is {dtype}, which a tensor of {x.dtype} can't take")
    return in_place(registry["float_power"], x, (exponent,), {})


# ------------------------------------------------------------------------------------------------ normalisations


@function()
@overridable
def native_layer_norm(input, normalized_shape, weight, bias, eps) -> tuple[Tensor, Tensor, Tensor]:
    """Return `layer_norm`, and, without gradients, its means and inverse standard deviations."""
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    return registry["layer_norm"](input, normalized_shape, weight, bias, eps), *_statistics(detach(input), dims, eps)


@function()
@overridable
def native_group_norm(input, weight, bias, N, C, HxW, group, eps) -> tuple[Tensor, Tensor, Tensor]:
    """Return `group_norm` of N samples of C channels of HxW elements, means and inverse deviations (N, group)."""
    out = registry["group_norm"](input, group, weight, bias, eps)
    found = _statistics(reshape(input, (N, group, C // group * HxW)), (2,), eps)
    return out, *(row_major(reshape(x, (N, group))) for x in found)


@function()
@overridable
def native_batch_norm(
    input, weight, bias, running_mean, running_var, training, momentum, eps
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `nn.functional.batch_norm`, and when training means and inverse deviations, without gradients."""
    out = registry["batch_norm"](input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        return out, empty(0, dtype=input.dtype), empty(0, dtype=input.dtype)
    found = _statistics(detach(input), tuple([d for d in range(input.ndim) if d != 1]), eps)
    return out, *(row_major(reshape(x, (-1,))) for x in found)


@function()
@overridable
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=False) -> Tensor:
    """Return `nn.functional.batch_norm`, with the arguments in another order."""
    return registry["batch_norm"](input, running_mean, running_var, weight, bias, training, momentum, eps)


@function()
@overridable
def instance_norm(
    input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled=False
) -> Tensor:
    """Return `nn.functional.instance_norm`, with the arguments in another order."""
    return registry["instance_norm"](input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


@function()
@overridable
def native_dropout(input, p, train) -> tuple[Tensor, Tensor]:
    """Return `nn.functional.dropout`, and the mask of the elements that are not dropped."""
    if not 0 <= p <= 1:
        raise ValueError(f"native_dropout: p must be from 0 to 1, got {p}")
    if train is False or p == 0:
        return input.clone(), registry["ones_like"](input, dtype="bool")
    if p == 1:
        return input * 0, registry["zeros_like"](input, dtype="bool")
    check_scalable("native_dropout", input)
    mask = ge(registry["rand"](input.shape), p)
    return keep(mask, input, scale=1 / (1 - p)), mask


@function()
@overridable
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False) -> Tensor:
    """Return `nn.functional.embedding`, with weight first; a negative padding_idx is none.

    >>> import retrograd as rg
    >>> rg.embedding(rg.tensor([[0.0], [1.0], [2.0]]), rg.tensor([2, 0])).tolist()
    [[2.0], [0.0]]
    """
    padding_idx = padding_idx if padding_idx >= 0 else None
    return registry["embedding"](indices, weight, padding_idx, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


# ------------------------------------------------------------------------------------------------------- losses

_REDUCTIONS = ("none", "mean", "sum")


def _loss(form):
    """Decorator: register a loss of `nn.functional` in the form that takes the number of a reduction, too."""
    name, signature = form.__name__, inspect.signature(form)

    def loss(*args, **kwargs):
        given = bind_arguments(name, signature, args, kwargs).arguments
        kind = given.get("reduction", "mean")
        if not isinstance(kind, str) and kind not in (0, 1, 2):
            raise ValueError(f"{name}: reduction must be 0, 1 or 2, for {_REDUCTIONS}, got {kind!r}")
        return registry[name](**given | {"reduction": kind if isinstance(kind, str) else _REDUCTIONS[kind]})

    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = f"Return `nn.functional.{name}`; reduction may be 0, 1 or 2: none, mean or sum."
    loss.__annotations__["return"] = Tensor
    loss.__signature__ = signature.replace(return_annotation=Tensor)  # type: ignore[attr-defined]
    return function()(overridable(loss))


@_loss
def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction="mean"): ...


@_loss
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction="mean"): ...


@_loss
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False): ...


@_loss
def hinge_embedding_loss(input, target, margin=1.0, reduction="mean"): ...


@_loss
def kl_div(input, target, reduction="mean", *, log_target=False): ...


@_loss
def margin_ranking_loss(input1, input2, target, margin=0.0, reduction="mean"): ...


@_loss
def poisson_nll_loss(input, target, log_input=True, full=False, eps=1e-08, reduction="mean"): ...


@_loss
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, reduction="mean"): ...


# --------------------------------------------------------------------------------------------- images and sequences

_INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _make_sampler(name, ndim):
    """Register `nn.functional.grid_sample` for images with `ndim` dimensions under another name, with integer modes."""

    def sample(input, grid, interpolation_mode, padding_mode, align_corners) -> Tensor:
        if ndim is not None and input.ndim != ndim:
            raise ValueError(f"{name}: expected images of {ndim} dimensions, got shape {input.shape}")
        if interpolation_mode not in (0, 1, 2) or padding_mode not in (0, 1, 2):
            raise ValueError(f"{name}: modes must be 0, 1 or 2, got {interpolation_mode} and {padding_mode}")
        modes = _INTERPOLATIONS[interpolation_mode], _PADDINGS[padding_mode]
        return registry["grid_sample"](input, grid, *modes, align_corners)

    sample.__name__ = sample.__qualname__ = name
    sample.__doc__ = "Return `nn.functional.grid_sample`, with 0, 1 and 2 for the modes, in PyTorch's order."
    return function()(sample)


grid_sampler, grid_sampler_2d, grid_sampler_3d = (
    _make_sampler(name, ndim) for name, ndim in (("grid_sampler", None), ("grid_sampler_2d", 4), ("grid_sampler_3d", 5))
)


@function()
@overridable
def affine_grid_generator(theta, size, align_corners) -> Tensor:
    """Return `nn.functional.affine_grid`."""
    return registry["affine_grid"](theta, size, align_corners)


@function("native_channel_shuffle", "nn.functional.native_channel_shuffle")
@overridable
def native_channel_shuffle(input, groups) -> Tensor:
    """Return `channel_shuffle`."""
    return registry["channel_shuffle"](input, groups)


@function("conv_tbc", "nn.functional.conv_tbc")
@overridable
def conv_tbc(input, weight, bias, pad=0) -> Tensor:
    """Return the convolution of (time, batch, channels in) with weights (kernel, channels in, channels out)."""
    out = registry["conv1d"](permute(input, (1, 2, 0)), permute(weight, (2, 1, 0)), bias, padding=pad)
    return permute(out, (2, 0, 1))


@function()
@overridable
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups) -> Tensor:
    """Return `conv1d`, `conv2d` or `conv3d`, whichever takes a weight of these dimensions, or their transposes."""
    ndim = weight.ndim - 2
    if not 1 <= ndim <= 3:
        raise OperandValueError(f"convolution: the weight must have 3, 4 or 5 dimensions, got shape {weight.shape}")
    if transposed:
        settings = stride, padding, output_padding, groups, dilation
        return registry[f"conv_transpose{ndim}d"](input, weight, bias, *settings)
    return registry[f"conv{ndim}d"](input, weight, bias, stride, padding, dilation, groups)


# ------------------------------------------------------------------------------------------- steps of recurrences


@function()
@overridable
def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None) -> tuple[Tensor, Tensor]:
    """Return the next (h, c) of an LSTM, from hx = (h, c), as `nn.LSTMCell` computes it."""
    if not isinstance(hx, (tuple, list)) or len(hx) != 2:
        raise TypeError(f"lstm_cell: expected hx to be the pair (h, c), got {type(hx).__name__}")
    h, c = hx
    return recurrent.lstm(linear(input, w_ih, b_ih), linear(h, w_hh, b_hh), c)


@function()
@overridable
def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None) -> Tensor:
    """Return the next state of a GRU, as `nn.GRUCell` computes it."""
    return recurrent.gru(linear(input, w_ih, b_ih), linear(hx, w_hh, b_hh), hx)


@function()
@overridable
def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None) -> Tensor:
    """Return the next state of a recurrence with tanh, as `nn.RNNCell` computes it."""
    return tanh(linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh))


@function()
@overridable
def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None) -> Tensor:
    """Return the next state of a recurrence with relu, as `nn.RNNCell` computes it."""
    return registry["relu"](linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh))
