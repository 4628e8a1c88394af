"""Select rows of a ragged array's buffer by slices, indices and masks."""

import operator
from typing import NamedTuple

import numpy as np

from retrograd.backend.ragged import Ragged, Structure


class Window(NamedTuple):
    """The indices selected along one ragged dimension: per component `first`, number and step.

    A `single` index removes the dimension.
    """

    first: np.ndarray
    lengths: np.ndarray
    step: int = 1
    single: bool = False

    def is_full(self, sizes):
        """Return whether these are all indices, in their order."""
        return not self.single and self.step == 1 and np.array_equal(self.lengths, sizes)


def first_rows(structure):
    """Return the first row of each component."""
    return structure.offsets[:-1] if structure.starts is None else structure.starts


def rows_needed(structure):
    """Return how many rows a buffer must have to hold all components."""
    return structure.rows if structure.starts is None else int((structure.starts + structure.lengths).max(initial=0))


def some_components(structure, key):
    """Return the structure of the components that a slice or index array selects, over the same buffer."""
    return Structure(structure.sizes[key], first_rows(structure)[key])


def component_numbers(name, index, count, wrap):
    """Return component indices with negative ones wrapped; an IndexError names the first out of range."""
    index = np.asarray(index, np.int64)
    bad = (index >= count) | (index < (-count if wrap else 0))
    if bad.any():
        raise IndexError(f"{name}: component {index[bad].flat[0]} is named, but there are {count}")
    return np.where(index < 0, index + count, index)


def rows_of_component(name, structure, number):
    """Return the first row of a component, its number of rows, and its sizes."""
    number = int(component_numbers(name, number, len(structure), True))
    return int(first_rows(structure)[number]), int(structure.lengths[number]), structure.sizes[number].tolist()


# -------------------------------------------------------------------------------------------------- windows


def window(name, structure, column, key):
    """Return the window that a slice or an integer selects along a ragged dimension."""
    sizes = structure.sizes[:, column]
    if isinstance(key, slice):
        return _slice_window(sizes, key)
    _check_sizes(name, sizes, (key >= sizes) | (key < -sizes), f"index {key}")
    return Window(key + sizes * (key < 0), np.ones_like(sizes), 1, True)


def _slice_window(sizes, key):
    """Return slice.indices() for all sizes at once."""
    step = 1 if key.step is None else operator.index(key.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, sizes) if step > 0 else (-1, sizes - 1)
    first = _bound(key.start, sizes, low, high, 0 if step > 0 else sizes - 1)
    last = _bound(key.stop, sizes, low, high, sizes if step > 0 else -1)
    count = np.maximum((last - first + step - (1 if step > 0 else -1)) // step, 0)
    return Window(first, count, step)


def _bound(end, sizes, low, high, default):
    """Return one end of a slice, with negative values wrapped and clamped to the ends."""
    if end is None:
        return np.broadcast_to(default, sizes.shape)
    end = operator.index(end)
    return np.clip(end + sizes * (end < 0), low, high)


def narrow_window(name, structure, column, start, length):
    """Return the window of `length` indices from `start` on, ints or one per component; IndexError if out of range."""
    sizes = structure.sizes[:, column]
    start, length = (_one_per_component(name, n, len(sizes)) for n in (start, length))
    first = start + sizes * (start < 0)
    bad = (first < 0) | (length < 0) | (first + length > sizes)
    if bad.any():
        i = int(np.argmax(bad))
        raise IndexError(
            f"{name}: indices {start[i]} to {start[i] + length[i]} of component {i}, which has {sizes[i]} along this "
            f"dimension"
        )
    return Window(first, length)


def _one_per_component(name, numbers, count):
    """Return one value per component, from that or from a single one."""
    numbers = np.asarray(numbers)
    if numbers.dtype.kind not in "iu":
        if numbers.size:
            raise TypeError(f"{name}: start and length must be integers, got {numbers.dtype}")
        numbers = numbers.astype(np.int64)
    if numbers.shape not in ((), (count,)):
        raise ValueError(
            f"{name}: start and length must be numbers, or have one for each of {count} components, got shape "
            f"{numbers.shape}"
        )
    return np.broadcast_to(numbers, (count,)).astype(np.int64)


def _check_sizes(name, sizes, bad, what):
    if bad.any():
        first = int(np.argmax(bad))
        raise IndexError(
            f"{name}: {what} is out of range for component {first}, which has {sizes[first]} along this dimension"
        )


def apply_windows(structure, windows):
    """Return the components restricted to windows: one per ragged dimension, None for a new dimension.

    If the rows of each component remain contiguous and a ragged dimension remains, the structure has holes and uses the
    same buffer; otherwise it has no holes, and the indices of its rows are returned too.
    """
    used = [w for w in windows if w is not None]
    ones = np.ones(len(structure), np.int64)
    counts = [ones if w is None else w.lengths for w in windows if w is None or not w.single]
    sizes = np.stack(counts, axis=1) if counts else np.zeros((len(structure), 0), np.int64)
    if not counts or not _is_contiguous(structure, used):
        return Structure(sizes), _row_indices(structure, used)
    if all(w.is_full(structure.sizes[:, c]) for c, w in enumerate(used)):
        return Structure(sizes, structure.starts), None
    offset = sum(w.first * s for w, s in zip(used, _strides(structure), strict=True))
    return Structure(sizes, first_rows(structure) + offset), None


def _is_contiguous(structure, windows):
    """Return whether selected rows are contiguous: single indices first, then one range, then full dimensions."""
    rest = [(w, c) for c, w in enumerate(windows) if not w.single]
    if [c for _, c in rest] != list(range(len(windows) - len(rest), len(windows))):
        return False
    return all(w.step == 1 for w, _ in rest[:1]) and all(w.is_full(structure.sizes[:, c]) for w, c in rest[1:])


def _strides(structure):
    """Return the stride, in rows, of each ragged dimension."""
    behind = np.ones((len(structure), 1), np.int64)
    return np.cumprod(np.concatenate([behind, structure.sizes[:, :0:-1]], axis=1), axis=1)[:, ::-1].T[
        : structure.sizes.shape[1]
    ]


def _row_indices(structure, windows):
    """Return the indices of the rows, expanded one dimension after the other."""
    of, at = np.arange(len(structure)), first_rows(structure)
    for w, stride in zip(windows, _strides(structure), strict=True):
        count = w.lengths[of]
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        of, at = np.repeat(of, count), np.repeat(at, count)
        at = at + (w.first[of] + within * w.step) * stride[of]
    return at


# -------------------------------------------------------------------------------------------------- indices


def coordinates(structure):
    """Return for each ragged dimension an array with every row's index along it; the structure has no holes."""
    of = structure.components()
    flat = np.arange(structure.rows) - structure.offsets[of]
    out = []
    for column in range(structure.sizes.shape[1])[::-1]:
        size = structure.sizes[of, column]
        out.insert(0, flat % np.maximum(size, 1))
        flat = flat // np.maximum(size, 1)
    return out


def row_indices_at(component, indices, structure, wrap):
    """Return the rows at indices along the ragged dimensions in components; all broadcast.  `wrap` allows negatives."""
    component = component_numbers("index", component, len(structure), wrap)
    row = None
    for column, index in enumerate(indices):
        size = structure.sizes[component, column]
        index = _wrap_indices(index, component, size, wrap)
        row = index if row is None else row * size + index
    return first_rows(structure)[component] + (0 if row is None else row)


def _wrap_indices(index, component, size, wrap):
    """Return indices with negative ones wrapped; an IndexError names the first out of range."""
    if index.min(initial=0) < 0:
        from_front = np.where(index < 0, index + size, index) if wrap else index
        _check_indices(from_front < 0, index, component, size)
        index = from_front
    _check_indices(index >= size, index, component, size)
    return index


def _check_indices(bad, *arrays):
    if not bad.any():
        return
    bad, *arrays = np.broadcast_arrays(bad, *arrays)
    first = int(np.argmax(bad))
    index, component, size = (a.flat[first] for a in arrays)
    raise IndexError(
        f"index: index {index} is out of range for component {component}, which has {size} along this dimension"
    )


# ---------------------------------------------------------------------------------------------------- masks


def count_by_component(structure, flat, behind, ordered):
    """Return the number of selected elements of each component, for flat indices into (*before, rows, behind).

    Also return the permutation that sorts them by component; None if they are sorted already.
    """
    of = structure.components()[flat // max(behind, 1) % max(structure.rows, 1)]
    counts = np.bincount(of, minlength=len(structure)).astype(np.int64)
    return Structure(counts.reshape(-1, 1)), None if ordered else np.argsort(of, kind="stable")


def nonzero(array):
    """Return the indices of nonzero elements, with the component index first; `lead` must be 0."""
    if not isinstance(array, Ragged):
        return np.argwhere(array)
    parts = [np.insert(nonzero(c), 0, i, axis=1) for i, c in enumerate(array.components())]
    return np.concatenate(parts) if parts else np.zeros((0, array.ndim), np.int64)
