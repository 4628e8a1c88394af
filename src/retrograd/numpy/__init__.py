"""NumPy under another name: the same functions, arrays in and arrays out, which differentiate where a tensor comes in.

`import retrograd.numpy as np` in the place of NumPy, or of `autograd.numpy`.  NumPy's own functions take tensors too;
what they cannot do, these can: `array([t, u])`, `full(3, t)`, `r_[t, 1]`, lists of tensors wherever NumPy takes lists,
and writing into what `zeros`, `ones`, `empty` and `full` make inside of a transform such as `rg.grad`.
"""

import numpy as _np

from retrograd.numpy._mirror import names, reflected
from retrograd.numpy._mirror import submodule as _submodule

__all__ = names(_np)


def __getattr__(name: str) -> object:
    """NumPy's member of that name, looked up once."""
    member = _submodule(name) or reflected(_np, name)
    globals()[name] = member
    return member


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_np)})
