"""The generalized Pareto distribution."""

import math
from typing import Any

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.distribution import Distribution
from retrograd.distributions.utils import broadcast_all
from retrograd.ops.masked import where
from retrograd.ops.random import rand

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Exceedances over a threshold `loc`, with `scale` and the tail index `concentration`.

    The support is bounded above for a negative concentration; that of 0 is the exponential distribution.

    >>> from retrograd.distributions import GeneralizedPareto
    >>> GeneralizedPareto(0.0, 2.0, 0.0).mean
    tensor(2.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        upper = where(self.concentration < 0, self.loc - self.scale / self._safe_concentration(), math.inf)
        return constraints.interval(self.loc, upper)

    def _is_exponential(self) -> Tensor:
        return self.concentration == 0

    def _safe_concentration(self) -> Tensor:
        """Return the concentration, and 1 where it is 0."""
        return where(self._is_exponential(), 1.0, self.concentration)

    def rsample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.loc.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self.log_survival_function(value) - self._log_hazard_scale(value)

    def _log_hazard_scale(self, value: Tensor) -> Tensor:
        """Return the logarithm of scale + concentration * (value - loc), the inverse of the hazard rate."""
        return self.scale.log() + (self.concentration * (value - self.loc) / self.scale).log1p()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of larger values."""
        z, k = (value - self.loc) / self.scale, self._safe_concentration()
        return where(self._is_exponential(), -z, -(k * z).log1p() / k)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return the logarithm of the cumulative distribution function."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        log_survival, k = (-value).log1p(), self._safe_concentration()
        z = where(self._is_exponential(), -log_survival, (-k * log_survival).expm1() / k)
        return self.loc + self.scale * z

    @property
    def mean(self) -> Tensor:
        k = self.concentration
        return where(k < 1, self.loc + self.scale / (1 - k), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        return where(k < 0.5, self.scale.square() / ((1 - k).square() * (1 - 2 * k)), math.inf)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
