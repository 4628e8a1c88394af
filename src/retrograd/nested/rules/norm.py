"""Normalisation of nested tensors: dense operators on the buffer, if the components allow that.

Over channels, dimension 1, which all components share: `batch_norm` treats the rows of all components as those of
one sample; `group_norm` and `instance_norm` are composed of reductions, each component separately.
"""

from typing import Any

from retrograd.core import Op, Tensor, call, registry
from retrograd.nested.buffer import remove_holes, values, wrap_buffer, wrap_buffer_like
from retrograd.nested.buffer_layout import get_layout, is_nested
from retrograd.nested.dispatch import rule_for
from retrograd.nested.ragged_dims import nest_dense
from retrograd.nested.rules.reduce import stack_components
from retrograd.ops.normalize import update_running
from retrograd.ops.pointwise import add, mul, rsqrt
from retrograd.ops.reduce import mean, variance
from retrograd.ops.view import reshape, squeeze, unsqueeze


@rule_for("layer_norm", "rms_norm")
def normalize_trailing(op: Op, args: tuple, params: dict) -> Any:
    """Normalize the buffer over dimensions after the ragged ones."""
    x, shape = args[0], params["normalized_shape"]
    if not is_nested(x):
        return NotImplemented
    x = remove_holes(x)
    layout = get_layout(x)
    first = x.ndim - len(shape)
    # Components that are rows of numbers are refused, as in PyTorch.
    ragged = layout.lead < first < layout.ragged.stop and x.ndim > 2
    if op.name == "layer_norm" and ragged and x.shape[first:] == shape:
        return _normalize_components(x, first, args, params)
    if shape and x.shape[max(first, 0) :] == shape:
        return wrap_buffer_like(layout, call(op, (values(x), *args[1:]), params))
    stack = stack_components(x)
    if stack is not None and shape and stack.shape[max(x.ndim - len(shape), 0) :] == shape:
        return _run_on_stack(op, stack, args, params)
    includes_ragged = first < layout.ragged.stop
    hint = "; dimensions behind the ragged ones can be normalized, no others" if includes_ragged else ""
    raise ValueError(f"{op.name}: normalized_shape {shape} is not how shape {x.shape} ends{hint}")


def _normalize_components(x: Tensor, first: int, args: tuple, params: dict) -> Tensor:
    """Normalize each component over the dimensions from `first` on, which include the ragged ones."""
    dims = tuple(range(first, x.ndim))
    center, spread = mean(x, dims, keepdim=True), variance(x, dims, keepdim=True, correction=0)
    out = (x - center) * rsqrt(spread + params["eps"])
    for weight, combine in zip(args[1:3], (mul, add), strict=False):
        out = out if weight is None else combine(out, weight)
    return out


def _run_on_stack(op: Op, stack: Tensor, args: tuple, params: dict) -> Tensor:
    """Run the operator on the stack of components of equal shape, and nest the result as they are."""
    layout = get_layout(args[0])
    return nest_dense(call(op, (stack, *args[1:]), params), layout.lead, layout.ragged.start, layout.ragged.stop)


@rule_for("batch_norm", "group_norm", "instance_norm")
def normalize_channels(op: Op, args: tuple, params: dict) -> Any:
    """Run the functions below; on a stack for components of equal shape; else loop over components."""
    x = args[0]
    if not is_nested(x):
        return NotImplemented
    layout = get_layout(x)
    if layout.axis and not layout.lead:
        return _CHANNEL_RULES[op.name](op, (remove_holes(x), *args[1:]), params)
    stack = None if layout.lead else stack_components(x)
    if stack is not None:
        return _run_on_stack(op, stack, args, params)
    if op.name != "batch_norm" and args[1:3] == (None, None):
        return NotImplemented
    raise RuntimeError(
        f"{op.name}: expected a nested tensor of shape (n, channels, ...), whose components have as many channels, "
        f"got {x.shape}; see transpose()"
    )


def _batch_norm(op: Op, args: tuple, params: dict) -> Tensor:
    """Normalize the buffer as if it were one sample."""
    out = call(op, (unsqueeze(values(args[0]), 0), *args[1:]), params)
    return wrap_buffer_like(get_layout(args[0]), squeeze(out, 0))


def _group_norm(op: Op, args: tuple, params: dict) -> Tensor:
    """Normalize each component separately, by reductions over its groups."""
    x, groups = args[0], params["num_groups"]
    channels, layout, buffer = x.shape[1], get_layout(x), values(x)
    if groups < 1 or channels % groups:
        raise RuntimeError(f"group_norm: {channels} channels can't be divided into num_groups={groups} groups")
    parts = reshape(buffer, (groups, channels // groups, *buffer.shape[1:]))
    out, _ = _standardize(wrap_buffer(parts, layout.structure, layout.axis + 1, 0), params["eps"])
    return _scale_and_shift(wrap_buffer_like(layout, reshape(values(out), buffer.shape)), *args[1:])


def _instance_norm(op: Op, args: tuple, params: dict) -> Any:
    """Normalize each component separately, by reductions; with running statistics as `batch_norm`."""
    x, running_mean, running_var, weight, bias = args
    if not params["use_input_stats"]:
        given = {"training": False, "momentum": params["momentum"], "eps": params["eps"]}
        return call(registry["batch_norm"], args, given)
    out, center = _standardize(x, params["eps"])
    _update_running(running_mean, center, params["momentum"])
    if running_var is not None:
        _update_running(running_var, variance(x, tuple(range(2, x.ndim))), params["momentum"])
    return _scale_and_shift(out, weight, bias)


def _standardize(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Return x with mean 0 and variance 1 over all dimensions from the third on, and its mean."""
    dims = tuple(range(2, x.ndim))
    center, spread = mean(x, dims, keepdim=True), variance(x, dims, keepdim=True, correction=0)
    return (x - center) * rsqrt(spread + eps), center


def _update_running(running: Tensor | None, statistic: Tensor, momentum: float) -> None:
    """Update a running statistic with the mean of `statistic` over the components."""
    if running is not None:
        update_running("instance_norm", running, mean(reshape(statistic, (statistic.shape[0], -1)), 0), momentum)


def _scale_and_shift(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Return x * weight + bias for each channel; either may be None."""
    shape = (-1, *(1,) * (x.ndim - 2))
    x = x if weight is None else x * reshape(weight, shape)
    return x if bias is None else x + reshape(bias, shape)


_CHANNEL_RULES = {"batch_norm": _batch_norm, "group_norm": _group_norm, "instance_norm": _instance_norm}
