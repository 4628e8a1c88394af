"""SciPy under another name: the same functions, which differentiate if an argument is a tensor.

`from retrograd.scipy import special, stats` in the place of SciPy, or of `autograd.scipy`.  What stands in the modules
below takes tensors; everything else in them is SciPy's own.
"""

from retrograd.scipy import integrate, linalg, signal, special, stats

__all__ = ["integrate", "linalg", "signal", "special", "stats"]
