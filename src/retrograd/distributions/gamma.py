"""The gamma distribution."""

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.exp_family import ExponentialFamily
from retrograd.distributions.utils import broadcast_all
from retrograd.ops.as_tensor import as_tensor
from retrograd.ops.distributions import standard_gamma
from retrograd.ops.gamma import digamma, igamma, lgamma
from retrograd.ops.special import xlogy

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The gamma distribution with shape `concentration` and scale 1 / `rate`.

    Draws have gradients by both parameters: implicit reparameterization, see `retrograd.standard_gamma`.

    >>> from retrograd.distributions import Gamma
    >>> Gamma(3.0, 2.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0.0

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        return standard_gamma(self.concentration.expand(self._extended_shape(sample_shape))) / self.rate

    def log_prob(self, value: Tensor | float) -> Tensor:
        value = value if isinstance(value, Tensor) else as_tensor(value, dtype=self.rate.dtype)
        self._check_value(value)
        shape, rate = self.concentration, self.rate
        return xlogy(shape, rate) + xlogy(shape - 1, value) - rate * value - lgamma(shape)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return igamma(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        shape = self.concentration
        return shape - self.rate.log() + lgamma(shape) + (1.0 - shape) * digamma(shape)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return lgamma(x + 1) - (x + 1) * (-y).log()
