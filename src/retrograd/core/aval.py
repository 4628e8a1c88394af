"""Abstract values: what is known of an array without its numbers."""

import numpy as np


class SymbolicSize:
    """A size that is no number, since it differs between the parts of an array; it may stand in shapes."""

    __slots__ = ()

    def of_example(self, place):
        """Whether a shape that has it at this place is that of one part, without the dimension of the parts."""
        raise NotImplementedError

    def typical(self):
        """A number to reckon with, where it need not be right: about the mean over the parts."""
        raise NotImplementedError

    def made(self, make, shape):
        """An array of a shape that it is in, by a function that makes plain ones of a shape."""
        raise NotImplementedError

    def spread(self, array, shape):
        """An array broadcast to a shape that it is in."""
        raise NotImplementedError

    def differs(self, other):
        """In which part it first is another than that of another array, and what both are there."""
        raise NotImplementedError


def symbolic(shape):
    """The first size in a shape that is no number; None if there is none."""
    for size in shape:
        if isinstance(size, SymbolicSize):
            return size
    return None


def reckoned(shape):
    """A shape in numbers, for estimates: a size that is no number is a typical one."""
    return tuple([size.typical() if isinstance(size, SymbolicSize) else size for size in shape])


def differing(shape, other):
    """For an error that shows two shapes: how they differ where that does not show, in sizes that are no numbers."""
    for size, its in zip(shape, other, strict=False):
        if isinstance(size, SymbolicSize) and isinstance(its, SymbolicSize) and size != its:
            return f": {size.differs(its)}"
    return ""


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
