"""The beta distribution."""

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.exp_family import ExponentialFamily
from retrograd.distributions.utils import broadcast_all
from retrograd.ops.distributions import sample_beta
from retrograd.ops.gamma import betaln, digamma
from retrograd.ops.incomplete_beta import betainc
from retrograd.ops.masked import where
from retrograd.ops.special import xlog1py, xlogy

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """The beta distribution on the interval from 0 to 1,
    with a density proportional to x^(concentration1 - 1) (1 - x)^(concentration0 - 1).

    Draws have gradients by both parameters: implicit reparameterization, see `retrograd.standard_gamma`.

    >>> from retrograd.distributions import Beta
    >>> Beta(1.0, 3.0).mean
    tensor(0.2500)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        above1, above0 = (self.concentration1 - 1).clamp(min=0), (self.concentration0 - 1).clamp(min=0)
        corner = (self.concentration1 >= self.concentration0).to(above1.dtype)
        both_below = (self.concentration1 < 1) & (self.concentration0 < 1)
        return where(both_below, corner, above1 / where(both_below, 1.0, above1 + above0))

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    def rsample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return sample_beta(self.concentration1.expand(shape), self.concentration0.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        a, b = self.concentration1, self.concentration0
        return xlogy(a - 1, value) + xlog1py(b - 1, -value) - betaln(a, b)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return betainc(self.concentration1, self.concentration0, value)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return betaln(a, b) - (a - 1) * digamma(a) - (b - 1) * digamma(b) + (a + b - 2) * digamma(a + b)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return betaln(x, y)
