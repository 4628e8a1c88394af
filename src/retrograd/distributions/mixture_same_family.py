"""Mixtures of distributions of one family."""

from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.categorical import Categorical
from retrograd.distributions.distribution import Distribution
from retrograd.ops.gather import gather

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """The mixture of the distributions along the last batch dimension of `component_distribution`.

    `mixture_distribution` is a `Categorical` over them.

    >>> import retrograd as rg
    >>> from retrograd.distributions import Categorical, MixtureSameFamily, Normal
    >>> MixtureSameFamily(Categorical(rg.ones(2)), Normal(rg.tensor([-1.0, 1.0]), 1.0)).variance
    tensor(2.)
    """

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of Distribution")
        mixture_shape, component_shape = mixture_distribution.batch_shape, component_distribution.batch_shape
        for size1, size2 in zip(reversed(mixture_shape), reversed(component_shape[:-1]), strict=False):
            if size1 != 1 and size2 != 1 and size1 != size2:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_shape}) is not compatible with "
                    f"`component_distribution.batch_shape`({component_shape})"
                )
        count = mixture_distribution.param_shape[-1]
        if not component_shape or component_shape[-1] != count:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({component_shape[-1] if component_shape else 'none'})"
            )
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        self._num_component = count
        super().__init__(component_shape[:-1], component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: tuple[int, ...], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution of the components' indices."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _probabilities(self) -> Tensor:
        """Return the components' probabilities, with as many dimensions more as events have."""
        probs = self.mixture_distribution.probs
        return probs.reshape(*probs.shape, *[1] * len(self.event_shape))

    def _for_each_component(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - len(self.event_shape))

    @property
    def mean(self) -> Tensor:
        return (self._probabilities() * self.component_distribution.mean).sum(-1 - len(self.event_shape))

    @property
    def variance(self) -> Tensor:
        dim = -1 - len(self.event_shape)
        centered = self.component_distribution.mean - self._for_each_component(self.mean)
        return (self._probabilities() * (self.component_distribution.variance + centered.square())).sum(dim)

    def cdf(self, x: Tensor) -> Tensor:
        cdf = self.component_distribution.cdf(self._for_each_component(x))
        return (cdf * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check_value(x)
        log_prob = self.component_distribution.log_prob(self._for_each_component(x))
        return (log_prob + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        with no_grad():
            index = self.mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            draws = self.component_distribution.sample(sample_shape)
            dim = len(sample_shape) + len(self.batch_shape)
            index = index.reshape(*index.shape, *[1] * (1 + len(self.event_shape)))
            return gather(draws, dim, index.expand(*index.shape[: dim + 1], *self.event_shape)).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self.mixture_distribution!r}, {self.component_distribution!r})"
