"""Kernels of random numbers: derivatives of samples by distribution parameters, and sampling of indices."""

import functools
import math

import numpy as np

from retrograd.backend.sorting import topk_indices
from retrograd.backend.special import scipy_special

__all__ = ["draw_distinct", "gamma_cdf_derivative", "sample_indices"]

_NODES = np.cos(np.pi * (np.arange(12) + 0.5) / 12)  # Chebyshev nodes, in (-1, 1)


@functools.cache
def _weights(order):
    """Return the weights of the node values in the derivative, at 0, of their interpolating polynomial."""
    basis = np.polynomial.chebyshev.chebvander(_NODES, 11) * (2 / 12)  # node, degree: a discrete cosine transform
    basis[:, 0] /= 2
    at_zero = np.polynomial.chebyshev.chebder(np.eye(12), order)
    return basis @ np.polynomial.chebyshev.chebval(0.0, at_zero)


def gamma_cdf_derivative(alpha, x, order):
    """Return the derivative of that order, by alpha, of the gamma distribution function at x, over the density.

    SciPy has the smaller tail to full precision.  The derivatives are those of the polynomial through its logarithm at
    12 points around alpha, which are close compared with the distance of its singularities.
    """
    a, z = (np.asarray(v, np.float64) for v in np.broadcast_arrays(alpha, x))
    with np.errstate(all="ignore"):  # NaN outside the domain, and where even the tail underflows
        lower = scipy_special().gammainc(a, z) < 0.5
        slopes = _log_tail_slopes(a, z, lower, order)
        tail = np.where(lower, scipy_special().gammainc(a, z), -scipy_special().gammaincc(a, z))
        out = np.exp(np.log(np.abs(tail)) - _log_density(a, z)) * np.sign(tail) * _bell(slopes)
    return np.where(z == 0, 0.0, out).astype(np.result_type(alpha, x))


def _log_tail_slopes(a, z, lower, order):
    """Return the derivatives of orders 1, 2, ... of the logarithm of the lower tail, or of the upper one."""
    radius = 0.2 * a / np.sqrt(1 + a)
    around = a + np.multiply.outer(_NODES, radius)
    tails = np.empty_like(around)
    tails[:, lower] = scipy_special().gammainc(around[:, lower], z[lower])
    tails[:, ~lower] = scipy_special().gammaincc(around[:, ~lower], z[~lower])
    logs = np.log(tails)
    return [np.tensordot(_weights(k), logs, 1) / radius**k for k in range(1, order + 1)]


def _bell(slopes):
    """Return a function's derivative over the function, from the derivatives of its logarithm (Bell polynomials)."""
    made = [1.0]
    for n in range(len(slopes)):
        made.append(sum(math.comb(n, k) * made[n - k] * slopes[k] for k in range(n + 1)))
    return made[-1]


def _log_density(a, z):
    """Return the logarithm of the gamma density; for large a by Stirling's series, to avoid cancellation."""
    plain = (a - 1) * np.log(z) - z - scipy_special().gammaln(a)
    away, square = (z - a) / a, a * a
    rest = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * square)) / square) / square) / a
    stirling = a * (np.log1p(away) - away) - np.log(z) + 0.5 * np.log(a / (2 * math.pi)) - rest
    return np.where(a > 16, stirling, plain)


def sample_indices(weights, uniform):
    """Return per row the indices where uniform values in [0, 1) fall among intervals as wide as the weights."""
    edges = np.cumsum(weights, axis=-1, dtype=np.float64)
    edges /= edges[..., -1:]
    rows = [np.searchsorted(e, u, side="right") for e, u in zip(edges, uniform, strict=True)]
    return np.minimum(np.array(rows, np.int64).reshape(uniform.shape), weights.shape[-1] - 1)


def draw_distinct(weights, exponential, count):
    """Return per row `count` distinct indices: those with the smallest exponential times at rates `weights`.

    Efraimidis and Spirakis, Weighted random sampling with a reservoir, Inf. Process. Lett. 97 (2006), 181-185.
    """
    with np.errstate(divide="ignore"):
        times = exponential / weights
    return topk_indices(times, count, -1, False)
