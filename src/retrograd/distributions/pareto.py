"""The Pareto distribution."""

import math
from typing import Any

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.exponential import Exponential
from retrograd.distributions.transformed_distribution import TransformedDistribution
from retrograd.distributions.transforms import AffineTransform, ExpTransform
from retrograd.distributions.utils import broadcast_all
from retrograd.ops.masked import where

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """The Pareto distribution of type 1: values above `scale`, with a tail of power `alpha`.

    >>> from retrograd.distributions import Pareto
    >>> Pareto(1.0, 3.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        parts = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(Exponential(self.alpha, validate_args=validate_args), parts, validate_args=validate_args)

    def expand(self, batch_shape: tuple[int, ...], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.scale, new.alpha = self.scale.expand(batch_shape), self.alpha.expand(batch_shape)
        new.transforms = [ExpTransform(), AffineTransform(0, new.scale)]
        return new

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self.alpha.log() - value.log() - self.alpha * (value / self.scale).log()

    @property
    def mean(self) -> Tensor:
        return where(self.alpha > 1, self.alpha * self.scale / (self.alpha - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha
        return where(a > 2, self.scale.square() * a / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
