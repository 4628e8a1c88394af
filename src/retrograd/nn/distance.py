"""Distances and angles between vectors."""

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn.settings import Settings, layer


@layer
class CosineSimilarity(Settings):
    """Return the cosine of the angle between vectors along `dim`; norms are clamped to at least `eps`.

    The two inputs broadcast; the result lacks the dimension.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.CosineSimilarity()(rg.tensor([[1.0, 0.0]]), rg.tensor([[0.0, 2.0]]))
    tensor([0.])
    """

    dim: int = 1
    eps: float = 1e-8

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Map two tensors of vectors to a tensor of cosines."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Settings):
    """Return the p-norm of x1 - x2 + eps along the last dimension, which keeps size 1 with `keepdim`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.PairwiseDistance(eps=0.0)(rg.tensor([[3.0, 0.0]]), rg.tensor([[0.0, 4.0]]))
    tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__(norm=p, eps=eps, keepdim=keepdim)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Map two tensors (..., size), which broadcast, to a tensor (...)."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
