"""`scipy.sparse`: `linalg` takes sparse tensors; the rest is SciPy's own."""

from retrograd.scipy._mirror import fallback_members
from retrograd.scipy.sparse import linalg

__all__ = ["linalg"]

__getattr__, __dir__ = fallback_members("scipy.sparse")
