"""`scipy.stats.multivariate_normal`, by the Cholesky factor of the covariance."""

import math

from retrograd.backend.type_info import finfo
from retrograd.interop.numpy_protocol.table import O, as_floating, promote_operands
from retrograd.scipy._mirror import fallback_members, on_tensors

_normal = on_tensors("scipy.stats.multivariate_normal")


def _parameters(mean, cov):
    """Return mean vector and covariance matrix; a number scales the identity, a vector is the diagonal."""
    cov = as_floating(cov)
    zero = O.zeros_like(O.reshape(cov, (-1,))[:1])
    known = zero if mean is None else O.reshape(as_floating(mean), (-1,))
    size = cov.shape[0] if mean is None and cov.ndim else known.shape[0]
    matrix = cov if cov.ndim == 2 else O.diag(O.broadcast_to(cov, (size,)))
    return promote_operands(O.broadcast_to(known, (size,)), matrix)


def _points(x, size):
    """Return x with the components along its last axis."""
    x = as_floating(x)
    return O.unsqueeze(x, -1) if x.ndim == 0 or (x.ndim == 1 and size == 1) else x


@_normal
def logpdf(x, mean=None, cov=1, allow_singular=False):
    """Return the log-density at x, whose last axis has the components."""
    mean, cov = _parameters(mean, cov)
    size = mean.shape[0]
    x, mean, cov = promote_operands(_points(x, size), mean, cov)
    if allow_singular:
        return O.reshape(_on_support(O.reshape(x - mean, (-1, size)), cov), x.shape[:-1])
    factor = O.linalg.cholesky(cov)
    solved = O.linalg.solve_triangular(factor, O.reshape(x - mean, (-1, size)).T, upper=False)
    distance = O.reshape(O.sum(solved * solved, 0), x.shape[:-1])
    return -(distance + size * math.log(2 * math.pi)) / 2 - O.sum(O.log(O.diagonal(factor)))


def _on_support(deviations, cov):
    """Return the log-density on the support of a covariance that may be singular; -inf outside of it.

    Eigenvalues count as 0 by SciPy's criterion.
    """
    sizes = O.linalg.eigvalsh(cov)
    least = (1e3 if sizes.dtype.itemsize == 4 else 1e6) * finfo(sizes.dtype).eps * abs(sizes.detach()).max().item()
    if (sizes < -least).any():
        raise ValueError("stats.multivariate_normal: cov must be symmetric positive semidefinite")
    kept, inverse = sizes > least, O.linalg.pinv(cov, atol=least, hermitian=True)
    spread = O.sum(O.where(kept, O.log(O.where(kept, sizes, 1)), 0)) + O.sum(kept) * math.log(2 * math.pi)
    found = -(O.sum(deviations @ inverse * deviations, -1) + spread) / 2
    outside = deviations.detach() - deviations.detach() @ (inverse @ cov).detach()
    return O.where(O.linalg.vector_norm(outside, dim=-1) < 1e3 * least, found, -math.inf)


@_normal
def pdf(x, mean=None, cov=1, allow_singular=False):
    """Return the density at x."""
    return O.exp(logpdf(x, mean, cov, allow_singular))


@_normal
def entropy(mean=None, cov=1):
    """Return the entropy in nats."""
    _, matrix = _parameters(mean, cov)
    size = matrix.shape[0]
    return O.sum(O.log(O.diagonal(O.linalg.cholesky(matrix)))) + size * (1 + math.log(2 * math.pi)) / 2


__getattr__, __dir__ = fallback_members("scipy.stats.multivariate_normal")
