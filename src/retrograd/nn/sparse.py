"""Embedding: rows of a table by number."""

from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn import init
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter
from retrograd.ops.create import empty


class Embedding(Module):
    """Rows of `weight`, of shape (num_embeddings, embedding_dim), by number.

    Maps integers of any shape (...) to (..., embedding_dim). Rows start standard normal; the row
    `padding_idx` starts as zeros and gets no gradient.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> table = nn.Embedding(10, 3, padding_idx=0)
    >>> table(rg.tensor([[1, 0], [2, 4]])).shape
    (2, 2, 3)
    >>> table(rg.tensor(0)).tolist()
    [0.0, 0.0, 0.0]
    """

    weight: Any

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, dtype: Any = None
    ) -> None:
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"Embedding: padding_idx must be a row, within {num_embeddings} rows, got {padding_idx}")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = Parameter(empty(num_embeddings, embedding_dim, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial values anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].zero_()

    def forward(self, input: Tensor) -> Tensor:
        """Integers (...) to (..., embedding_dim)."""
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """Sizes, and the padding row if there is one."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
