"""Softmax over very many classes, most of which are rare."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from retrograd.core import Tensor, operator_named
from retrograd.core.errors import OperandIndexError, OperandValueError
from retrograd.nn import functional as F
from retrograd.nn.containers import ModuleList, Sequential
from retrograd.nn.linear import Linear
from retrograd.nn.module import Module

_cat, _nonzero = operator_named("cat"), operator_named("nonzero")


class Likelihood(NamedTuple):
    """The log-probability of each target, and the mean loss."""

    output: Tensor
    loss: Tensor


def _check_cutoffs(cutoffs: Sequence[int], n_classes: int) -> list[int]:
    cuts = list(cutoffs)
    if not cuts or cuts != sorted(set(cuts)) or cuts[0] < 1 or cuts[-1] >= n_classes:
        raise ValueError(
            f"AdaptiveLogSoftmaxWithLoss: cutoffs must be increasing numbers from 1 to {n_classes - 1}, got {cuts}"
        )
    return [*cuts, n_classes]


class AdaptiveLogSoftmaxWithLoss(Module):
    """-log softmax(x)[y] over `n_classes` classes, sorted by how frequent they are: Grave et al., arXiv 1609.04309.

    Each class below the first of the `cutoffs` has its own score, and so has each cluster of classes between two
    consecutive cutoffs. Scores within cluster i use in_features / div_value^(i + 1) features, and are computed only for
    samples whose target is in that cluster. Returns `output`, the log-probability of each target, and `loss`, minus its
    mean.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.AdaptiveLogSoftmaxWithLoss(16, 100, [10, 30])
    >>> layer(rg.randn(3, 16), rg.tensor([4, 99, 12])).output.shape
    (3,)
    >>> layer.log_prob(rg.randn(3, 16)).shape
    (3, 100)
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.cutoffs = _check_cutoffs(cutoffs, n_classes)
        self.in_features = in_features
        self.n_classes = n_classes
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList(
            Sequential(
                Linear(in_features, int(in_features // div_value ** (i + 1)), False, device, dtype),
                Linear(int(in_features // div_value ** (i + 1)), high - low, False, device, dtype),
            )
            for i, (low, high) in enumerate(pairwise(self.cutoffs))
        )

    def reset_parameters(self) -> None:
        """Reinitialize the parameters."""
        for layer in (self.head, *(layer for cluster in self.tail for layer in cluster)):
            layer.reset_parameters()

    def _check(self, input: Tensor, target: Tensor) -> None:
        if input.shape != (*target.shape, self.in_features) or target.ndim > 1:
            raise OperandValueError(
                f"AdaptiveLogSoftmaxWithLoss: expected input (n, {self.in_features}) and target (n,), "
                f"or ({self.in_features},) and (), got {input.shape} and {target.shape}"
            )
        if bool(((target < 0) | (target >= self.n_classes)).any()):
            raise OperandIndexError(f"AdaptiveLogSoftmaxWithLoss: a target is no class from 0 to {self.n_classes - 1}")

    def forward(self, input_: Tensor, target_: Tensor) -> Likelihood:
        """Features (n, in_features) and classes (n,), or (in_features,) and ()."""
        self._check(input_, target_)
        x, y = input_.reshape(-1, self.in_features), target_.reshape(-1)
        head_classes = y
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            head_classes = head_classes.masked_fill((y >= low) & (y < high), self.shortlist_size + i)
        output = F.log_softmax(self.head(x), 1).gather(1, head_classes.unsqueeze(1)).squeeze(1)
        for cluster, (low, high) in zip(self.tail, pairwise(self.cutoffs), strict=True):
            rows = _nonzero((y >= low) & (y < high)).squeeze(1)
            if rows.numel():
                within = F.log_softmax(cluster(x.index_select(0, rows)), 1)
                found = within.gather(1, (y.index_select(0, rows) - low).unsqueeze(1))
                output = output.index_add(0, rows, found.squeeze(1))
        return Likelihood(output.reshape(target_.shape), -output.mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes: (n, in_features) to (n, n_classes)."""
        head = F.log_softmax(self.head(input), 1)
        frequent, clusters = head[:, : self.shortlist_size], head[:, self.shortlist_size :]
        parts = [F.log_softmax(m(input), 1) + clusters[:, i : i + 1] for i, m in enumerate(self.tail)]
        return _cat([frequent, *parts], 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each sample: (n, in_features) to (n,)."""
        return self.log_prob(input).argmax(1)
