"""Transforms of vectors and matrices."""

import math

from retrograd.backend.type_info import finfo
from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.transforms.base import PlainTransform, checked_shape
from retrograd.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from retrograd.nn.functional import pad, softplus
from retrograd.ops.create import arange, eye
from retrograd.ops.decompose import linalg_cholesky


class SoftmaxTransform(PlainTransform):
    """Vectors to the simplex by softmax; not a bijection, the inverse returns logarithms."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return checked_shape(shape, 1)

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return checked_shape(shape, 1)


class StickBreakingTransform(PlainTransform):
    """Vectors of K - 1 numbers to the interior of the simplex of K: each value takes a share of what is left."""

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        share = (x - self._offset(x)).sigmoid()
        left = (1 - share).cumprod(-1)
        return pad(share, (0, 1), value=1.0) * pad(left, (1, 0), value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        cropped = y[..., :-1]
        left = (1 - cropped.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return cropped.log() - left.log() + self._offset(cropped)

    @staticmethod
    def _offset(x: Tensor) -> Tensor:
        """Return log(number of shares that follow), so that 0 is mapped to equal shares."""
        k = x.shape[-1]
        return arange(k, 0, -1, dtype=x.dtype).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # The matrix is triangular.  Its diagonal has the derivatives share (1 - share) left, and y is share left.
        return (y[..., :-1].log() - softplus(x - self._offset(x))).sum(-1)

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        shape = checked_shape(shape, 1)
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        shape = checked_shape(shape, 1)
        return (*shape[:-1], shape[-1] - 1)


class CorrCholeskyTransform(PlainTransform):
    """Vectors of n (n - 1) / 2 numbers to Cholesky factors of n x n correlation matrices.

    tanh gives each number below the diagonal its part of the length that is left in its row; the diagonal takes the
    rest, so that rows have length 1.  Lewandowski, Kurowicka and Joe, J. Multivariate Anal. 100 (2009) 1989.
    """

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        limit = 1 - finfo(x.dtype).eps
        parts = vec_to_tril_matrix(x.tanh().clamp(min=-limit, max=limit), diag=-1)
        left = (1 - parts.square()).sqrt().cumprod(-1)
        with_diagonal = parts + eye(parts.shape[-1], dtype=parts.dtype)
        return with_diagonal * pad(left[..., :-1], (1, 0), value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        left = pad((1 - y.square().cumsum(-1))[..., :-1], (1, 0), value=1.0)
        parts = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (parts.log1p() - (-parts).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = tril_matrix_to_vec(1 - y.square().cumsum(-1), diag=-2)
        of_tanh = 2 * (math.log(2.0) - x - softplus(-2 * x))
        return left.log().sum(-1) / 2 + of_tanh.sum(-1)

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        count = checked_shape(shape, 1)[-1]
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        n = checked_shape(shape, 2)[-1]
        if shape[-2] != n:
            raise ValueError("Input is not square")
        return (*shape[:-2], n * (n - 1) // 2)


class LowerCholeskyTransform(PlainTransform):
    """Matrices to lower triangular ones with a positive diagonal: its exponentials."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(PlainTransform):
    """Matrices to positive definite ones, whose Cholesky factors `LowerCholeskyTransform` gives."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(linalg_cholesky(y))
