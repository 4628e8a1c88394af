"""`scipy.interpolate`: splines and grids, differentiable in the data and in the points; the rest is SciPy's own.

The interval of a point is a constant, so derivatives at a breakpoint are those of one side. Linear systems for
coefficients are sparse.
"""

from retrograd.scipy._mirror import fallback_members
from retrograd.scipy.interpolate.bsplines import make_interp_spline
from retrograd.scipy.interpolate.grids import RegularGridInterpolator, interp1d
from retrograd.scipy.interpolate.piecewise import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
)

__all__ = [
    "Akima1DInterpolator",
    "CubicHermiteSpline",
    "CubicSpline",
    "PchipInterpolator",
    "RegularGridInterpolator",
    "interp1d",
    "make_interp_spline",
]

__getattr__, __dir__ = fallback_members("scipy.interpolate")
