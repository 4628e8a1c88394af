"""The Gumbel distribution."""

import math
from typing import Any

from retrograd.backend.type_info import finfo
from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.transformed_distribution import TransformedDistribution
from retrograd.distributions.transforms import AffineTransform, ExpTransform
from retrograd.distributions.uniform import Uniform
from retrograd.distributions.utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution of largest values, with mode `loc`: loc - scale * log(-log(u)) for uniform u.

    >>> from retrograd.distributions import Gumbel
    >>> Gumbel(0.0, 1.0).mean
    tensor(0.5772)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = finfo(self.loc.dtype)
        uniform = Uniform(self.loc.new_full(self.loc.shape, limits.tiny), 1 - limits.eps, validate_args=validate_args)
        log, minus = ExpTransform().inv, AffineTransform(0.0, -self.scale.new_ones(self.scale.shape))
        parts = [log, minus, log, AffineTransform(self.loc, -self.scale)]
        super().__init__(uniform, parts, validate_args=validate_args)

    def expand(self, batch_shape: tuple[int, ...], _instance: Any = None) -> Any:
        expanded = Gumbel(self.loc.expand(batch_shape), self.scale.expand(batch_shape), validate_args=False)
        new = super().expand(batch_shape, _instance)
        new.loc, new.scale, new.transforms = expanded.loc, expanded.scale, expanded.transforms
        return new

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
