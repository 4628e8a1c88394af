"""Choose the kernel that updates several arrays in one pass over memory, or its formula."""

import numpy as np

from retrograd import kernels
from retrograd.core.device import array_devices
from retrograd.kernels import are_disjoint as are_disjoint
from retrograd.kernels import read_flat as read_flat
from retrograd.kernels import update_formulas
from retrograd.kernels import write_flat as write_flat


def update_kernel(name, arrays):
    """Return the kernel of that name if the arrays are of one kind, and share a shape and a float dtype; else None."""
    first = arrays[0]
    kind = type(first)
    if (kind is not np.ndarray and kind not in array_devices) or first.dtype.char not in "fd":
        return None
    shape, dtype = first.shape, first.dtype
    for a in arrays:
        if type(a) is not kind or a.shape != shape or a.dtype != dtype:
            return None
    return getattr(kernels, name) if kind is np.ndarray else array_devices[kind].update_kernel(name)


def update_formula(name):
    """Return the formula of the kernel of that name: a function from arrays or tensors to the new ones."""
    return getattr(update_formulas, name)
