"""The half-normal distribution."""

import math

from retrograd.core import Tensor
from retrograd.distributions.half_distribution import HalfDistribution
from retrograd.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(HalfDistribution):
    """The distribution of |x|, for normal x with center 0 and scale `scale`.

    >>> from retrograd.distributions import HalfNormal
    >>> HalfNormal(1.0).mode
    tensor(0.)
    """

    base_dist: Normal

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)
