"""`numpy.fft`, for arrays and tensors."""

import numpy.fft as _np_fft

from retrograd.numpy._mirror import mirror, names

__all__ = names(_np_fft)
__getattr__, __dir__ = mirror(_np_fft, globals())
