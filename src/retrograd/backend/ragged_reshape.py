"""Arithmetic with the sizes of ragged dimensions, and where elements lie after their components were rearranged.

A size is an int, a `RaggedSize`, or its numbers, an int64 array with one for each component.
"""

import numpy as np

from retrograd.backend.ragged import RaggedSize, Structure


def numbers(size):
    """A size as a number, or as one for each component."""
    return size.sizes if isinstance(size, RaggedSize) else size


def resolved(old, new):
    """The sizes `new`, with numbers for ragged ones, and for -1; None if components of sizes `old` do not fit.

    One size may be -1, or more of them if all but one stand where `old` has a ragged size, which they keep.
    """
    new = _kept(old, new)
    rest, whole, known = [s for s in old if isinstance(s, RaggedSize)], 1, 1
    for size in new:
        if size in rest:
            rest.remove(size)
        elif not _is_open(size):
            known = known * numbers(size)
    for size in (*rest, *[s for s in old if not isinstance(s, RaggedSize)]):
        whole = whole * numbers(size)
    opened = sum(map(_is_open, new))
    if opened > 1 or np.any(np.asarray(known) < 0):
        return None
    if not opened:
        return [numbers(s) for s in new] if np.all(whole == known) else None
    if np.any(np.asarray(known) == 0) or np.any(whole % known):
        return None
    return [whole // known if _is_open(s) else numbers(s) for s in new]


def _kept(old, new):
    """`new`, where several -1 keep the ragged sizes at their places."""
    if sum(map(_is_open, new)) < 2:
        return list(new)
    ragged = [isinstance(s, RaggedSize) for s in old] + [False] * len(new)
    return [old[i] if _is_open(s) and ragged[i] else s for i, s in enumerate(new)]


def _is_open(size):
    return isinstance(size, int) and size == -1


def matched(mine, its):
    """How many sizes from the front of each have the same product, as many as can be; only numbers count."""
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
    """Whether a size is the same for all components by construction."""
    return isinstance(size, (int, np.integer))


def structure_with(columns, structure, keep_starts=False):
    """The structure of ragged sizes, a column each; the given one, where it has just these."""
    sizes = np.empty((len(structure), len(columns)), np.int64)
    for i, column in enumerate(columns):
        sizes[:, i] = column
    if (keep_starts or structure.starts is None) and np.array_equal(sizes, structure.sizes):
        return structure
    return Structure(sizes, structure.starts if keep_starts else None)


def same_size(count, sizes):
    """The structure of so many components of the same sizes."""
    return Structure(np.full((count, len(sizes)), sizes, np.int64))


def equal_sizes(structure):
    """The sizes that all components have; None if they differ, or there is no component."""
    sizes = structure.sizes
    return sizes[0].tolist() if len(sizes) and (sizes == sizes[0]).all() else None


def part(structure, first, last):
    """The structure of the components from `first` to before `last`."""
    starts = structure.starts
    return Structure(structure.sizes[first:last], None if starts is None else starts[first:last])


def one_after_another(structures):
    """The structure of the components of several, which have as many ragged dimensions each."""
    return Structure(np.concatenate([s.sizes for s in structures]))


def repeated(structure, times):
    """The structure of components that come so many times each."""
    return Structure(np.repeat(structure.sizes, times, axis=0))


# ------------------------------------------------------------------------ where rows lie that are moved


def rearranged(structure, move):
    """Which row comes where if `move` rearranges the rows of each component, an array of the component's sizes."""
    moved = [
        move(np.arange(first, last).reshape(sizes)).ravel()
        for (first, last), sizes in zip(structure.bounds(), structure.sizes.tolist(), strict=True)
    ]
    return np.concatenate(moved) if moved else np.zeros(0, np.int64)


def transposed(structure, order):
    """Which row comes where if the ragged dimensions are put in another order."""
    return rearranged(structure, lambda rows: rows.transpose(order))


def spread(structure, wider):
    """Which row comes where if ragged sizes of 1 are expanded to those of a wider structure."""
    sizes = iter(wider.sizes.tolist())
    return rearranged(structure, lambda rows: np.broadcast_to(rows, next(sizes)))


def reversed_along(structure, columns):
    """Which row comes where if the order along ragged dimensions is reversed."""
    return rearranged(structure, lambda rows: np.flip(rows, columns))


def rolled(structure, shifts, columns):
    """Which row comes where if rows are shifted along ragged dimensions."""
    return rearranged(structure, lambda rows: np.roll(rows, shifts, columns))


def regrouped(structure, times):
    """Which row comes where if of so many buffers, one behind the other, each component comes from all in turn."""
    starts = structure.offsets[:-1, None] + structure.rows * np.arange(times)
    return runs(starts.ravel(), np.repeat(structure.lengths, times))


def runs(starts, lengths):
    """Places from each of `starts` on, as many as `lengths` says."""
    return Structure(lengths.reshape(-1, 1), starts).places()


def interleaved(structures, column):
    """The structure of components that are joined along a ragged dimension, and which row comes where.

    The rows are those of all buffers, one behind the other.
    """
    sizes = structures[0].sizes.copy()
    sizes[:, column] = sum(s.sizes[:, column] for s in structures)
    before = np.cumsum([0, *[s.rows for s in structures[:-1]]])
    if not column:  # the rows of a component stay together
        starts = np.stack([s.offsets[:-1] + n for s, n in zip(structures, before, strict=True)], axis=1)
        return Structure(sizes), runs(starts.ravel(), np.stack([s.lengths for s in structures], axis=1).ravel())
    bounds = [[(a + n, b + n) for a, b in s.bounds()] for s, n in zip(structures, before, strict=True)]
    shapes = [s.sizes.tolist() for s in structures]
    places = [
        np.concatenate([np.arange(*b).reshape(s) for b, s in zip(of, its, strict=True)], axis=column).ravel()
        for of, its in zip(zip(*bounds, strict=True), zip(*shapes, strict=True), strict=True)
    ]
    return Structure(sizes), np.concatenate(places) if places else np.zeros(0, np.int64)


def first_to_differ(a, b, but=None):
    """The number of the first component whose ragged sizes differ in a column that is not `but`; None if none does."""
    columns = [c for c in range(a.sizes.shape[1]) if c != but]
    differ = (a.sizes[:, columns] != b.sizes[:, columns]).any(axis=1)
    return int(differ.argmax()) if differ.any() else None
