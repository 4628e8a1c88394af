"""Check user-given offsets and lengths of ragged arrays, before any memory is read."""

import numpy as np

from retrograd.backend.ragged import Structure


def structure_of_offsets(name, offsets, lengths, rows):
    """Return the structure of components in a buffer of `rows` rows; errors name the calling function.

    `offsets` has one entry more than there are components: where each begins, and where the last one ends.  `lengths`
    has the number of rows of each; with both, rows may be in no component or in several.  Either may be None.
    Errors name the first bad entry.
    """
    if lengths is not None:
        lengths = _integers(name, "lengths", lengths)
    if offsets is None:
        return _from_lengths(name, lengths, rows)
    offsets = _integers(name, "offsets", offsets)
    if not len(offsets):
        raise ValueError(f"{name}: offsets must have one entry more than there are components, got none")
    if lengths is None:
        return _from_offsets(name, offsets, rows)
    if len(lengths) != len(offsets) - 1:
        raise ValueError(
            f"{name}: offsets must have one entry more than lengths, got {len(offsets)} offsets and {len(lengths)} "
            f"lengths"
        )
    return structure_of_starts(name, offsets[:-1], lengths, rows)


def structure_of_starts(name, starts, lengths, rows):
    """Return the structure of components at arbitrary offsets in a buffer of `rows` rows."""
    _check(name, "lengths", lengths < 0, lengths, "is negative")
    _check(name, "offsets", (starts < 0) | (starts > rows), starts, f"is outside the {rows} rows of values")
    beyond = lengths > rows - starts
    if beyond.any():
        first = int(np.argmax(beyond))
        raise ValueError(
            f"{name}: component {first} has length {lengths[first]} from row {starts[first]} on, but values has {rows} "
            f"rows"
        )
    structure = Structure(lengths.reshape(-1, 1))
    if structure.rows == rows and np.array_equal(starts, structure.offsets[:-1]):
        return structure
    return Structure(structure.sizes, starts)


def _from_offsets(name, offsets, rows):
    """Return the structure for offsets without lengths, which must cover all rows."""
    if offsets[0] != 0:
        raise ValueError(f"{name}: offsets must begin with 0, got {offsets[0]}; give lengths to leave rows out")
    falls = offsets[1:] < offsets[:-1]
    if falls.any():
        i = int(np.argmax(falls))
        raise ValueError(
            f"{name}: offsets must not decrease, got {offsets[i]} at index {i} and {offsets[i + 1]} after it"
        )
    if offsets[-1] != rows:
        raise ValueError(
            f"{name}: offsets end at {offsets[-1]}, but values has {rows} rows; give lengths to leave rows out"
        )
    return Structure(np.diff(offsets).reshape(-1, 1), offsets=offsets)


def _from_lengths(name, lengths, rows):
    """Return the structure for lengths without offsets: the components are contiguous."""
    _check(name, "lengths", lengths < 0, lengths, "is negative")
    _check(name, "lengths", lengths > rows, lengths, f"is more than the {rows} rows of values")
    structure = Structure(lengths.reshape(-1, 1))
    if structure.rows != rows:
        raise ValueError(f"{name}: lengths add up to {structure.rows}, but values has {rows} rows")
    return structure


def _integers(name, what, given):
    """Return a copy as int64, so that nobody can change the structure later."""
    array = np.asarray(given)
    if array.dtype.kind not in "iu":
        if array.size or array.ndim != 1:
            raise TypeError(f"{name}: {what} must be integers, got {array.dtype}")
    elif array.ndim != 1:
        raise ValueError(f"{name}: {what} must have one dimension, got shape {array.shape}")
    elif array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name}: {what} are too large, up to {array.max()}")
    return array.astype(np.int64)


def _check(name, what, bad, values, why):
    if bad.any():
        first = int(np.argmax(bad))
        raise ValueError(f"{name}: {what}[{first}] is {values[first]}, which {why}")


def equal_parts(count, size):
    """Return the structure of components of one size."""
    return Structure(np.full((count, 1), size, np.int64))


def sizes_in_full(structure, before, after):
    """Return the sizes of all dimensions of each component, one row each."""
    count = len(structure)
    front, back = np.tile(np.array(before, np.int64), (count, 1)), np.tile(np.array(after, np.int64), (count, 1))
    return np.concatenate([front, structure.sizes, back], axis=1)


def row_bounds(structure):
    """Return the first row of each component, and the end of the last one."""
    if structure.starts is None:
        return structure.offsets
    end = structure.starts[-1] + structure.lengths[-1] if len(structure) else 0
    return np.append(structure.starts, end)
