"""Relaxed Bernoulli distributions."""

from typing import Any

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.probs_or_logits import ProbsOrLogits
from retrograd.distributions.transformed_distribution import TransformedDistribution
from retrograd.distributions.transforms import SigmoidTransform
from retrograd.distributions.utils import clamp_probs
from retrograd.nn.functional import softplus
from retrograd.ops.random import rand

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits):
    """The logits of relaxed Bernoulli values: (logits + log(u) - log(1 - u)) / temperature, for uniform u.

    C. J. Maddison, A. Mnih and Y. W. Teh, The concrete distribution, ICLR 2017.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Tensor | float, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._set_probs_or_logits(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        uniform = clamp_probs(rand(self._extended_shape(sample_shape), dtype=self._param.dtype))
        return (uniform.log() - (-uniform).log1p() + self.logits) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        difference = self.logits - value * self.temperature
        log_temperature = (self.logits * 0 + self.temperature).log()
        return log_temperature + difference - 2 * softplus(difference)


class RelaxedBernoulli(TransformedDistribution):
    """Values between 0 and 1 that tend to Bernoulli draws as the temperature tends to 0; with gradients.

    >>> import retrograd as rg
    >>> from retrograd.distributions import RelaxedBernoulli
    >>> bool(RelaxedBernoulli(rg.tensor(0.5), probs=rg.tensor(0.3)).rsample() < 1)
    True
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Any:
        """How far values are from 0 and 1."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log-odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs
