"""`autograd.misc`: trees of arrays as vectors, and simple optimizers over functions."""

from retrograd.hips.misc import optimizers
from retrograd.hips.misc.flatten import flatten

__all__ = ["flatten", "optimizers"]
