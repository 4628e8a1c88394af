"""The multivariate normal distribution with a covariance matrix of low rank plus a diagonal."""

import math

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.distribution import Distribution
from retrograd.distributions.multivariate_normal import batch_mahalanobis, log_det_factor
from retrograd.distributions.utils import lazy_property
from retrograd.ops.as_strided import broadcast_shapes
from retrograd.ops.create import eye
from retrograd.ops.decompose import linalg_cholesky
from retrograd.ops.random import randn
from retrograd.ops.solve import linalg_solve_triangular

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """The normal distribution with covariance `cov_factor @ cov_factor.mT + diag(cov_diag)`, of rank k plus a diagonal.

    `cov_factor` has shape (..., n, k), `loc` and `cov_diag` have shape (..., n).  Only k x k matrices are factorized,
    by the matrix determinant lemma and Woodbury's identity.

    >>> import retrograd as rg
    >>> from retrograd.distributions import LowRankMultivariateNormal
    >>> LowRankMultivariateNormal(rg.zeros(2), rg.ones(2, 1), rg.ones(2)).covariance_matrix
    tensor([[2., 1.],
            [1., 2.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if cov_factor.ndim < 2 or cov_factor.shape[-2] != n:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n} x m")
        if cov_diag.shape[-1:] != (n,):
            raise ValueError(f"cov_diag must be a batch of vectors with shape {(n,)}")
        batch_shape = broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc, self.cov_diag = loc.expand((*batch_shape, n)), cov_diag.expand((*batch_shape, n))
        self.cov_factor = cov_factor.expand((*batch_shape, *cov_factor.shape[-2:]))
        super().__init__(batch_shape, (n,), validate_args=validate_args)

    def _capacitance_tril(self) -> Tensor:
        """Return the Cholesky factor of I + W^T D^-1 W, of size k x k."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        return linalg_cholesky(scaled @ self.cov_factor + eye(self.cov_factor.shape[-1], dtype=scaled.dtype))

    def _mahalanobis(self, x: Tensor, capacitance_tril: Tensor) -> Tensor:
        """Return x^T (W W^T + D)^-1 x."""
        scaled = x / self.cov_diag
        reduced = (self.cov_factor.mT @ scaled.unsqueeze(-1)).squeeze(-1)
        return (x * scaled).sum(-1) - batch_mahalanobis(capacitance_tril, reduced)

    def _log_det(self, capacitance_tril: Tensor) -> Tensor:
        """Return the logarithm of the determinant of the covariance matrix."""
        return 2 * log_det_factor(capacitance_tril) + self.cov_diag.log().sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The diagonal of the covariance matrix."""
        return self.cov_factor.square().sum(-1) + self.cov_diag

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance matrix."""
        # W W^T + D = D^1/2 (I + V V^T) D^1/2 with V = D^-1/2 W: the matrix in the middle is well conditioned.
        root = self.cov_diag.sqrt().unsqueeze(-1)
        scaled = self.cov_factor / root
        return root * linalg_cholesky(scaled @ scaled.mT + eye(self._event_shape[0], dtype=scaled.dtype))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix, of shape (..., n, n)."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix, by Woodbury's identity."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        reduced = linalg_solve_triangular(self._capacitance_tril(), scaled, upper=False)
        return self.cov_diag.reciprocal().diag_embed() - reduced.mT @ reduced

    def expand(self, batch_shape: tuple[int, ...], _instance: object = None) -> "LowRankMultivariateNormal":
        new = super().expand(batch_shape, _instance)
        for name in ("variance", "scale_tril", "covariance_matrix", "precision_matrix"):
            vars(new).pop(name, None)  # of the former batch shape
        return new

    def rsample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        reduced = randn((*shape[:-1], self.cov_factor.shape[-1]), dtype=self.loc.dtype)
        noise = randn(shape, dtype=self.loc.dtype)
        return self.loc + (self.cov_factor @ reduced.unsqueeze(-1)).squeeze(-1) + self.cov_diag.sqrt() * noise

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        factor = self._capacitance_tril()
        squares = self._mahalanobis(value - self.loc, factor)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det(factor) + squares)

    def entropy(self) -> Tensor:
        log_det = self._log_det(self._capacitance_tril())
        return 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)
