"""NumPy under another name: the same functions, which differentiate if an argument is a tensor.

`import retrograd.numpy as np` in the place of NumPy, or of `autograd.numpy`.  NumPy's own functions take tensors too;
what they cannot do, these can: `array([t, u])`, `full(3, t)`, `r_[t, 1]`, lists of tensors wherever NumPy takes lists,
and writing into what `zeros`, `ones`, `empty` and `full` make inside of a transform such as `rg.grad`.
"""

import numpy as _np

from retrograd.numpy._mirror import mirror, names

__all__ = names(_np)
__getattr__, __dir__ = mirror(_np, globals())
