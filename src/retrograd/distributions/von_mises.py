"""The von Mises distribution."""

import math

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.distribution import Distribution
from retrograd.distributions.utils import broadcast_all
from retrograd.ops.bessel import i0e, i1e
from retrograd.ops.distributions import sample_von_mises

__all__ = ["VonMises"]


class VonMises(Distribution):
    """The distribution of angles in radians with a density proportional to exp(concentration * cos(x - loc)).

    >>> import retrograd as rg
    >>> from retrograd.distributions import VonMises
    >>> VonMises(rg.tensor(1.0), rg.tensor(2.0)).mean
    tensor(1.)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def sample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return sample_von_mises(self.loc.expand(shape), self.concentration.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        k = self.concentration
        return k * ((value - self.loc).cos() - 1) - math.log(2 * math.pi) - i0e(k).log()

    @property
    def mean(self) -> Tensor:
        """The direction of the mean vector."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The circular variance, 1 minus the length of the mean vector."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)
