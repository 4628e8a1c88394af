"""Fisher's and Snedecor's F distribution."""

import math

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.distribution import Distribution
from retrograd.distributions.utils import broadcast_all
from retrograd.ops.distributions import standard_gamma
from retrograd.ops.gamma import betaln
from retrograd.ops.masked import where
from retrograd.ops.special import xlogy

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The distribution of the ratio of two chi-squared values, divided by their degrees of freedom `df1` and `df2`.

    >>> from retrograd.distributions import FisherSnedecor
    >>> FisherSnedecor(2.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        return where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), math.nan)

    @property
    def variance(self) -> Tensor:
        n, d = self.df1, self.df2
        return where(d > 4, 2 * d.square() * (n + d - 2) / (n * (d - 2).square() * (d - 4)), math.nan)

    def rsample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        over, under = (standard_gamma((df * 0.5).expand(shape)) / df for df in (self.df1, self.df2))
        return over / under

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        powers = xlogy(half1, ratio) + xlogy(half1 - 1, value) - (half1 + half2) * (ratio * value).log1p()
        return powers - betaln(half1, half2)
