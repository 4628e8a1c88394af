"""Merge batch norms in evaluation mode into the layers before them."""

import copy
from typing import Any, TypeVar

from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter
from retrograd.ops.create import ones_like, zeros_like

M = TypeVar("M", bound=Module)


def fuse_conv_bn_eval(conv: M, bn: Module, transpose: bool = False) -> M:
    """Return a convolution that computes `bn(conv(x))` of modules in evaluation mode.

    With `transpose` the convolution is a transposed one.  Raises ValueError for modules in training mode.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> conv, norm = nn.Conv2d(3, 4, 3).eval(), nn.BatchNorm2d(4).eval()
    >>> x = rg.randn(2, 3, 5, 5)
    >>> rg.allclose(nn.utils.fuse_conv_bn_eval(conv, norm)(x), norm(conv(x)), atol=1e-6)
    True
    """
    return _fuse("fuse_conv_bn_eval", conv, bn, transpose)


def fuse_linear_bn_eval(linear: M, bn: Module) -> M:
    """Return a linear layer that computes `bn(linear(x))` of modules in evaluation mode.

    Raises ValueError for modules in training mode, and if the numbers of features differ.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> linear, norm = nn.Linear(3, 4).eval(), nn.BatchNorm1d(4).eval()
    >>> x = rg.randn(2, 3)
    >>> rg.allclose(nn.utils.fuse_linear_bn_eval(linear, norm)(x), norm(linear(x)), atol=1e-6)
    True
    """
    features: Any = linear.out_features
    if bn.num_features not in (1, features):
        raise ValueError(
            f"fuse_linear_bn_eval: linear has out_features={features} and bn num_features={bn.num_features}; to fuse, "
            "they must be equal, or num_features 1"
        )
    return _fuse("fuse_linear_bn_eval", linear, bn, False)


def _fuse(name: str, layer: M, bn: Any, transpose: bool) -> M:
    if layer.training or bn.training:
        raise ValueError(f"{name}: fusion only for eval; call .eval() on both modules")
    if bn.running_mean is None:
        raise ValueError(f"{name}: {type(bn).__name__} has no running statistics (track_running_stats=False)")
    fused: Any = copy.deepcopy(layer)
    statistics = bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, *statistics, transpose=transpose)
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of the convolution that computes a batch norm of a convolution.

    conv_w, conv_b: its weight (out_channels, in_channels, ...), or (in_channels, out_channels, ...) with `transpose`,
    and its bias or None. bn_rm, bn_rv, bn_eps: running mean and variance (out_channels), and the number added to the
    latter. bn_w, bn_b: weight and bias of the norm, or None.

    >>> import retrograd as rg
    >>> mean, var = rg.ones(1), rg.ones(1) * 4
    >>> weight, bias = fuse_conv_bn_weights(rg.ones(1, 1, 2), None, mean, var, 0.0, None, None)
    >>> weight.tolist(), bias.tolist()
    ([[[0.5, 0.5]]], [-0.5])
    """
    bias = zeros_like(bn_rm) if conv_b is None else conv_b
    scale = (ones_like(bn_rm) if bn_w is None else bn_w) * (bn_rv + bn_eps).rsqrt()
    shift = zeros_like(bn_rm) if bn_b is None else bn_b
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    fused = conv_w * scale.reshape(shape).to(conv_w.dtype), ((bias - bn_rm) * scale + shift).to(bias.dtype)
    requires_grad = conv_w.requires_grad, conv_b is not None and conv_b.requires_grad
    first, second = (Parameter(value.detach(), flag) for value, flag in zip(fused, requires_grad, strict=True))
    return first, second


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of the linear layer that computes a batch norm of one: see `fuse_conv_bn_weights`."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


suggest_in_module(globals())
