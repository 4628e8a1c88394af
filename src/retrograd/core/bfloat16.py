"""The dtype bfloat16, in a module of its own because `import retrograd` does not need `ml_dtypes`."""

import ml_dtypes
import numpy as np

bfloat16 = np.dtype(ml_dtypes.bfloat16)
