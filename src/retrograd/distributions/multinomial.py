"""The multinomial distribution."""

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.binomial import Binomial
from retrograd.distributions.categorical_vectors import CategoricalVectors
from retrograd.nn.functional import one_hot
from retrograd.ops.gamma import lgamma
from retrograd.ops.masked import where

__all__ = ["Multinomial"]


class Multinomial(CategoricalVectors):
    """The counts of each of K indices in `total_count` draws from `Categorical`; vectors of K counts.

    >>> import retrograd as rg
    >>> from retrograd.distributions import Multinomial
    >>> Multinomial(4, rg.tensor([0.5, 0.5])).mean
    tensor([2., 2.])
    """

    total_count: int

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        if total_count < 0:
            raise ValueError(f"Multinomial: total_count must be at least 0, got {total_count}")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        indices = self._categorical.sample((self.total_count, *sample_shape))
        return one_hot(indices, self._event_shape[0]).sum(0).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        impossible = self.logits == float("-inf")
        logits = where(impossible & (value == 0), 0.0, self.logits)  # 0 times -inf is NaN
        return lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1) + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        counts = Binomial(self.total_count, self.probs, validate_args=False)  # of each index
        values = counts.enumerate_support(False)[1:]
        log_factorials = (counts.log_prob(values).exp() * lgamma(values + 1)).sum((0, -1))
        log_factorial = lgamma(values.new_tensor(self.total_count + 1.0))
        return self.total_count * self._categorical.entropy() - log_factorial + log_factorials

    def __repr__(self) -> str:
        return repr(self._categorical).replace("Categorical", type(self).__name__)
