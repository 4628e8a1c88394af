"""Methods of NumPy arrays that PyTorch's tensors lack."""

import numpy as np

from retrograd.core import Tensor, registry
from retrograd.ops.methods import method


@method
def astype(x, dtype, order="K", casting="unsafe", subok=True, copy=True) -> Tensor:
    """A copy in another dtype; with copy=False the tensor itself if it has that dtype."""
    if x.dtype == np.dtype(dtype):
        return registry["clone"](x) if copy else x
    return registry["to"](x, np.dtype(dtype))


@method
def copy(x, order="C") -> Tensor:
    """Return a copy, in the same graph."""
    return registry["clone"](x)


@method
def conjugate(x) -> Tensor:
    """The complex conjugate."""
    return registry["conj"](x)


@method
def fill(x, value) -> None:
    """Write one value everywhere."""
    x.fill_(value)
