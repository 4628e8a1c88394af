"""`scipy.stats.dirichlet`, the Dirichlet distribution."""

from retrograd.interop.numpy_protocol.table import O, agreeing, floating
from retrograd.scipy._mirror import on_tensors, rest_of

_dirichlet = on_tensors("scipy.stats.dirichlet")


@_dirichlet
def logpdf(x, alpha):
    """The logarithm of the density at x, whose first axis has the components; the last of these may be left out."""
    x, alpha = agreeing(floating(x), floating(alpha))
    if x.shape[0] == alpha.shape[0] - 1:
        x = O.cat([x, 1 - O.sum(x, 0, True)], 0)
    powers = O.reshape(alpha - 1, (-1,) + (1,) * (x.ndim - 1))
    size = O.sum(O.special.gammaln(alpha)) - O.special.gammaln(O.sum(alpha))
    return O.sum(O.special.xlogy(powers, x), 0) - size


@_dirichlet
def pdf(x, alpha):
    """The density at x."""
    return O.exp(logpdf(x, alpha))


__getattr__, __dir__ = rest_of("scipy.stats.dirichlet")
