"""The multivariate normal distribution."""

import math
from typing import Any

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.distribution import Distribution
from retrograd.distributions.utils import lazy_property
from retrograd.ops.as_strided import broadcast_shapes
from retrograd.ops.create import eye
from retrograd.ops.decompose import linalg_cholesky
from retrograd.ops.random import randn
from retrograd.ops.solve import cholesky_inverse, linalg_solve_triangular

__all__ = ["MultivariateNormal"]


def batch_mahalanobis(factor: Tensor, x: Tensor) -> Tensor:
    """Return x^T M^-1 x for vectors x (..., n) and M = L L^T, given the Cholesky factors L (..., n, n)."""
    return linalg_solve_triangular(factor, x.unsqueeze(-1), upper=False).square().sum((-2, -1))


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """Return the Cholesky factors of the inverses of positive definite matrices."""
    # If P with rows and columns in reverse order is L L^T, then P = U U^T with an upper triangular U, and P^-1 is
    # U^-T U^-1.
    upper = linalg_cholesky(precision.flip((-2, -1))).flip((-2, -1))
    identity = eye(precision.shape[-1], dtype=precision.dtype)
    return linalg_solve_triangular(upper.mT, identity, upper=False)


def log_det_factor(factor: Tensor) -> Tensor:
    """Return the logarithms of the determinants of Cholesky factors."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class CovarianceParameters(Distribution):
    """Base of distributions with a covariance matrix, given as one of three matrices; the others follow on demand.

    They follow from `_unbroadcasted_scale_tril`, the Cholesky factor of the given matrix before it is expanded to the
    batch. Subclasses that compute it in another way define it as a property of this name, which is PyTorch's.
    """

    _unbroadcasted_scale_tril: Any

    arg_constraints = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }

    def _set_factor(self, name: str, matrix: Tensor) -> None:
        """Compute the factor of the matrix of a name."""
        factorize = {"covariance_matrix": linalg_cholesky, "precision_matrix": precision_to_scale_tril}.get(name)
        self._unbroadcasted_scale_tril = matrix if factorize is None else factorize(matrix)

    def _expanded(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *matrix.shape[-2:]))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance matrix."""
        return self._expanded(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        factor = self._unbroadcasted_scale_tril
        return self._expanded(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        return self._expanded(cholesky_inverse(self._unbroadcasted_scale_tril))


class MultivariateNormal(CovarianceParameters):
    """The normal distribution of vectors with mean `loc` and a positive definite covariance matrix.

    The matrix is given as one of `covariance_matrix`, its inverse `precision_matrix`, and its Cholesky factor
    `scale_tril`; the last one is the fastest.

    >>> import retrograd as rg
    >>> from retrograd.distributions import MultivariateNormal
    >>> MultivariateNormal(rg.zeros(2), rg.eye(2)).log_prob(rg.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {"loc": constraints.real_vector, **CovarianceParameters.arg_constraints}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = the_matrix(covariance_matrix, precision_matrix, scale_tril)
        batch_shape = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        n = loc.shape[-1]
        if matrix.shape[-2:] != (n, n):
            raise ValueError(f"{name} must have shape (..., {n}, {n}) for loc of {n} elements, got {matrix.shape}")
        self.loc = loc.expand((*batch_shape, n))
        setattr(self, name, matrix.expand((*batch_shape, n, n)))
        super().__init__(batch_shape, (n,), validate_args)
        self._set_factor(name, matrix)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.square().sum(-1).expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        noise = randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        factor = self._unbroadcasted_scale_tril
        squares = batch_mahalanobis(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + squares) - log_det_factor(factor)

    def entropy(self) -> Tensor:
        log_det = log_det_factor(self._unbroadcasted_scale_tril).expand(self._batch_shape)
        return 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det


def the_matrix(covariance: Any, precision: Any, factor: Any) -> tuple[str, Tensor]:
    """Return the name of the one given matrix, and the matrix; ValueError unless exactly one is given."""
    names = ("covariance_matrix", "precision_matrix", "scale_tril")
    given = [(name, m) for name, m in zip(names, (covariance, precision, factor), strict=True) if m is not None]
    if len(given) != 1:
        raise ValueError(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified, "
            f"got {' and '.join(name for name, _ in given) or 'none'}."
        )
    name, matrix = given[0]
    if matrix.ndim < 2:
        raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
    return name, matrix
