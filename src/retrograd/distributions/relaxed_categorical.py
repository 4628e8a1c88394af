"""Relaxed one-hot categorical distributions."""

from typing import Any

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.categorical_vectors import CategoricalVectors
from retrograd.distributions.transformed_distribution import TransformedDistribution
from retrograd.distributions.transforms import ExpTransform
from retrograd.distributions.utils import clamp_probs
from retrograd.ops.gamma import lgamma
from retrograd.ops.random import rand

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(CategoricalVectors):
    """The logarithms of relaxed one-hot vectors: log-softmax of (logits + Gumbel noise) / temperature.

    C. J. Maddison, A. Mnih and Y. W. Teh, The concrete distribution, ICLR 2017; E. Jang, S. Gu and B. Poole,
    Categorical reparameterization with Gumbel-softmax, ICLR 2017.
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        uniform = clamp_probs(rand(self._extended_shape(sample_shape), dtype=self.logits.dtype))
        scores = (self.logits - (-uniform.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        k = self.event_shape[0]
        temperature = self.logits.sum(-1) * 0 + self.temperature
        log_scale = lgamma(temperature * 0 + k) + temperature.log() * (k - 1)
        score = self.logits - value * temperature.unsqueeze(-1)
        return (score - score.logsumexp(-1, keepdim=True)).sum(-1) + log_scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """Vectors with sum 1 that tend to one-hot vectors as the temperature tends to 0; with gradients.

    >>> import retrograd as rg
    >>> from retrograd.distributions import RelaxedOneHotCategorical
    >>> RelaxedOneHotCategorical(rg.tensor(0.5), probs=rg.ones(3)).rsample().sum().round(decimals=3)
    tensor(1.)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    base_dist: ExpRelaxedCategorical

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Any:
        """How far vectors are from one-hot ones."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities of the indices."""
        return self.base_dist.probs
