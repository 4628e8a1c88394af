"""Gradients of convolutions as functions, under the names of torch.nn.grad; they are differentiable."""

from collections.abc import Sequence
from typing import Any

from retrograd.core import Tensor, registry
from retrograd.nn.common_types import _ntuple


def _gradient(name: str, n: int, a: Tensor, b: Tensor, size: Sequence[int], *settings: Any) -> Tensor:
    """Return the gradient in n dimensions by an operator of two tensors, whose result has the size at its end."""
    stride, padding, dilation = map(_ntuple(n), settings[:3])
    return registry[name](a, b, tuple(size[-n:]), stride, padding, dilation, settings[3])


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv1d` with respect to an input of the size (n, c, width).

    weight: (o, c / groups, kernel); grad_output: (n, o, positions), the gradient of the result. Wrong sizes are errors.

    >>> import retrograd as rg
    >>> conv1d_input((1, 1, 3), rg.ones(1, 1, 2), rg.ones(1, 1, 2))
    tensor([[[1., 2., 1.]]])
    """
    settings = stride, padding, dilation, groups
    return _gradient("convolution_input", 1, grad_output, weight, input_size, *settings)


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv1d` with respect to a weight of the size (o, c / groups, kernel).

    input: (n, c, width); grad_output: (n, o, positions), the gradient of the result. Wrong sizes are errors.

    >>> import retrograd as rg
    >>> conv1d_weight(rg.tensor([[[1.0, 2.0, 3.0]]]), (1, 1, 2), rg.ones(1, 1, 2))
    tensor([[[3., 5.]]])
    """
    settings = stride, padding, dilation, groups
    return _gradient("convolution_weight", 1, input, grad_output, weight_size, *settings)


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv2d` with respect to an input of this size, like `conv1d_input`."""
    settings = stride, padding, dilation, groups
    return _gradient("convolution_input", 2, grad_output, weight, input_size, *settings)


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv2d` with respect to a weight of this size, like `conv1d_weight`."""
    settings = stride, padding, dilation, groups
    return _gradient("convolution_weight", 2, input, grad_output, weight_size, *settings)


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv3d` with respect to an input of this size, like `conv1d_input`."""
    settings = stride, padding, dilation, groups
    return _gradient("convolution_input", 3, grad_output, weight, input_size, *settings)


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv3d` with respect to a weight of this size, like `conv1d_weight`."""
    settings = stride, padding, dilation, groups
    return _gradient("convolution_weight", 3, input, grad_output, weight_size, *settings)
