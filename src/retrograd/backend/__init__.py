"""Kinds of arrays: each has a namespace of functions, registered by the array's type."""

import numpy as np

from retrograd.backend import numpy as numpy_namespace
from retrograd.core import namespaces

namespaces[np.ndarray] = numpy_namespace


def indexed_shape(shape, index):
    """The shape of an array of `shape` at `index`, where tuples stand for integer arrays of that shape."""
    probe = np.broadcast_to(np.zeros((), bool), shape)
    return probe[tuple(np.zeros(i, int) if isinstance(i, tuple) else i for i in index)].shape


def as_array(data, dtype=None):
    """Numbers, nested lists or an array as a NumPy array."""
    return np.array(np.asarray(data), dtype=dtype)


def random_source(seed):
    """A NumPy generator over Philox, a function of the seed alone."""
    return np.random.Generator(np.random.Philox(seed))


def digits(array, prefix):
    """The elements as text, lines after the first indented by the width of the prefix."""
    return np.array2string(array, separator=", ", prefix=prefix) if type(array) is np.ndarray else repr(array)
