"""`scipy.stats.gamma`, the gamma distribution with shape a."""

import math

from retrograd.interop.numpy_protocol.table import O
from retrograd.scipy._mirror import fallback_members
from retrograd.scipy.stats._continuous import Continuous

_own = Continuous(
    "gamma",
    "a",
    logpdf=lambda z, a: O.special.xlogy(a - 1, z) - z - O.special.gammaln(a),
    cdf=lambda z, a: O.special.gammainc(a, z),
    sf=lambda z, a: O.special.gammaincc(a, z),
    support=(0.0, math.inf),
    middle=1.0,
)
pdf, logpdf, cdf, sf, logcdf, logsf = _own.pdf, _own.logpdf, _own.cdf, _own.sf, _own.logcdf, _own.logsf

__getattr__, __dir__ = fallback_members("scipy.stats.gamma")
