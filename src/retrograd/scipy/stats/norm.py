"""`scipy.stats.norm`, the normal distribution."""

import math

from retrograd.interop.numpy_protocol.table import O
from retrograd.scipy._mirror import fallback_members
from retrograd.scipy.stats._continuous import Continuous

_own = Continuous(
    "norm",
    logpdf=lambda z: -z * z / 2 - math.log(2 * math.pi) / 2,
    cdf=lambda z: O.special.ndtr(z),
    sf=lambda z: O.special.ndtr(-z),
    logcdf=lambda z: O.special.log_ndtr(z),
    logsf=lambda z: O.special.log_ndtr(-z),
)
pdf, logpdf, cdf, sf, logcdf, logsf = _own.pdf, _own.logpdf, _own.cdf, _own.sf, _own.logcdf, _own.logsf

__getattr__, __dir__ = fallback_members("scipy.stats.norm")
