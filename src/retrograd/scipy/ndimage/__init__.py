"""`scipy.ndimage`: values of images between their pixels; the rest is SciPy's own."""

from retrograd.scipy._mirror import fallback_members
from retrograd.scipy.ndimage.sampling import map_coordinates, spline_filter

__all__ = ["map_coordinates", "spline_filter"]

__getattr__, __dir__ = fallback_members("scipy.ndimage")
