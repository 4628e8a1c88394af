"""Activations along a dimension: softmax and its relatives, and gates."""

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn.module import Module
from retrograd.nn.settings import Settings, layer


@layer
class _DimActivation(Settings):
    """Base of modules that act along one dimension `dim`; None is chosen by the input's rank, which is deprecated."""

    dim: int | None = None


class Softmax(_DimActivation):
    """exp(x) / sum(exp(x)) along `dim`; the shape stays.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Softmax(dim=-1)(rg.zeros(1, 2))
    tensor([[0.5000, 0.5000]])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function along the dimension."""
        return F.softmax(input, dim=self.dim)  # type: ignore[arg-type]  # None is its older form


class Softmin(_DimActivation):
    """softmax(-x) along `dim`; the shape stays.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Softmin(dim=0)(rg.tensor([0.0, 200.0]))
    tensor([1., 0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function along the dimension."""
        return F.softmin(input, dim=self.dim)  # type: ignore[arg-type]  # None is its older form


class LogSoftmax(_DimActivation):
    """log(softmax(x)) along `dim`, without overflow; the shape stays.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.LogSoftmax(dim=0)(rg.zeros(1))
    tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function along the dimension."""
        return F.log_softmax(input, dim=self.dim)  # type: ignore[arg-type]  # None is its older form


class Softmax2d(Module):
    """softmax over the channels of images (n, channels, h, w) or (channels, h, w), for each pixel separately.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Softmax2d()(rg.zeros(1, 2, 1, 1)).tolist()
    [[[[0.5]], [[0.5]]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Map images to images of the same shape."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected images (n, channels, h, w) or without n, got shape {input.shape}")
        return F.softmax(input, dim=-3)


@layer
class GLU(Settings):
    """The first half of x along `dim`, times the sigmoid of the second: Dauphin et al., arXiv 1612.08083.

    The size of the dimension, which must be even, halves.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.GLU()(rg.tensor([2.0, 0.0]))
    tensor([1.])
    """

    dim: int = -1

    def forward(self, input: Tensor) -> Tensor:
        """Map (..., 2 k, ...) to (..., k, ...)."""
        return F.glu(input, self.dim)
