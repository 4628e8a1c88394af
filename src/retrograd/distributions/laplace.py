"""The Laplace distribution."""

import math

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.distribution import Distribution
from retrograd.distributions.utils import broadcast_all
from retrograd.ops.random import rand

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The Laplace distribution: two exponential distributions of mean `scale`, on both sides of `loc`.

    >>> from retrograd.distributions import Laplace
    >>> Laplace(0.0, 2.0).variance
    tensor(8.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    def rsample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        centered = rand(self._extended_shape(sample_shape), dtype=self.loc.dtype) - 0.5
        return self.loc - self.scale * centered.sign() * (-2 * centered.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * (-distance.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        centered = value - 0.5
        return self.loc - self.scale * centered.sign() * (-2 * centered.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
