"""NumPy's elementary functions with our loops in place of some of its own, for kernels that call several functions."""

from functools import lru_cache

import numpy as np

from retrograd import kernels

with_own_loops = lru_cache(None)(kernels.with_own_loops)  # each NumPy function has one replacement
exp, log, log1p = (with_own_loops(ufunc) for ufunc in (np.exp, np.log, np.log1p))
