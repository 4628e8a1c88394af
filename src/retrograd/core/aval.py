"""Abstract values: the shape and dtype of an array, without its values."""

import numpy as np


class SymbolicSize:
    """A size that is not a number because it differs between the components; it may occur in shapes."""

    __slots__ = ()

    def size_of_dim(self, dim):
        """Return the result of `x.size(dim)` for a tensor whose shape has this size there."""
        raise NotImplementedError

    def is_example_dim(self, dim):
        """Return whether a shape with this size at index `dim` is that of one component."""
        raise NotImplementedError

    def typical(self):
        """Return an approximate number for estimates: about the mean over the components."""
        raise NotImplementedError

    def make_array(self, make, shape):
        """Return an array of a shape with this size, using `make`, which returns a plain array of a shape."""
        raise NotImplementedError

    def broadcast(self, array, shape):
        """Return an array broadcast to a shape with this size."""
        raise NotImplementedError

    def differs(self, other):
        """Return the first component where this size differs from that of another array, and both sizes there."""
        raise NotImplementedError


def symbolic(shape):
    """Return the first symbolic size in a shape; None if there is none."""
    for size in shape:
        if type(size) is not int and isinstance(size, SymbolicSize):
            return size
    return None


def describe_difference(shape, other):
    """Return how two shapes differ in symbolic sizes, for an error that shows them; "" if they do not."""
    for size, its in zip(shape, other, strict=False):
        if isinstance(size, SymbolicSize) and isinstance(its, SymbolicSize) and size != its:
            return f": {size.differs(its)}"
    return ""


class Aval:
    """Shape and dtype: the argument and result of shape rules.

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

    def __reduce__(self):  # extension types have no default one
        return Aval, (self.shape, self.dtype)

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)}"


def make_aval(shape, dtype):
    """Return the aval of a shape and a NumPy dtype, which needs no conversion."""
    new: Aval = Aval.__new__(Aval)
    new.shape = shape if type(shape) is tuple else tuple(shape)
    new.dtype = dtype
    return new
