"""Tensor creation: from parts, like others, in steps, as structured matrices."""

import numpy as np

from retrograd.core import Tensor, registry
from retrograd.interop.numpy_protocol.table import (
    O,
    as_floating,
    cast,
    implements,
    operand,
    promote_operands,
    tensor,
    values,
)
from retrograd.ops.create import as_tensor


@implements()
def array(object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, ndmax=0):
    """A tensor of numbers, arrays and tensors in nested lists, connected to the graph of these."""
    x = cast(tensor(object), dtype)
    x = O.clone(x) if x is object and copy else x
    return O.reshape(x, (1,) * (ndmin - x.ndim) + x.shape) if ndmin > x.ndim else x


@implements("asarray", "asanyarray")
def asarray(a, dtype=None, order=None, *, device=None, copy=None):
    """Return a tensor unchanged, and anything else converted by `array`."""
    return array(a, dtype, copy=bool(copy))


@implements()
def asarray_chkfinite(a, dtype=None, order=None):
    """Do the same, and check that all elements are finite."""
    x = asarray(a, dtype)
    if not np.all(np.isfinite(values(x))):
        raise ValueError("array must not contain infs or NaNs")
    return x


@implements("ascontiguousarray", "asfortranarray")
def ascontiguousarray(a, dtype=None):
    """Return a tensor with at least one axis; the memory order is ignored."""
    return array(a, dtype, copy=False, ndmin=1)


def _shape(shape):
    return tuple(map(int, np.ravel(values(shape))))


@implements("zeros", "empty")
def zeros(shape, dtype=float, order="C", *, device=None):
    """Zeros, in float64 as NumPy's."""
    return as_tensor(np.zeros(_shape(shape), dtype))


@implements()
def ones(shape, dtype=None, order="C", *, device=None):
    """Ones, in float64 as NumPy's."""
    return as_tensor(np.ones(_shape(shape), dtype))


@implements()
def full(shape, fill_value, dtype=None, order="C", *, device=None):
    """A constant tensor, whose value may be a tensor."""
    return O.clone(O.broadcast_to(cast(tensor(fill_value), dtype), _shape(shape)))


@implements()
def arange(*args, dtype=None, device=None):
    """Equally spaced values; tensors among the bounds and the step get no gradient."""
    return as_tensor(np.arange(*[x.item() if isinstance(x, Tensor) else x for x in args], dtype=dtype))


@implements()
def eye(N, M=None, k=0, dtype=float, order="C", *, device=None):
    """Ones on a diagonal."""
    return as_tensor(np.eye(N, M, k, dtype))


@implements()
def identity(n, dtype=None):
    """The unit matrix."""
    return as_tensor(np.identity(n, dtype))


@implements()
def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """A constant in the shape and dtype of another tensor."""
    x = tensor(a)
    value = cast(tensor(fill_value), x.dtype if dtype is None else dtype)
    return O.clone(O.broadcast_to(value, x.shape if shape is None else _shape(shape)))


# ----------------------------------------------------------------------------------------------------- in steps


@implements()
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    """`num` equally spaced values; both ends may be tensors, and get gradients."""
    start, stop = promote_operands(as_floating(start), as_floating(stop))
    share, parts = np.linspace(0, 1, num, endpoint=endpoint), num - 1 if endpoint else num
    ndim = max(start.ndim, stop.ndim)
    share = cast(O.reshape(tensor(share), (num,) + (1,) * ndim), start.real.dtype)
    made = cast(O.movedim(start * (1 - share) + stop * share, 0, axis), dtype)
    return (made, (stop - start) / parts if parts > 0 else np.nan) if retstep else made


@implements()
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """Powers of a base with equally spaced exponents."""
    return cast(O.pow(operand(base), linspace(start, stop, num, endpoint, axis=axis)), dtype)


@implements()
def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """Values with equal ratios between ends of one sign; complex values are on a spiral."""
    start, stop = promote_operands(as_floating(start), as_floating(stop))
    sign = O.sgn(start)
    made = O.exp(linspace(O.log(start / sign), O.log(stop / sign), num, endpoint, axis=axis))
    return cast(made * (O.unsqueeze(sign, axis) if sign.ndim else sign), dtype)


# ------------------------------------------------------------------------------------------- matrices of a pattern


@implements()
def diag(v, k=0):
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    x = tensor(v)
    if x.ndim not in (1, 2):
        raise ValueError(f"np.diag: expected a vector or a matrix, got shape {x.shape}")
    return O.diagonal(x, k) if x.ndim == 2 else diagflat(x, k)


@implements()
def diagflat(v, k=0):
    """The matrix with all elements on a diagonal."""
    x = O.reshape(tensor(v), (-1,))
    size = x.shape[0] + abs(k)
    return registry["diagonal_backward"](x, shape=(size, size), offset=k, dim1=0, dim2=1)


@implements()
def tril(m, k=0):
    """Zeros above a diagonal; a vector is first repeated as rows."""
    return O.tril(_matrix(m), k)


@implements()
def triu(m, k=0):
    """Zeros below a diagonal; a vector is first repeated as rows."""
    return O.triu(_matrix(m), k)


def _matrix(m):
    x = tensor(m)
    return O.broadcast_to(x, (x.shape[0], x.shape[0])) if x.ndim == 1 else x


@implements()
def vander(x, N=None, increasing=False):
    """The powers of each number in a row."""
    x = tensor(x)
    powers = np.arange(x.shape[0] if N is None else N)
    return O.pow(O.unsqueeze(x, -1), tensor(powers if increasing else powers[::-1].copy()))
