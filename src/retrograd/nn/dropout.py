"""Dropout."""

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn.module import Module


class Dropout(Module):
    """In training, each element is zero with probability p, and x / (1 - p) else.

    Srivastava et al., JMLR 15 (2014). Draws from the default generator. In evaluation the input
    passes unchanged.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Dropout(0.5).eval()(rg.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: the probability must lie between 0 and 1, got {p}")
        self.p = p

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, which stays."""
        return F.dropout(input, self.p, self.training)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"
