"""The half-Cauchy distribution."""

import math

from retrograd.core import Tensor
from retrograd.distributions.cauchy import Cauchy
from retrograd.distributions.half_distribution import HalfDistribution

__all__ = ["HalfCauchy"]


class HalfCauchy(HalfDistribution):
    """The distribution of |x|, for Cauchy x with center 0 and scale `scale`.

    >>> from retrograd.distributions import HalfCauchy
    >>> HalfCauchy(1.0).mode
    tensor(0.)
    """

    base_dist: Cauchy

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * 0 + math.inf

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
