"""Kernels along the rows of a ragged array's buffer, component by component.

The rows are the dimension `row` of the buffer; structures are without holes.
"""

import numpy as np

from retrograd.backend import elementary
from retrograd.backend.gather_scatter import cube, kernels_for
from retrograd.backend.ragged import Structure
from retrograd.backend.rowwise import cumsum
from retrograd.backend.sorting import linear_recurrence, running_logsumexp
from retrograd.kernels import empty
from retrograd.kernels.host_values import on_host
from retrograd.kernels.segments_reference import numbers_of_rows, reduce_segments

# ----------------------------------------------------------------------------------------------- structures


def group_rows(structure, column):
    """Return the structure of rows grouped by the first `column` ragged sizes, and that of one row per group."""
    sizes = structure.sizes
    groups = Structure(sizes[:, :column])
    each = sizes[:, column:].prod(axis=1)
    return Structure(np.repeat(each, groups.lengths)[:, None]), groups


def merge_inner_components(structure, inner):
    """Return the structure in which the inner components of each component are concatenated."""
    return Structure(np.diff(inner.offsets[structure.offsets])[:, None])


def smallest(structure, columns):
    """Return the first component with the fewest elements along these ragged dimensions; None without components."""
    return int(structure.sizes[:, columns].prod(axis=1).argmin()) if len(structure) else None


def counts(structure, less, dtype):
    """Return the divisor of sums for each component: its rows minus a correction; NaN if none is left."""
    degrees = structure.lengths - less
    return np.where(degrees > 0, degrees, np.nan).astype(dtype)


def starts(structure):
    """Return for each row the first row of its component."""
    return np.repeat(structure.offsets[:-1], structure.lengths)


def has_neighbor_row(structure, reverse):
    """Return whether a row of the same component precedes each row, or follows it with `reverse`."""
    firsts = structure.offsets[:-1][structure.lengths > 0]
    out = np.ones(structure.rows, bool)
    out[firsts - 1 if reverse else firsts] = False  # for a first row 0, index -1 is the last one
    return out


# ----------------------------------------------------------------------------------------- sums, repetition


def segment_sum(x, structure, row):
    """Return the sum of the rows of each component; 0 for one without rows."""
    if x.dtype.kind in "biu":
        return _ufunc_reduce(np.add, x, structure, row, np.int64, 0)
    return _run_kernel("segment_sum", x, structure, row)


def repeat_rows(x, structure, row):
    """Return each component's row repeated as often as the component has rows."""
    if on_host:
        return np.repeat(x, structure.lengths, axis=row)
    return np.take(x, numbers_of_rows(_offsets(structure), structure.rows), axis=row)


def _offsets(structure):
    """Return the offsets of a structure where this library's arrays are."""
    return structure.offsets if on_host else structure.offsets_for(np.ndarray, np.asarray)


def _run_kernel(name, x, structure, row, count=None):
    """Return the output of the kernel `name`: one row per component, or the given number of rows."""
    out = empty((*x.shape[:row], len(structure) if count is None else count, *x.shape[row + 1 :]), x.dtype)
    getattr(kernels_for(x.dtype), name)(cube(x, row), _offsets(structure), cube(out, row))
    return out


def _ufunc_reduce(ufunc, x, structure, row, dtype, initial):
    """Return a ufunc's reduction of the rows of each component; `initial` for one without rows."""
    out = empty((*x.shape[:row], len(structure), *x.shape[row + 1 :]), dtype)
    reduce_segments(ufunc, cube(x, row), _offsets(structure), initial, cube(out, row))
    return out


def _parts(x, structure, row):
    """Yield the index and the rows of each component."""
    for i, bounds in enumerate(structure.bounds()):
        yield i, x[_row_slice(row, slice(*bounds))]


def _row_slice(row, index):
    return (*(slice(None),) * row, index)


# --------------------------------------------------------------------------------------- reductions of any kind


_UFUNCS = {
    "amax": (np.maximum, None),
    "amin": (np.minimum, None),
    "any": (np.logical_or, False),
    "all": (np.logical_and, True),
}


def reduce_components(x, structure, row, name, kernel, dtype):
    """Return the result of the kernel of operator `name` on each component's rows; the dimension is kept."""
    if name == "amax" and x.dtype.char in "fd" and structure.lengths.all():
        return _run_kernel("segment_max", x, structure, row)
    if name in _UFUNCS and (_UFUNCS[name][1] is not None or structure.lengths.all()):
        ufunc, initial = _UFUNCS[name]
        return _ufunc_reduce(ufunc, x, structure, row, dtype, 0 if initial is None else initial)
    out = empty((*x.shape[:row], len(structure), *x.shape[row + 1 :]), dtype)
    for i, part in _parts(x, structure, row):
        out[_row_slice(row, slice(i, i + 1))] = kernel(part)
    return out


def segment_prod(x, structure, row):
    """Return the product of the rows of each component; 1 for one without rows."""
    return _ufunc_reduce(np.multiply, x, structure, row, np.int64 if x.dtype.kind in "biu" else x.dtype, 1)


def segment_scale(x, structure, row, largest):
    """Return the largest or smallest row of each component; 1 where that is 0 or infinite, or there is none."""
    if largest:
        out = _run_kernel("segment_max", x, structure, row)
    else:
        out = _ufunc_reduce(np.minimum, x, structure, row, x.dtype, 1)
    return np.where((out == 0) | np.isinf(out), np.ones((), x.dtype), out)


def segment_logsumexp(x, structure, row):
    """Return log(sum(exp(x))) over the rows of each component; -inf for one without rows."""
    top = _run_kernel("segment_max", x, structure, row)
    shift = np.where(np.isfinite(top), top, np.zeros((), x.dtype))
    powers = repeat_rows(shift, structure, row)
    elementary.exp(np.subtract(x, powers, out=powers), out=powers)
    with np.errstate(divide="ignore"):
        return elementary.log(segment_sum(powers, structure, row)) + shift


# ------------------------------------------------------------------------------------------- along the rows


def segment_softmax(x, structure, row, log):
    """Return exp(x) / sum(exp(x)) over the rows of each component, or the logarithm of that."""
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN where every number is -inf
        return _run_kernel("segment_log_softmax" if log else "segment_softmax", x, structure, row, x.shape[row])


def map_components(kernel, arrays, structure, row, dtype):
    """Return the result of a shape-preserving kernel on the rows of each component."""
    out = empty(arrays[0].shape, dtype)
    for bounds in structure.bounds():
        at = _row_slice(row, slice(*bounds))
        if bounds[0] < bounds[1]:
            out[at] = kernel(*[a[at] for a in arrays])
    return out


def segment_cumsum(x, structure, row, reverse):
    """Return the cumulative sums of the rows of each component; with `reverse`, from the end."""
    dtype = np.int64 if x.dtype.kind in "biu" else x.dtype

    def kernel(x):
        return np.flip(cumsum(np.flip(x, row), row, dtype), row) if reverse else cumsum(x, row, dtype)

    return map_components(kernel, (x,), structure, row, dtype)


def segment_recurrence(b, a, structure, row, reverse):
    """Return h[i] = b[i] + a[i] h[i - 1] along the rows of each component, or h[i + 1] with `reverse`."""

    def kernel(b, a):
        if not reverse:
            return linear_recurrence(b, a, row)
        return np.flip(linear_recurrence(np.flip(b, row), np.flip(a, row), row), row)

    return map_components(kernel, (b, a), structure, row, np.result_type(b, a))


def segment_logcumsumexp(x, structure, row):
    """Return log(cumsum(exp(x))) along the rows of each component."""
    return map_components(lambda part: running_logsumexp(part, row), (x,), structure, row, x.dtype)
