"""NumPy's functions under the same names, differentiable in arguments that are tensors.

Use `import retrograd.numpy as np` instead of NumPy or `autograd.numpy`. NumPy's own functions take tensors too, but
only these support `array([t, u])`, `full(3, t)`, `r_[t, 1]`, lists of tensors wherever NumPy takes lists, and writing
into the results of `zeros`, `ones`, `empty` and `full` inside a transform such as `rg.grad`.
"""

import numpy as _np

from retrograd.numpy._mirror import mirror, names

__all__ = names(_np)
__getattr__, __dir__ = mirror(_np, globals())
