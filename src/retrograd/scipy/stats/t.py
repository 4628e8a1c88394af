"""`scipy.stats.t`, Student's distribution with df degrees of freedom."""

import math

from retrograd.interop.numpy_protocol.table import O
from retrograd.scipy._mirror import fallback_members
from retrograd.scipy.stats._continuous import Continuous


def _logpdf(z, df):
    size = O.special.gammaln((df + 1) / 2) - O.special.gammaln(df / 2) - O.log(df * math.pi) / 2
    return size - (df + 1) / 2 * O.log1p(z * z / df)


def _cdf(z, df):
    """Return half of an incomplete beta function on each side; at 0, where its slope is undefined, the tangent."""
    middle = z == 0
    safe = O.where(middle, 1.0, z)
    tail = O.special.betainc(df / 2, 0.5, df / (df + safe * safe)) / 2
    side = O.where(z > 0, 1 - tail, tail)
    return O.where(middle, 0.5 + z * O.exp(_logpdf(O.where(middle, z, 0.0), df)), side)


_own = Continuous("t", "df", logpdf=_logpdf, cdf=_cdf, sf=lambda z, df: _cdf(-z, df))
pdf, logpdf, cdf, sf, logcdf, logsf = _own.pdf, _own.logpdf, _own.cdf, _own.sf, _own.logcdf, _own.logsf

__getattr__, __dir__ = fallback_members("scipy.stats.t")
