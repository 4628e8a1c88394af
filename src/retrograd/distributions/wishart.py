"""The Wishart distribution."""

import math

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.exp_family import ExponentialFamily
from retrograd.distributions.multivariate_normal import CovarianceParameters, log_det_factor, the_matrix
from retrograd.distributions.utils import at_least_float
from retrograd.ops.as_strided import broadcast_shapes
from retrograd.ops.as_tensor import as_tensor
from retrograd.ops.create import arange
from retrograd.ops.decompose import linalg_cholesky
from retrograd.ops.distributions import standard_gamma
from retrograd.ops.gamma import digamma, mvlgamma
from retrograd.ops.masked import where
from retrograd.ops.random import randn
from retrograd.ops.solve import cholesky_solve

__all__ = ["Wishart"]


class Wishart(CovarianceParameters, ExponentialFamily):
    """The distribution of the sum of x x^T over `df` normal vectors x with a covariance matrix; `df` may be fractional.

    Draws are made by Bartlett's decomposition.  `df` must be greater than n - 1 for matrices of size n x n.

    >>> import retrograd as rg
    >>> from retrograd.distributions import Wishart
    >>> Wishart(rg.tensor(3.0), covariance_matrix=rg.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    arg_constraints = {"df": constraints.greater_than(0), **CovarianceParameters.arg_constraints}
    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0.0

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = the_matrix(covariance_matrix, precision_matrix, scale_tril)
        df = at_least_float(as_tensor(df, dtype=None if isinstance(df, Tensor) else matrix.dtype))
        batch_shape = broadcast_shapes(df.shape, matrix.shape[:-2])
        self.df = df.expand(batch_shape)
        setattr(self, name, matrix.expand(batch_shape + matrix.shape[-2:]))
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        self._set_factor(name, matrix)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not constraints.all_valid(self.df > self._event_shape[-1] - 1):
            raise ValueError(
                f"Value of df={self.df} expected to be greater than ndim - 1 = {self._event_shape[-1] - 1}."
            )

    def _matrix_df(self) -> Tensor:
        return self.df.unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self) -> Tensor:
        return self._matrix_df() * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self._matrix_df() - self._event_shape[-1] - 1
        return where(factor > 0, factor, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._matrix_df() * (self.covariance_matrix.square() + products)

    def rsample(self, sample_shape: tuple[int, ...] = (), max_try_correction: int | None = None) -> Tensor:
        """Return draws; `max_try_correction` is ignored: Bartlett's factors are never singular but by rounding."""
        shape = self._extended_shape(sample_shape)
        rows = arange(shape[-1], dtype=self.df.dtype)
        halves = ((self.df.unsqueeze(-1) - rows) / 2).expand(shape[:-1])
        noise = randn(shape, dtype=self.df.dtype).tril(-1)
        factor = self.scale_tril @ (noise + (2 * standard_gamma(halves)).sqrt().diag_embed())
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n = self._event_shape[-1]
        log_det = 2 * log_det_factor(linalg_cholesky(value))
        trace = cholesky_solve(value, self.scale_tril).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (self.df - n - 1) / 2 * log_det - trace / 2 - self._log_normalization()

    def _log_normalization(self) -> Tensor:
        n = self._event_shape[-1]
        return self.df * (log_det_factor(self.scale_tril) + n * math.log(2) / 2) + mvlgamma(self.df / 2, n)

    def entropy(self) -> Tensor:
        n = self._event_shape[-1]
        rows = arange(n, dtype=self.df.dtype)
        digammas = digamma((self.df.unsqueeze(-1) - rows) / 2).sum(-1)
        mean_log_det = digammas + n * math.log(2) + 2 * log_det_factor(self.scale_tril)
        return self._log_normalization() - (self.df - n - 1) / 2 * mean_log_det + self.df * n / 2

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        n = self._event_shape[-1]
        half = y + (n + 1) / 2
        return half * (-2 * log_det_factor(linalg_cholesky(-2 * x)) + n * math.log(2)) + mvlgamma(half, n)
