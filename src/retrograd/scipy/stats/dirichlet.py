"""`scipy.stats.dirichlet`, the Dirichlet distribution."""

from retrograd.core.level import ReadError
from retrograd.interop.numpy_protocol.table import O, as_floating, promote_operands, values
from retrograd.scipy._mirror import fallback_members, on_tensors

_dirichlet = on_tensors("scipy.stats.dirichlet")


@_dirichlet
def logpdf(x, alpha):
    """Return the log-density at x, whose first axis has the components; the last of these may be omitted."""
    x, alpha = promote_operands(as_floating(x), as_floating(alpha))
    if x.shape[0] == alpha.shape[0] - 1:
        x = O.cat([x, 1 - O.sum(x, 0, True)], 0)
    _check_shares(x)
    powers = O.reshape(alpha - 1, (-1,) + (1,) * (x.ndim - 1))
    size = O.sum(O.special.gammaln(alpha)) - O.special.gammaln(O.sum(alpha))
    return O.sum(O.special.xlogy(powers, x), 0) - size


def _check_shares(x):
    """Refuse values outside the simplex; not checked under vmap, where values are unknown."""
    try:
        shares = values(x)
    except ReadError:
        return
    if ((shares < 0) | (shares > 1)).any() or (abs(shares.sum(0) - 1) > 1e-9).any():
        raise ValueError("stats.dirichlet: x must have components from 0 to 1, which add up to 1")


@_dirichlet
def pdf(x, alpha):
    """Return the density at x."""
    return O.exp(logpdf(x, alpha))


__getattr__, __dir__ = fallback_members("scipy.stats.dirichlet")
