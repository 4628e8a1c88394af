"""Arithmetic with ragged sizes, and the row permutations of rearranged components.

A size is an int, a `RaggedSize`, or an int64 array with one size for each component.
"""

import numpy as np

from retrograd.backend.ragged import RaggedSize, Structure


def numbers(size):
    """Return a size as an int, or as an array of one int for each component."""
    return size.sizes if isinstance(size, RaggedSize) else size


def resolve_sizes(old, new):
    """Return the sizes `new` with ragged sizes and -1 resolved; None if components of sizes `old` do not fit.

    One size may be -1, or more of them if all but one are in positions where `old` has a ragged size, which they keep.
    """
    new = _fill_ragged_sizes(old, new)
    rest, total, known = [s for s in old if isinstance(s, RaggedSize)], 1, 1
    for size in new:
        if size in rest:
            rest.remove(size)
        elif not _is_inferred(size):
            known = known * numbers(size)
    for size in (*rest, *[s for s in old if not isinstance(s, RaggedSize)]):
        total = total * numbers(size)
    inferred = sum(map(_is_inferred, new))
    if inferred > 1 or np.any(np.asarray(known) < 0):
        return None
    if not inferred:
        return [numbers(s) for s in new] if np.all(total == known) else None
    if np.any(np.asarray(known) == 0) or np.any(total % known):
        return None
    return [total // known if _is_inferred(s) else numbers(s) for s in new]


def _fill_ragged_sizes(old, new):
    """Return `new` with the ragged sizes of `old` in the positions of several -1."""
    if sum(map(_is_inferred, new)) < 2:
        return list(new)
    ragged = [isinstance(s, RaggedSize) for s in old] + [False] * len(new)
    return [old[i] if _is_inferred(s) and ragged[i] else s for i, s in enumerate(new)]


def _is_inferred(size):
    return isinstance(size, int) and size == -1


def match_leading_sizes(mine, its):
    """Return how many leading sizes of each have equal products, as many as possible; only numbers count."""
    best = (0, 0)
    for k, its_product in enumerate(_products(its)):
        for i, product in enumerate(_products(mine)):
            if product == its_product:
                best = max(best, (i, k))
    return best


def _products(sizes):
    product, out = 1, [1]
    for size in sizes:
        if not is_number(size):
            break
        product *= size
        out.append(product)
    return out


def is_number(size):
    """Return whether a size is the same for all components by construction."""
    return isinstance(size, (int, np.integer))


def structure_with(columns, structure, keep_starts=False):
    """Return the structure with the given ragged sizes as columns; the given structure if it has just these."""
    sizes = np.empty((len(structure), len(columns)), np.int64)
    for i, column in enumerate(columns):
        sizes[:, i] = column
    if (keep_starts or structure.starts is None) and np.array_equal(sizes, structure.sizes):
        return structure
    return Structure(sizes, structure.starts if keep_starts else None)


def same_size(count, sizes):
    """Return the structure of `count` components of equal sizes."""
    return Structure(np.full((count, len(sizes)), sizes, np.int64))


def equal_sizes(structure):
    """Return the sizes that all components share; None if they differ, or there is no component."""
    sizes = structure.sizes
    return sizes[0].tolist() if len(sizes) and (sizes == sizes[0]).all() else None


def part(structure, first, last):
    """Return the structure of the components from `first` to before `last`."""
    starts = structure.starts
    return Structure(structure.sizes[first:last], None if starts is None else starts[first:last])


def concat_structures(structures):
    """Return the concatenated structure of several, which have the same number of ragged dimensions."""
    return Structure(np.concatenate([s.sizes for s in structures]))


def repeat_components(structure, times):
    """Return the structure of components repeated the given numbers of times."""
    return Structure(np.repeat(structure.sizes, times, axis=0))


# ------------------------------------------------------------------------ permutations of rows


def rearrange_rows(structure, move):
    """Return the source row of each row if `move` rearranges an array of each component's sizes."""
    rows = [
        move(np.arange(first, last).reshape(sizes)).ravel()
        for (first, last), sizes in zip(structure.bounds(), structure.sizes.tolist(), strict=True)
    ]
    return np.concatenate(rows) if rows else np.zeros(0, np.int64)


def transpose_rows(structure, order):
    """Return the source row of each row if the ragged dimensions are permuted."""
    return rearrange_rows(structure, lambda rows: rows.transpose(order))


def expand_rows(structure, wider):
    """Return the source row of each row if ragged sizes of 1 are expanded to those of a wider structure."""
    sizes = iter(wider.sizes.tolist())
    return rearrange_rows(structure, lambda rows: np.broadcast_to(rows, next(sizes)))


def flip_rows(structure, columns):
    """Return the source row of each row if the order along ragged dimensions is reversed."""
    return rearrange_rows(structure, lambda rows: np.flip(rows, columns))


def roll_rows(structure, shifts, columns):
    """Return the source row of each row if rows are shifted cyclically along ragged dimensions."""
    return rearrange_rows(structure, lambda rows: np.roll(rows, shifts, columns))


def gather_component_rows(structure, times):
    """Return the source row of each row if each component is gathered from all of several concatenated buffers."""
    starts = structure.offsets[:-1, None] + structure.rows * np.arange(times)
    return concat_ranges(starts.ravel(), np.repeat(structure.lengths, times))


def concat_ranges(starts, lengths):
    """Return concatenated ranges of indices: lengths[i] indices from starts[i] on."""
    return Structure(lengths.reshape(-1, 1), starts).row_indices()


def concat_components(structures, column):
    """Return the structure of components joined along a ragged dimension, and the source row of each row.

    The source rows are those of all buffers, concatenated.
    """
    sizes = structures[0].sizes.copy()
    sizes[:, column] = sum(s.sizes[:, column] for s in structures)
    before = np.cumsum([0, *[s.rows for s in structures[:-1]]])
    if not column:  # the rows of a component stay together
        starts = np.stack([s.offsets[:-1] + n for s, n in zip(structures, before, strict=True)], axis=1)
        return Structure(sizes), concat_ranges(
            starts.ravel(), np.stack([s.lengths for s in structures], axis=1).ravel()
        )
    bounds = [[(a + n, b + n) for a, b in s.bounds()] for s, n in zip(structures, before, strict=True)]
    shapes = [s.sizes.tolist() for s in structures]
    rows = [
        np.concatenate([np.arange(*b).reshape(s) for b, s in zip(of, its, strict=True)], axis=column).ravel()
        for of, its in zip(zip(*bounds, strict=True), zip(*shapes, strict=True), strict=True)
    ]
    return Structure(sizes), np.concatenate(rows) if rows else np.zeros(0, np.int64)


def first_difference(a, b, ignore=None):
    """Return the first component whose ragged sizes differ in a column other than `ignore`; None if none does."""
    columns = [c for c in range(a.sizes.shape[1]) if c != ignore]
    differ = (a.sizes[:, columns] != b.sizes[:, columns]).any(axis=1)
    return int(differ.argmax()) if differ.any() else None
