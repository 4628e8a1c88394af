"""SciPy's functions under the same names, differentiable in arguments that are tensors.

Use `from retrograd.scipy import special, stats` instead of SciPy or `autograd.scipy`. The functions defined in the
modules below take tensors; all their other names are SciPy's own.
"""

from retrograd.scipy import integrate, interpolate, linalg, ndimage, optimize, signal, sparse, special, stats

__all__ = ["integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "special", "stats"]
