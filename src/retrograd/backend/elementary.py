"""NumPy's elementary functions with our loops in place of some of its own, for kernels that call several functions."""

import numpy as np

from retrograd.kernels import with_own_loops

exp, log, log1p = (with_own_loops(ufunc) for ufunc in (np.exp, np.log, np.log1p))
