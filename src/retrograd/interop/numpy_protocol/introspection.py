"""Queries about tensors: shapes, dtypes, closeness; their results are not tensors, or have no derivative."""

import numpy as np

from retrograd.core import Tensor
from retrograd.interop.numpy_protocol.table import O, axes, functions, implements, tensor, values


@implements()
def shape(a):
    """The sizes of the axes."""
    return tensor(a).shape


@implements()
def ndim(a):
    """The number of axes."""
    return tensor(a).ndim


@implements()
def size(a, axis=None):
    """The number of elements, or the size along axes."""
    x = tensor(a)
    return int(np.prod([x.shape[i] for i in axes(axis, x.ndim)], dtype=int))


def _dtype_alone(x):
    return x.dtype if isinstance(x, Tensor) else x


@implements()
def result_type(*arrays_and_dtypes):
    """The dtype of NumPy's promotion; tensors are promoted by PyTorch's."""
    return np.result_type(*map(_dtype_alone, arrays_and_dtypes))


@implements()
def common_type(*arrays):
    """The floating or complex dtype that represents all operands."""
    return np.common_type(*[np.empty(0, tensor(x).dtype) for x in arrays])


@implements()
def can_cast(from_, to, casting="safe"):
    """Whether a dtype can be cast to another."""
    return np.can_cast(_dtype_alone(from_), _dtype_alone(to), casting)


@implements()
def min_scalar_type(a, /):
    """The smallest dtype that represents the number."""
    return np.min_scalar_type(values(a))


@implements()
def iscomplexobj(x):
    """Whether the dtype is complex."""
    return tensor(x).dtype.kind == "c"


@implements()
def isrealobj(x):
    """Whether the dtype is not complex."""
    return not iscomplexobj(x)


@implements()
def iscomplex(x):
    """Whether the imaginary part is not 0, element by element."""
    x = tensor(x)
    return O.imag(x) != 0 if x.dtype.kind == "c" else O.zeros_like(x, dtype=np.dtype(bool))


@implements()
def isreal(x):
    """Whether the imaginary part is 0, element by element."""
    return O.logical_not(iscomplex(x))


@implements()
def isposinf(x, out=None):
    """Whether an element is plus infinity."""
    return tensor(x) == np.inf


@implements()
def isneginf(x, out=None):
    """Whether an element is minus infinity."""
    return tensor(x) == -np.inf


def _register_query(name, finish):
    """Return a query without derivative that calls NumPy on the values."""
    function = getattr(np, name)

    def answer(*args, **kwargs):
        return finish(function(*map(values, args), **{key: values(value) for key, value in kwargs.items()}))

    functions[name] = answer


def _identity(answer):
    return answer


for _name in (
    "allclose", "array2string", "array_equal", "array_equiv", "array_repr", "array_str", "may_share_memory", "save",
    "savetxt", "savez", "savez_compressed", "shares_memory",
):  # fmt: skip
    _register_query(_name, _identity)

for _name in ("argpartition", "digitize", "isclose", "isin", "lexsort", "nanargmax", "nanargmin", "searchsorted"):
    _register_query(_name, tensor)
