"""`scipy.stats.beta`, the beta distribution with shapes a and b."""

from retrograd.interop.numpy_protocol.table import O
from retrograd.scipy._mirror import fallback_members
from retrograd.scipy.stats._continuous import Continuous

_own = Continuous(
    "beta",
    "a b",
    logpdf=lambda z, a, b: O.special.xlogy(a - 1, z) + O.special.xlog1py(b - 1, -z) - O.special.betaln(a, b),
    cdf=lambda z, a, b: O.special.betainc(a, b, z),
    sf=lambda z, a, b: O.special.betainc(b, a, 1 - z),
    support=(0.0, 1.0),
    middle=0.5,
)
pdf, logpdf, cdf, sf, logcdf, logsf = _own.pdf, _own.logpdf, _own.cdf, _own.sf, _own.logcdf, _own.logsf

__getattr__, __dir__ = fallback_members("scipy.stats.beta")
