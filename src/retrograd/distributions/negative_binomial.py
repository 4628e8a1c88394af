"""The negative binomial distribution."""

from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.gamma import Gamma
from retrograd.distributions.probs_or_logits import ProbsOrLogits
from retrograd.nn.functional import logsigmoid
from retrograd.ops.distributions import poisson
from retrograd.ops.gamma import lgamma
from retrograd.ops.masked import where

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits):
    """The number of successes, each with probability `probs`, before `total_count` failures.

    >>> import retrograd as rg
    >>> from retrograd.distributions import NegativeBinomial
    >>> NegativeBinomial(3.0, probs=rg.tensor(0.5)).mean
    tensor(3.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Tensor | float, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (total_count,) = self._set_probs_or_logits(probs, logits, total_count)
        self.total_count = total_count.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        with no_grad():
            rate = Gamma(self.total_count, (-self.logits).exp(), validate_args=False).sample(sample_shape)
            return poisson(rate)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n, logits = self.total_count, self.logits
        powers = n * logsigmoid(-logits) + value * logsigmoid(logits)
        log_normalization = -lgamma(n + value) + lgamma(1.0 + value) + lgamma(n)
        return powers - where(n + value == 0.0, 0.0, log_normalization)
