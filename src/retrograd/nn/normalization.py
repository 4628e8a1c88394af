"""Normalisation over trailing dimensions, groups of channels, or neighbouring channels."""

from collections.abc import Sequence
from typing import Any

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn import init
from retrograd.nn.module import Module
from retrograd.nn.settings import Settings, empty_parameter


class Affine(Module):
    """Base of norms: a weight initialized with ones, and a bias with zeros; None if disabled."""

    weight: Any
    bias: Any

    def _register_affine(self, shape: tuple[int, ...], weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        for name, enabled in {"weight": weight, "bias": bias}.items():
            self.register_parameter(name, empty_parameter(enabled, shape, device, dtype))

    def reset_parameters(self) -> None:
        """Reset weights to ones and biases to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


def _check_normalized_shape(name: str, normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape or any(size < 0 for size in shape):
        raise ValueError(f"{name}: normalized_shape must be one or more sizes, got {normalized_shape}")
    return shape


class LayerNorm(Affine):
    """(x - mean) / sqrt(var + eps) · weight + bias over the last dimensions: Ba, Kiros and Hinton, 2016.

    `normalized_shape` are the sizes of those dimensions, and the shape of `weight` (ones) and `bias` (zeros); the
    variance divides by their number of elements. The input's shape stays.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.LayerNorm(2, eps=0.0)(rg.tensor([[1.0, 3.0]]))
    tensor([[-1.,  1.]], ...)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _check_normalized_shape("LayerNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        with_bias = elementwise_affine and bias
        self._register_affine(self.normalized_shape, elementwise_affine, with_bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """Map (..., *normalized_shape) to the same shape."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the sizes, eps, and whether there are weights and a bias."""
        shown = f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        return f"{shown}, bias={self.bias is not None}"


class RMSNorm(Module):
    """x / sqrt(mean(x²) + eps) · weight over the last dimensions: Zhang and Sennrich, arXiv 1910.07467.

    `normalized_shape` are the sizes of those dimensions, and the shape of `weight` (ones); eps=None means the dtype's
    machine epsilon.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.RMSNorm(2, elementwise_affine=False)(rg.tensor([[2.0, -2.0]]))
    tensor([[ 1., -1.]])
    """

    weight: Any

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = shape = _check_normalized_shape("RMSNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter("weight", empty_parameter(elementwise_affine, shape, device, dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the weights to ones."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., *normalized_shape) to the same shape."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the sizes, eps, and whether there are weights."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Affine):
    """(x - mean) / sqrt(var + eps) · weight + bias over each of `num_groups` groups of channels of each sample.

    x has shape (n, num_channels, ...); `weight` and `bias` have one element per channel. Wu and He, arXiv 1803.08494.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.GroupNorm(2, 4, eps=0.0, affine=False)(rg.tensor([[1.0, 3.0, 5.0, 9.0]]))
    tensor([[-1.,  1., -1.,  1.]])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(f"GroupNorm: num_channels={num_channels} does not divide into num_groups={num_groups}")
        super().__init__()
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._register_affine((num_channels,), affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the groups, channels, eps, and whether there are weights and a bias."""
        shown = f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
        return f"{shown}, bias={self.bias is not None}"


class LocalResponseNorm(Settings):
    """x / (k + alpha · the mean of x² over `size` neighbouring channels)^beta, of x (n, channels, ...).

    Krizhevsky et al., NIPS 2012.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.LocalResponseNorm(1, alpha=3.0, beta=0.5)(rg.ones(1, 1, 1))
    tensor([[[0.5000]]])
    """

    _repr_template = "{size}, alpha={alpha}, beta={beta}, k={k}"

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__(size=size, alpha=alpha, beta=beta, k=k)

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)
