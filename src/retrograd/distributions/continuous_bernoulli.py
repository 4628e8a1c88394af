"""The continuous Bernoulli distribution."""

import math
from typing import Any

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.exp_family import ExponentialFamily
from retrograd.distributions.probs_or_logits import ProbsOrLogits
from retrograd.distributions.utils import broadcast_all, clamp_probs
from retrograd.nn.functional import binary_cross_entropy_with_logits
from retrograd.ops.masked import where
from retrograd.ops.random import rand

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """The distribution on the interval from 0 to 1 with a density proportional to probs^x (1 - probs)^(1 - x).

    Near probs = 0.5, between `lims`, Taylor series replace formulas that divide 0 by 0.  G. Loaiza-Ganem and J. P.
    Cunningham, The continuous Bernoulli: fixing a pervasive error in variational autoencoders, NeurIPS 2019.

    >>> import retrograd as rg
    >>> from retrograd.distributions import ContinuousBernoulli
    >>> ContinuousBernoulli(rg.tensor(0.5)).mean
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0.0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._lims = lims
        self._set_probs_or_logits(probs, logits)
        if "probs" in vars(self):
            if validate_args is not False and not constraints.all_valid(constraints.unit_interval.check(self.probs)):
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        super().__init__(self._param.shape, validate_args=validate_args)

    def _near_half(self) -> Tensor:
        return (self.probs >= self._lims[0]) & (self.probs <= self._lims[1])

    def _far_probs(self) -> Tensor:
        """Return the probabilities, where they are near 0.5 the lower limit."""
        return where(self._near_half(), self._lims[0], self.probs)

    def _log_normalization(self) -> Tensor:
        """Return the logarithm of the factor of the density, 2 atanh(1 - 2 p) / (1 - 2 p)."""
        far = self._far_probs()
        formula = ((-far).log1p() - far.log()).abs().log() - (1 - 2 * far).abs().log()
        squared = (self.probs - 0.5).square()
        series = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * squared) * squared
        return where(self._near_half(), series, formula)

    @property
    def mean(self) -> Tensor:
        far = self._far_probs()
        formula = far / (2.0 * far - 1.0) + 1.0 / ((-far).log1p() - far.log())
        x = self.probs - 0.5
        series = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.square()) * x
        return where(self._near_half(), series, formula)

    @property
    def variance(self) -> Tensor:
        far = self._far_probs()
        formula = far * (far - 1.0) / (1.0 - 2.0 * far).square() + 1.0 / ((-far).log1p() - far.log()).square()
        squared = (self.probs - 0.5).square()
        series = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * squared) * squared
        return where(self._near_half(), series, formula)

    def rsample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self._param.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._log_normalization()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        logits, value = broadcast_all(self._nonzero_logits(), value)
        return where(self.logits == 0, value, (logits * value).expm1() / logits.expm1()).clamp(min=0.0, max=1.0)

    def icdf(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self._nonzero_logits(), value)
        return where(self.logits == 0, value, (value * logits.expm1()).log1p() / logits)

    def _nonzero_logits(self) -> Tensor:
        return where(self.logits == 0, 1.0, self.logits)

    def entropy(self) -> Tensor:
        log_rest = (-self.probs).log1p()
        return self.mean * (log_rest - self.probs.log()) - self._log_normalization() - log_rest

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        far = (x.sigmoid() < self._lims[0]) | (x.sigmoid() > self._lims[1])
        safe = where(far, x, 1.0)
        return where(far, (safe.expm1() / safe).abs().log(), 0.5 * x + x.square() / 24.0 - x.pow(4) / 2880.0)
