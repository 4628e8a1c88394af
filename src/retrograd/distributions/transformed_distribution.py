"""Distributions of transformed values."""

from collections.abc import Iterable
from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.distribution import Distribution
from retrograd.distributions.independent import Independent
from retrograd.distributions.transforms import ComposeTransform, Transform
from retrograd.distributions.utils import sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of f(x), for x of a base distribution and f one transform or several, the first one first.

    >>> from retrograd.distributions import Normal, TransformedDistribution, transforms
    >>> log_normal = TransformedDistribution(Normal(0.0, 1.0), transforms.ExpTransform())
    >>> log_normal.support
    GreaterThan(lower_bound=0.0)
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = list(transforms) if isinstance(transforms, Iterable) else [transforms]
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"transforms must be a Transform or a list of Transforms, but was {transforms}")
        transform = ComposeTransform(self.transforms)
        event_dim, change = transform.domain.event_dim, transform.codomain.event_dim - transform.domain.event_dim
        self.base_dist = _fitting_base(base_distribution, transform, event_dim)
        shape = transform.forward_shape(self.base_dist.batch_shape + self.base_dist.event_shape)
        cut = len(shape) - max(event_dim, len(base_distribution.event_shape)) - change
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: tuple[int, ...], _instance: Any = None) -> Any:
        new = type(self).__new__(type(self)) if _instance is None else _instance
        vars(new).update(vars(self))
        batch_shape = tuple(batch_shape)
        shape = ComposeTransform(self.transforms).inverse_shape(batch_shape + self.event_shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new._batch_shape = batch_shape
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    def sample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        event_dim, log_prob = len(self.event_shape), None
        for transform in reversed(self.transforms):
            x = transform.inv(value)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            term = transform.log_abs_det_jacobian(x, value)
            term = sum_rightmost(term, event_dim - transform.domain.event_dim)
            log_prob = -term if log_prob is None else log_prob - term
            value = x
        base = sum_rightmost(self.base_dist.log_prob(value), event_dim - len(self.base_dist.event_shape))
        return base if log_prob is None else log_prob + base

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        self.base_dist._check_value(value)
        return self._mirrored(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._mirrored(value)))

    def _mirrored(self, probability: Tensor) -> Tensor:
        """Return p, or 1 - p where the transforms are decreasing."""
        sign = ComposeTransform(self.transforms).sign
        if isinstance(sign, int) and sign == 1:
            return probability
        return sign * (probability - 0.5) + 0.5

    def __repr__(self) -> str:
        if type(self) is TransformedDistribution:
            return f"TransformedDistribution({self.base_dist!r}, {self.transforms!r})"
        return super().__repr__()


def _fitting_base(base: Distribution, transform: Transform, event_dim: int) -> Distribution:
    """Return a base distribution with the batch and event shapes that a transform of `event_dim` dimensions needs."""
    shape = base.batch_shape + base.event_shape
    if len(shape) < event_dim:
        raise ValueError(
            f"base_distribution needs to have shape with size at least {event_dim}, but got {tuple(shape)}."
        )
    expanded = transform.inverse_shape(transform.forward_shape(shape))
    if expanded != shape:
        base = base.expand(expanded[: len(expanded) - len(base.event_shape)])
    more = event_dim - len(base.event_shape)
    return Independent(base, more) if more > 0 else base
