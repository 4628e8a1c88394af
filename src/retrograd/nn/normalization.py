"""Normalisation over trailing dimensions."""

from collections.abc import Sequence
from typing import Any

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn import init
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter
from retrograd.ops.create import empty


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) · weight + bias over the last dimensions: Ba, Kiros and Hinton, 2016.

    `normalized_shape` are the sizes of those dimensions, and the shape of `weight` (ones) and `bias` (zeros);
    the variance divides by their number of elements. The shape of the input stays.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.LayerNorm(2, eps=0.0)(rg.tensor([[1.0, 3.0]]))
    tensor([[-1.,  1.]], ...)
    """

    weight: Any
    bias: Any

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        with_bias = elementwise_affine and bias
        self.register_parameter("weight", Parameter(empty(shape, dtype=dtype)) if elementwise_affine else None)
        self.register_parameter("bias", Parameter(empty(shape, dtype=dtype)) if with_bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Ones and zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """(..., *normalized_shape) to the same shape."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Sizes, eps, and whether there are weights."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
