"""The binomial distribution."""

from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.probs_or_logits import ProbsOrLogits
from retrograd.nn.functional import softplus
from retrograd.ops.create import arange
from retrograd.ops.distributions import binomial
from retrograd.ops.gamma import lgamma

__all__ = ["Binomial"]


class Binomial(ProbsOrLogits):
    """The number of successes in `total_count` trials with probability `probs` each.

    >>> import retrograd as rg
    >>> from retrograd.distributions import Binomial
    >>> Binomial(2, probs=rg.tensor([0.5])).log_prob(rg.tensor([1.0])).exp()
    tensor([0.5000])
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self, total_count: Tensor | float = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (total_count,) = self._set_probs_or_logits(probs, logits, total_count)
        self.total_count = total_count.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n = self.total_count
        combinations = lgamma(n + 1) - lgamma(value + 1) - lgamma(n - value + 1)
        return combinations + value * self.logits - n * softplus(self.logits)

    def entropy(self) -> Tensor:
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        largest = self.total_count.amax()
        if not (self.total_count == largest).all():
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        return self._enumerated(arange(int(largest) + 1, dtype=self._param.dtype), expand)
