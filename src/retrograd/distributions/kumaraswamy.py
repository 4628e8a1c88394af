"""The Kumaraswamy distribution."""

import math
from typing import Any

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.transformed_distribution import TransformedDistribution
from retrograd.distributions.transforms import AffineTransform, PowerTransform
from retrograd.distributions.uniform import Uniform
from retrograd.distributions.utils import broadcast_all, euler_constant
from retrograd.ops.gamma import betaln, digamma
from retrograd.ops.masked import where
from retrograd.ops.special import xlogy

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The distribution with 1 - (1 - x ** concentration1) ** concentration0 as its cumulative distribution function.

    >>> from retrograd.distributions import Kumaraswamy
    >>> Kumaraswamy(1.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(self.concentration0.new_zeros(self.concentration0.shape), 1.0, validate_args=validate_args)
        super().__init__(base, self._parts(), validate_args=validate_args)

    def _parts(self) -> Any:
        return [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]

    def expand(self, batch_shape: tuple[int, ...], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        new.transforms = new._parts()
        return new

    def _moment(self, n: int) -> Tensor:
        """Return the mean of x ** n."""
        return self.concentration0 * betaln(1 + n / self.concentration1, self.concentration0).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        a, b = self.concentration1, self.concentration0
        return a.log() + b.log() + xlogy(a - 1, value) + xlogy(b - 1, 1 - value.pow(a))

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -(self.concentration0 * (-value.pow(self.concentration1)).log1p()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return (-((-value).log1p() / self.concentration0).expm1()).pow(1 / self.concentration1)

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)).pow(1 / a)
        return where((a < 1) | (b < 1), math.nan, mode)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.square()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = digamma(b + 1) + euler_constant
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - a.log() - b.log()
