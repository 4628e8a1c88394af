"""`scipy.ndimage`: linear filters, and values of images between their pixels; the rest is SciPy's own."""

from retrograd.scipy._mirror import fallback_members
from retrograd.scipy.ndimage.filters import (
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    gaussian_filter,
    gaussian_filter1d,
    gaussian_gradient_magnitude,
    gaussian_laplace,
    laplace,
    prewitt,
    sobel,
    uniform_filter,
    uniform_filter1d,
)
from retrograd.scipy.ndimage.sampling import map_coordinates, spline_filter

__all__ = [
    "convolve",
    "convolve1d",
    "correlate",
    "correlate1d",
    "gaussian_filter",
    "gaussian_filter1d",
    "gaussian_gradient_magnitude",
    "gaussian_laplace",
    "laplace",
    "map_coordinates",
    "prewitt",
    "sobel",
    "spline_filter",
    "uniform_filter",
    "uniform_filter1d",
]

__getattr__, __dir__ = fallback_members("scipy.ndimage")
