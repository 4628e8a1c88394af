"""Categorical distributions of one-hot vectors."""

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.categorical_vectors import CategoricalVectors
from retrograd.nn.functional import one_hot
from retrograd.ops.create import eye

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(CategoricalVectors):
    """The distribution of one-hot vectors whose 1 is at an index drawn from `Categorical`.

    >>> import retrograd as rg
    >>> from retrograd.distributions import OneHotCategorical
    >>> OneHotCategorical(rg.tensor([0.0, 1.0])).sample()
    tensor([0., 1.])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return one_hot(self._categorical.mode, self._event_shape[0]).to(self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        return one_hot(self._categorical.sample(sample_shape), self._event_shape[0]).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = eye(n, dtype=self.probs.dtype).reshape(n, *[1] * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values

    def __repr__(self) -> str:
        return repr(self._categorical).replace("Categorical", type(self).__name__)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors whose gradients pass straight through to the probabilities: biased, by Bengio et al., 2013.

    Y. Bengio, N. Leonard and A. Courville, Estimating or propagating gradients through stochastic neurons for
    conditional computation.
    """

    has_rsample = True

    def rsample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
