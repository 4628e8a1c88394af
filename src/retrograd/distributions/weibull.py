"""The Weibull distribution."""

from typing import Any

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.exponential import Exponential
from retrograd.distributions.transformed_distribution import TransformedDistribution
from retrograd.distributions.transforms import AffineTransform, PowerTransform
from retrograd.distributions.utils import broadcast_all, euler_constant
from retrograd.ops.gamma import lgamma
from retrograd.ops.special import xlogy

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution of lifetimes: scale * x ** (1 / concentration), for exponential x.

    >>> from retrograd.distributions import Weibull
    >>> Weibull(2.0, 1.0).mean
    tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(self.scale.new_ones(self.scale.shape), validate_args=validate_args)
        super().__init__(base, self._parts(), validate_args=validate_args)

    @property
    def concentration_reciprocal(self) -> Tensor:
        """Return 1 / concentration."""
        return self.concentration.reciprocal()

    def _parts(self) -> Any:
        return [PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(0, self.scale)]

    def expand(self, batch_shape: tuple[int, ...], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.scale, new.concentration = self.scale.expand(batch_shape), self.concentration.expand(batch_shape)
        new.transforms = new._parts()
        return new

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        k, ratio = self.concentration, value / self.scale
        return k.log() - self.scale.log() + xlogy(k - 1, ratio) - ratio.pow(k)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -(-(value / self.scale).pow(self.concentration)).expm1()

    @property
    def mean(self) -> Tensor:
        return self.scale * lgamma(1 + self.concentration_reciprocal).exp()

    @property
    def mode(self) -> Tensor:
        below = ((self.concentration - 1) / self.concentration).clamp(min=0)
        return self.scale * below.pow(self.concentration_reciprocal)

    @property
    def variance(self) -> Tensor:
        inverse = self.concentration_reciprocal
        second = lgamma(1 + 2 * inverse).exp()
        return self.scale.square() * (second - (2 * lgamma(1 + inverse)).exp())

    def entropy(self) -> Tensor:
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1
