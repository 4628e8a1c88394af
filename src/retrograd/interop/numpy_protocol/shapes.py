"""Functions that return the same elements in another shape or order."""

import numpy as np

from retrograd.foundation.source_location import scipy_caller
from retrograd.interop.numpy_protocol.table import O, axes, cast, implements, only_default, rearrange, tensor, values


def _only_c(name, order):
    only_default(name, order=(order if order not in ("A", "K") else "C", "C"))


@implements()
def reshape(a, /, shape, order="C", *, copy=None):
    """The elements in another shape, in row-major order ("C") or column-major ("F"); "A" and "K" count as "C"."""
    x = tensor(a)
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if order == "F":
        return _reverse_axes(O.reshape(_reverse_axes(x), shape[::-1]))
    _only_c("reshape", order)
    return O.clone(O.reshape(x, shape)) if copy else O.reshape(x, shape)


def _reverse_axes(x):
    return O.permute(x, tuple(range(x.ndim))[::-1])


@implements()
def ravel(a, order="C"):
    """Flatten the elements."""
    return reshape(a, (-1,), order)


@implements()
def transpose(a, axes=None):
    """Reverse the axes, or permute them in the given order."""
    x = tensor(a)
    return _reverse_axes(x) if axes is None else O.permute(x, tuple(axes))


@implements()
def rollaxis(a, axis, start=0):
    """Move one axis to before another."""
    x = tensor(a)
    axis, start = axis % x.ndim, start + x.ndim if start < 0 else start
    return O.movedim(x, axis, start - 1 if axis < start else start)


@implements()
def squeeze(a, axis=None):
    """Remove axes of size 1; the given ones must have that size."""
    x = tensor(a)
    for at in () if axis is None else axes(axis, x.ndim):
        if x.shape[at] != 1:
            raise ValueError(f"np.squeeze: axis {at} has size {x.shape[at]}, not 1")
    return O.squeeze(x, axis)


@implements()
def expand_dims(a, axis):
    """Insert axes of size 1 at the given positions of the result."""
    x = tensor(a)
    axis = axis if isinstance(axis, (tuple, list)) else (axis,)
    at = axes(axis, x.ndim + len(axis))
    sizes = iter(x.shape)
    return O.reshape(x, tuple(1 if i in at else next(sizes) for i in range(x.ndim + len(at))))


def _each(function, arrays):
    made = tuple(function(tensor(x)) for x in arrays)
    return made[0] if len(made) == 1 else made


@implements()
def atleast_1d(*arys):
    """Return x with at least one axis; SciPy's optimizers get arrays."""
    # They pass these on to compiled code, which takes nothing else, and hides an error of a tensor that requires grad.
    if scipy_caller().startswith("optimize."):
        return np.atleast_1d(*map(np.asarray, arys))
    return _each(lambda x: x if x.ndim else O.reshape(x, (1,)), arys)


@implements()
def atleast_2d(*arys):
    """Return x with at least two axes, new ones in front."""
    return _each(lambda x: x if x.ndim >= 2 else O.reshape(x, (1,) * (2 - x.ndim) + x.shape), arys)


@implements()
def atleast_3d(*arys):
    """Return x with at least three axes: one after a matrix, one on each side of a vector."""

    def deepened(x):
        shape = {0: (1, 1, 1), 1: (1, *x.shape, 1), 2: (*x.shape, 1)}.get(x.ndim)
        return x if shape is None else O.reshape(x, shape)

    return _each(deepened, arys)


# --------------------------------------------------------------------------------------------- order and repetition


@implements()
def flip(m, axis=None):
    """Reverse the elements along axes (None: all)."""
    x = tensor(m)
    return O.flip(x, axes(axis, x.ndim))


@implements()
def rot90(m, k=1, axes=(0, 1)):
    """Rotate by 90 degrees k times, from the first of the axes towards the second."""
    x, (first, second) = tensor(m), axes
    turned = {0: x, 2: flip(x, tuple(axes))}
    if k % 4 in turned:
        return turned[k % 4]
    if k % 4 == 1:
        return O.transpose(flip(x, second), first, second)
    return flip(O.transpose(x, first, second), second)


@implements()
def roll(a, shift, axis=None):
    """Roll along axes; without an axis, roll the flattened elements."""
    x, shift = tensor(a), values(shift)
    if axis is None:
        return O.roll(x, int(np.sum(shift)))
    pairs = [np.ravel(pair) for pair in np.broadcast_arrays(shift, axis)]
    return O.roll(x, *[tuple(map(int, numbers)) for numbers in pairs])


@implements()
def tile(A, reps):
    """Tile with copies along each axis."""
    return O.tile(tensor(A), tuple(map(int, np.ravel(values(reps)))))


@implements()
def repeat(a, repeats, axis=None):
    """Repeat each element."""
    times = np.asarray(values(repeats))
    return O.repeat_interleave(tensor(a), tensor(times) if times.ndim else int(times), axis)


@implements()
def resize(a, new_shape):
    """Resize to another shape, repeating the elements as needed."""
    x = tensor(a)
    return rearrange(np.resize, x, new_shape) if x.numel() else O.zeros(new_shape, dtype=x.dtype)


@implements()
def delete(arr, obj, axis=None):
    """Remove the elements at the given indices."""
    return rearrange(np.delete, tensor(arr), obj, axis)


# ---------------------------------------------------------------------------------------------- dtype and copies


@implements()
def astype(x, dtype, /, *, copy=True, device=None):
    """Cast to another dtype."""
    made = cast(tensor(x), dtype)
    return O.clone(x) if made is x and copy else made
