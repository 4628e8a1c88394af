"""Gradients of convolutions as functions, under the names of torch.nn.grad; they are differentiable."""

from collections.abc import Sequence
from typing import Any

from retrograd.core import Tensor, registry
from retrograd.nn.common_types import _ntuple


def _input_gradient(n: int, size: Any, weight: Tensor, grad: Tensor, *settings: Any) -> Tensor:
    stride, padding, dilation = map(_ntuple(n), settings[:3])
    return registry["convolution_input"](grad, weight, tuple(size[-n:]), stride, padding, dilation, settings[3])


def _weight_gradient(n: int, x: Tensor, size: Any, grad: Tensor, *settings: Any) -> Tensor:
    stride, padding, dilation = map(_ntuple(n), settings[:3])
    return registry["convolution_weight"](x, grad, tuple(size[-n:]), stride, padding, dilation, settings[3])


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
    return _input_gradient(1, input_size, weight, grad_output, stride, padding, dilation, groups)


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
    return _weight_gradient(1, input, weight_size, grad_output, stride, padding, dilation, groups)


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
    return _input_gradient(2, input_size, weight, grad_output, stride, padding, dilation, groups)


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
    return _weight_gradient(2, input, weight_size, grad_output, stride, padding, dilation, groups)


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
    return _input_gradient(3, input_size, weight, grad_output, stride, padding, dilation, groups)


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
    return _weight_gradient(3, input, weight_size, grad_output, stride, padding, dilation, groups)
