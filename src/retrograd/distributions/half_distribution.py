"""The distribution of |x|, for x with a distribution that is symmetric about 0."""

import math
from typing import Any

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.transformed_distribution import TransformedDistribution
from retrograd.distributions.transforms import AbsTransform
from retrograd.ops.masked import where

__all__: list[str] = []  # a base class only


class HalfDistribution(TransformedDistribution):
    """Base of half-normal and half-Cauchy: a subclass passes the symmetric distribution, with center 0 and a scale."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Any

    def __init__(self, symmetric: Any, validate_args: bool | None) -> None:
        super().__init__(symmetric, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of the symmetric distribution."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return self.scale * 0

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
