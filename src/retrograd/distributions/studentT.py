"""Student's t distribution."""

import math

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.distribution import Distribution
from retrograd.distributions.utils import broadcast_all
from retrograd.ops.distributions import sample_student_t
from retrograd.ops.gamma import betaln, digamma
from retrograd.ops.masked import where

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution with `df` degrees of freedom, shifted to `loc` and scaled by `scale`.

    Draws have gradients by all parameters: implicit reparameterization, see `retrograd.standard_gamma`.

    >>> from retrograd.distributions import StudentT
    >>> StudentT(3.0).variance
    tensor(3.)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale.square() * self.df / (self.df - 2)
        return where(self.df > 2, finite, where(self.df > 1, math.inf, math.nan).to(self.df.dtype))

    def rsample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        return self.loc + self.scale * sample_student_t(self.df.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        standard = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1) * (standard.square() / self.df).log1p() - self._log_normalization()

    def entropy(self) -> Tensor:
        half = 0.5 * (self.df + 1)
        return self._log_normalization() + half * (digamma(half) - digamma(0.5 * self.df))

    def _log_normalization(self) -> Tensor:
        return self.scale.log() + 0.5 * self.df.log() + betaln(0.5 * self.df, self.df * 0 + 0.5)
