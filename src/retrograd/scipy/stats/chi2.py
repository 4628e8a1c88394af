"""`scipy.stats.chi2`, the chi-square distribution with df degrees of freedom."""

import math

from retrograd.interop.numpy_protocol.table import O
from retrograd.scipy._mirror import fallback_members
from retrograd.scipy.stats._continuous import Continuous

_own = Continuous(
    "chi2",
    "df",
    logpdf=lambda z, df: O.special.xlogy(df / 2 - 1, z) - z / 2 - O.special.gammaln(df / 2) - df / 2 * math.log(2),
    cdf=lambda z, df: O.special.gammainc(df / 2, z / 2),
    sf=lambda z, df: O.special.gammaincc(df / 2, z / 2),
    support=(0.0, math.inf),
    middle=1.0,
)
pdf, logpdf, cdf, sf, logcdf, logsf = _own.pdf, _own.logpdf, _own.cdf, _own.sf, _own.logcdf, _own.logsf

__getattr__, __dir__ = fallback_members("scipy.stats.chi2")
