"""The rounding of elements to integers."""

from collections.abc import Callable

import numpy as np


def _of_all_dtypes(ufunc: np.ufunc) -> Callable:
    """Return a rounding function that leaves integers as they are; NumPy 2.0 makes floats of them."""
    if "i->i" in getattr(ufunc, "types", ()):
        return ufunc
    return lambda x: x.copy() if x.dtype.kind in "biu" else ufunc(x)


ceil, floor, trunc = map(_of_all_dtypes, (np.ceil, np.floor, np.trunc))
