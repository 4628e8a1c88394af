"""The LKJ distribution of correlation matrices."""

import math

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.beta import Beta
from retrograd.distributions.distribution import Distribution
from retrograd.distributions.utils import broadcast_all
from retrograd.nn.functional import pad
from retrograd.ops.create import arange
from retrograd.ops.gamma import lgamma, mvlgamma
from retrograd.ops.random import randn

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of `dim` x `dim` correlation matrices,
    whose density is proportional to det ** (concentration - 1).

    Draws are made row by row, by the onion method: D. Lewandowski, D. Kurowicka and H. Joe, Generating random
    correlation matrices based on vines and extended onion method, J. Multivariate Anal. 100 (2009) 1989.

    >>> from retrograd.distributions import LKJCholesky
    >>> LKJCholesky(3, 0.5).sample().shape
    (3, 3)
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _squared_lengths(self) -> Beta:
        """Return the distribution of the squared lengths of the rows 1 to dim - 1, left of the diagonal."""
        rows = arange(self.dim - 1, dtype=self.concentration.dtype)
        rest = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 2) - 0.5 * rows
        return Beta((rows + 1) / 2, rest, validate_args=False)

    def sample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        with no_grad():
            squared = pad(self._squared_lengths().sample(sample_shape), (1, 0), value=0.0).unsqueeze(-1)
            normal = randn(self._extended_shape(sample_shape), dtype=self.concentration.dtype).tril(-1)
            length = normal.square().sum(-1, keepdim=True).sqrt()
            directions = normal / length.clamp(min=1e-300 if length.dtype.itemsize == 8 else 1e-30)
            factor = squared.sqrt() * directions
            return factor + (1 - factor.square().sum(-1)).clamp(min=0).sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n = self.dim
        diagonal = value.diagonal(dim1=-2, dim2=-1)[..., 1:]
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + n - arange(2, n + 1, dtype=self.concentration.dtype)
        return (powers * diagonal.log()).sum(-1) - self._log_normalization()

    def _log_normalization(self) -> Tensor:
        """Return the logarithm of the integral of the density's powers, on page 1999 of the paper."""
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        return 0.5 * n * math.log(math.pi) + mvlgamma(alpha - 0.5, n) - lgamma(alpha) * n
