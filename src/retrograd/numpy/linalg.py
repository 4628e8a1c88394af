"""`numpy.linalg`, for arrays and tensors."""

import numpy.linalg as _np_linalg

from retrograd.numpy._mirror import mirror, names

__all__ = names(_np_linalg)
__getattr__, __dir__ = mirror(_np_linalg, globals())
