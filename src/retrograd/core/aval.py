"""Abstract values: what is known of an array without its numbers."""

import numpy as np


class SymbolicSize:
    """A size that is no number, since it differs between the parts of an array; it may stand in shapes."""

    __slots__ = ()


class Aval:
    """Shape and dtype: what a shape rule maps to what.

    >>> Aval((2, 3), "float32")
    float32[2, 3]
    >>> Aval((2, 3), "float32").ndim
    2
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape, dtype):
        self.shape = shape if type(shape) is tuple else tuple(shape)
        self.dtype = dtype if isinstance(dtype, np.dtype) else np.dtype(dtype)

    @property
    def ndim(self):
        """Number of dimensions."""
        return len(self.shape)

    def __eq__(self, other):
        return isinstance(other, Aval) and self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self):
        return hash((self.shape, self.dtype))

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)}"
