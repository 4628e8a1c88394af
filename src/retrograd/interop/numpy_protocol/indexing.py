"""Selection of elements by conditions and indices, and writes to indices."""

import numpy as np

from retrograd.core import Tensor
from retrograd.interop.numpy_protocol.joins import concatenate
from retrograd.interop.numpy_protocol.reductions import truth
from retrograd.interop.numpy_protocol.table import (
    NUMBERS,
    O,
    axes,
    cast,
    implements,
    only_default,
    operand,
    rearrange,
    refuse,
    tensor,
    values,
)
from retrograd.ops.create import as_tensor


@implements()
def where(condition, x=None, y=None, /):
    """x if the condition holds, else y; without these, the indices where it holds."""
    mask = truth(condition)
    if x is None and y is None:
        return O.nonzero(mask, as_tuple=True)
    alone = type(x) in NUMBERS and type(y) in NUMBERS  # then NumPy determines their dtype
    return O.where(mask, tensor(x) if alone else operand(x), tensor(y) if alone else operand(y))


@implements()
def flatnonzero(a):
    """The indices of the nonzero elements in the flattened tensor."""
    return O.nonzero(O.reshape(tensor(a), (-1,)), as_tuple=True)[0]


@implements()
def select(condlist, choicelist, default=0):
    """For each element, the first choice whose condition holds."""
    chosen = operand(default)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        chosen = where(condition, choice, chosen)
    return tensor(chosen)


@implements()
def piecewise(x, condlist, funclist, *args, **kw):
    """For each element, the value of the last function whose condition holds; one more function is the default."""
    x, conditions = tensor(x), condlist if isinstance(condlist, (list, tuple)) else [condlist]
    conditions, pieces = [truth(c) for c in conditions], list(funclist)
    extra = pieces.pop() if len(pieces) == len(conditions) + 1 else 0
    out = O.zeros_like(x)
    rest = ~np.logical_or.reduce([values(c) for c in conditions])
    for mask, piece in [(tensor(rest), extra), *zip(conditions, pieces, strict=True)]:
        out[mask] = cast(tensor(piece(x[mask], *args, **kw) if callable(piece) else piece), x.dtype)
    return out


@implements()
def choose(a, choices, out=None, mode="raise"):
    """For each element, the element of the choice with that index."""
    only_default("choose", mode=(mode, "raise"))
    stacked = O.stack(list(O.broadcast_tensors([tensor(c) for c in choices])), 0)
    numbers = O.broadcast_to(tensor(a), stacked.shape[1:])
    return O.take_along_dim(stacked, O.unsqueeze(numbers, 0), 0)[0]


# -------------------------------------------------------------------------------------------------- by indices


@implements()
def take(a, indices, axis=None, out=None, mode="raise"):
    """The elements at indices along an axis, or of the flattened tensor; mode "wrap" is periodic, "clip" clamps."""
    x, ids = tensor(a), np.asarray(values(indices))
    x, axis = (O.reshape(x, (-1,)), 0) if axis is None else (x, axes(axis, x.ndim)[0])
    if ids.dtype.kind not in "iub" and ids.size:
        raise TypeError(f"np.take: indices must be integers, got {ids.dtype}")
    places = np.ravel(ids).astype(np.intp)
    if mode != "raise":
        places = {"wrap": np.mod, "clip": lambda i, n: np.clip(i, 0, n - 1)}[mode](places, x.shape[axis])
    chosen = x[(*(slice(None),) * axis, places)]
    return O.reshape(chosen, (*x.shape[:axis], *ids.shape, *x.shape[axis + 1 :]))


@implements()
def take_along_axis(arr, indices, axis=-1):
    """The elements at `indices` along the axis."""
    x, ids = tensor(arr), tensor(indices)
    if axis is None:
        return O.reshape(x, (-1,))[ids]
    (at,) = axes(axis, x.ndim)
    one = lambda y: tuple(1 if i == at else n for i, n in enumerate(y.shape))  # noqa: E731
    lead = np.broadcast_shapes(one(x), one(ids))
    both = [O.broadcast_to(y, (*lead[:at], y.shape[at], *lead[at + 1 :])) for y in (x, ids)]
    return O.take_along_dim(*both, at)


@implements()
def compress(condition, a, axis=None, out=None):
    """The slices along an axis, or the elements of the flattened tensor, for which a condition holds."""
    return take(a, np.flatnonzero(values(condition)), axis)


@implements()
def extract(condition, arr):
    """The elements for which a condition holds."""
    return compress(np.ravel(values(condition)), O.reshape(tensor(arr), (-1,)))


@implements()
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """The sum along a diagonal."""
    return O.sum(cast(O.diagonal(tensor(a), offset, axis1, axis2), dtype), -1)


@implements()
def ix_(*args):
    """Index tensors for the given sizes: rows, columns and so on."""
    return tuple(as_tensor(x) for x in np.ix_(*map(values, args)))


@implements()
def unravel_index(indices, shape, order="C"):
    """Convert flat indices to indices along each axis."""
    return tuple(as_tensor(x) for x in np.unravel_index(values(indices), shape, order))


@implements()
def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    """Convert indices along each axis to flat indices."""
    return tensor(np.ravel_multi_index(tuple(map(values, multi_index)), dims, mode, order))


@implements()
def diag_indices_from(arr):
    """The indices of the main diagonal, as arrays."""
    return np.diag_indices(arr.shape[0], arr.ndim)


@implements()
def tril_indices_from(arr, k=0):
    """The indices below a diagonal and on it, as arrays."""
    return np.tril_indices(arr.shape[-2], k, arr.shape[-1])


@implements()
def triu_indices_from(arr, k=0):
    """The indices above a diagonal and on it, as arrays."""
    return np.triu_indices(arr.shape[-2], k, arr.shape[-1])


# --------------------------------------------------------------------------------------------------- in place


def _require_tensor(name, x):
    if not isinstance(x, Tensor):
        refuse(name, f"{type(x).__name__} can't take up a tensor without losing its gradient; make it a tensor first")
    return x


@implements()
def copyto(dst, src, casting="same_kind", where=True):
    """Write into a tensor, where the mask is true."""
    x = _require_tensor("copyto", dst)
    x.copy_(src if where is True else O.where(tensor(where), tensor(src), x))


@implements()
def put(a, ind, v, mode="raise"):
    """Write to flat indices."""
    only_default("put", mode=(mode, "raise"))
    ids = np.ravel(values(ind))
    _require_tensor("put", a)[np.unravel_index(ids, a.shape)] = rearrange(np.resize, tensor(v), ids.shape)


@implements()
def place(arr, mask, vals):
    """Write values one after the other where the mask is true."""
    chosen = values(mask).astype(bool)
    _require_tensor("place", arr)[chosen] = rearrange(np.resize, tensor(vals), (int(chosen.sum()),))


@implements()
def putmask(a, /, mask, values):
    """Write values where the mask is true, each at its own index."""
    x = _require_tensor("putmask", a)
    x.copy_(O.where(truth(mask), rearrange(np.resize, tensor(values), x.shape), x))


@implements()
def put_along_axis(arr, indices, values, axis):
    """Write to the positions in `indices` along an axis."""
    x, ids = _require_tensor("put_along_axis", arr), tensor(indices)
    (at,) = axes(axis, x.ndim)
    spots = list(np.ogrid[tuple(slice(n) for n in ids.shape)])
    spots[at] = ids
    x[tuple(spots)] = tensor(values)


@implements()
def fill_diagonal(a, val, wrap=False):
    """Write to the main diagonal of a matrix."""
    only_default("fill_diagonal", wrap=(wrap, False))
    size = min(_require_tensor("fill_diagonal", a).shape)
    a[(np.arange(size),) * a.ndim] = tensor(val)


# ------------------------------------------------------------------------------------------------- functions of rows


@implements()
def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """Apply a function of vectors to each vector along an axis."""
    x = O.movedim(tensor(arr), axis, -1)
    lead = int(np.prod(x.shape[:-1], dtype=int))
    if not lead:
        raise ValueError("np.apply_along_axis: there is no vector to apply the function to")
    rows = [func1d(row, *args, **kwargs) for row in O.reshape(x, (lead, x.shape[-1]))]
    made = O.stack([tensor(row) for row in rows], 0)
    return _restore_axes(O.reshape(made, (*x.shape[:-1], *made.shape[1:])), x.ndim - 1, axis)


def _restore_axes(made, lead, axis):
    """Move the axes of the function's results to where the vector was."""
    own = made.ndim - lead
    start = axis if axis >= 0 else axis + lead + 1
    return O.movedim(made, tuple(range(lead, made.ndim)), tuple(range(start, start + own))) if own else made


@implements()
def apply_over_axes(func, a, axes):
    """Reduce along one axis after the other, each with size 1 in the result."""
    x = tensor(a)
    for axis in (axes,) if isinstance(axes, int) else axes:
        reduced = func(x, axis)
        x = reduced if reduced.ndim == x.ndim else O.unsqueeze(reduced, axis)
    return x


@implements()
def trim_zeros(filt, trim="fb", axis=None):
    """Remove leading and trailing zeros."""
    x = tensor(filt)
    only_default("trim_zeros", axis=(axis, None))
    (full_,) = np.nonzero(values(x))
    start = full_[0] if "f" in trim and len(full_) else 0
    end = full_[-1] + 1 if "b" in trim and len(full_) else x.shape[0]
    return x[int(start) : int(end)] if len(full_) else x[:0]


implements("concat")(concatenate)
