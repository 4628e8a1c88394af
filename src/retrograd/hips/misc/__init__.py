"""`autograd.misc`: flattening of trees of arrays, and simple optimizers of functions."""

from retrograd.hips.misc import optimizers
from retrograd.hips.misc.flatten import flatten

__all__ = ["flatten", "optimizers"]
