"""The positions of the entries of sparse arrays: coordinates (COO), or compressed rows or columns.

No operator changes a pattern, but a user may write to the memory of its indices, through a tensor that shares it.
"""

import math

import numpy as np

COMPRESSED = {  # layout -> (index of the compressed dimension among rows and columns, whether entries are blocks)
    "sparse_csr": (0, False),
    "sparse_csc": (1, False),
    "sparse_bsr": (0, True),
    "sparse_bsc": (1, True),
}


class Pattern:
    """Base of patterns: caches what is computed from the indices, until they are written to.

    `versions` has the version counters of the tensors that share the memory of index arrays, by attribute names.
    """

    def __init__(self, versions=None):
        self.versions = {} if versions is None else versions
        self._seen = []
        self._cache = {}

    @property
    def cache(self):
        """A dict of values that were computed from the present indices."""
        counts = [version.count for version in self.versions.values()]
        if counts != self._seen:
            self._cache, self._seen = {}, counts
        return self._cache

    def _once(self, what, compute):
        cache = self.cache
        if what not in cache:
            cache[what] = compute()
        return cache[what]


class Coordinates(Pattern):
    """The coordinates of entries: `indices` has a row for each sparse dimension and a column for each entry.

    `sizes` are those of the sparse dimensions. `coalesced` is whether the tensor says that its entries are sorted and
    unique; `None` in a constructor means no. A buffer of values has shape (entries, *dense sizes). `inner` is the
    pattern that a batch of equal patterns repeats along the first dimension, or None.
    """

    layout = "sparse_coo"
    lead = 1  # the dimensions of the values that belong to the pattern

    def __init__(self, indices, sizes, coalesced=False, inner=None, versions=None):
        super().__init__(versions)
        self.indices = indices
        self.sizes = tuple(sizes)
        self.coalesced = bool(coalesced)
        self.inner = inner

    @property
    def nnz(self):
        """The number of entries."""
        return self.indices.shape[1]

    @property
    def by_rows(self):
        """The entries of a matrix by rows: (order of the entries or None, columns, where each row begins)."""
        return self._once("by rows", self._order_by_rows)

    def _order_by_rows(self):
        rows, columns = self.indices
        order = None if (np.diff(rows) >= 0).all() else np.argsort(rows, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self.sizes[0]))])
        return order, columns if order is None else columns[order], starts

    @property
    def arrays(self):
        """The index arrays by name, in the order of the constructor."""
        return {"indices": self.indices}

    def shape(self, values_shape):
        """Return the shape of the sparse array over values of this shape."""
        return (*self.sizes, *values_shape[1:])

    def values_shape(self, dense):
        """Return the shape of the values for these sizes of the dense dimensions."""
        return (self.nnz, *dense)

    def coordinates(self):
        """Return the pattern as coordinates: itself."""
        return self

    @property
    def flat(self):
        """The row-major index of each entry among the elements of the sparse dimensions."""
        return self._once("flat", self._flatten)

    def _flatten(self):
        flat = np.zeros(self.nnz, np.int64)
        for row, size in zip(self.indices, self.sizes, strict=True):
            flat = flat * size + row
        return flat

    @property
    def groups(self):
        """The pattern with unique, sorted entries; the number there of each entry here; the first of each there."""
        return self._once("groups", self._group)

    def _group(self):
        _, first, inverse = np.unique(self.flat, return_index=True, return_inverse=True)
        unique = Coordinates(self.indices[:, first], self.sizes, coalesced=True)
        unique.cache["groups"] = unique, np.arange(unique.nnz), np.arange(unique.nnz)
        return unique, inverse.reshape(-1), first

    @property
    def in_order(self):
        """Whether the entries are sorted and unique, whatever the tensor says."""
        return self.coalesced or bool((np.diff(self.flat) > 0).all())

    def repeated(self, count):
        """Return the pattern of that many equal patterns along a new first dimension."""
        numbers = np.repeat(np.arange(count), self.nnz)
        indices = np.concatenate([numbers[None], np.tile(self.indices, count)])
        return Coordinates(indices, (count, *self.sizes), self.coalesced, inner=self)

    def transposed(self, order):
        """Return the pattern with its dimensions in another order."""
        order = list(order)
        if order == [1, 0]:
            return self._once("transposed", self._matrix_transpose)
        kept = self.coalesced and order == sorted(order)
        return Coordinates(self.indices[order], [self.sizes[d] for d in order], kept)

    def _matrix_transpose(self):
        """Return the transposed pattern of a matrix, kept with its order by rows: each backward pass asks for it."""
        transposed = Coordinates(self.indices[::-1].copy(), self.sizes[::-1])
        transposed.cache["transposed"] = self.marked(False)
        return transposed

    def marked(self, coalesced):
        """Return the same pattern, marked as coalesced or not."""
        if self.coalesced == coalesced:
            return self
        return Coordinates(self.indices, self.sizes, coalesced, versions=self.versions)

    def copy(self):
        """Return a copy in new memory."""
        return Coordinates(self.indices.copy(), self.sizes, self.coalesced)

    def __eq__(self, other):
        if self is other:
            return True
        return (
            isinstance(other, Coordinates)
            and self.sizes == other.sizes
            and self.coalesced == other.coalesced
            and np.array_equal(self.indices, other.indices)
        )

    def __hash__(self):
        return hash((self.sizes, self.nnz))

    def __repr__(self):
        return f"Coordinates({self.indices.tolist()}, {self.sizes})"

    def __reduce__(self):
        return Coordinates, (self.indices, self.sizes, self.coalesced)


class Compressed(Pattern):
    """Entries by rows or by columns, which `layout` says, singly or in blocks.

    `compressed` (*batch, rows + 1) holds where the entries of each row begin and `plain` (*batch, entries) the column
    of each; or columns and rows. `sizes` are those of the batch, the rows and the columns. `block` is the shape of a
    block, () for single entries. A buffer of values has shape (*batch, entries, *block, *dense sizes).
    """

    def __init__(self, layout, compressed, plain, sizes, block=(), inner=None, versions=None):
        super().__init__(versions)
        self.layout = layout
        self.compressed = compressed
        self.plain = plain
        self.sizes = tuple(sizes)
        self.block = tuple(block)
        self.inner = inner

    @property
    def axis(self):
        """0 if rows are compressed, 1 if columns are."""
        return COMPRESSED[self.layout][0]

    @property
    def batch(self):
        """The sizes of the batch dimensions."""
        return self.sizes[:-2]

    @property
    def nnz(self):
        """The number of entries or blocks, of one matrix of a batch."""
        return self.plain.shape[-1]

    @property
    def lead(self):
        """The number of dimensions of the values that belong to the pattern."""
        return self.plain.ndim + len(self.block)

    @property
    def arrays(self):
        """The index arrays by name, in the order of the constructor."""
        first, second = ("crow_indices", "col_indices") if self.axis == 0 else ("ccol_indices", "row_indices")
        return {first: self.compressed, second: self.plain}

    def shape(self, values_shape):
        """Return the shape of the sparse array over values of this shape."""
        return (*self.sizes, *values_shape[self.lead :])

    def values_shape(self, dense):
        """Return the shape of the values for these sizes of the dense dimensions."""
        return (*self.plain.shape, *self.block, *dense)

    def coordinates(self):
        """Return the coordinates of all elements of the values, in the order of the memory."""
        return self._once("coordinates", self._find_coordinates)

    def _find_coordinates(self):
        batch = math.prod(self.batch)
        pointers = self.compressed.reshape(batch, -1).astype(np.int64)
        counts = np.diff(pointers, axis=1)
        outer = np.concatenate([np.repeat(np.arange(counts.shape[1]), row) for row in counts] or [np.empty(0, int)])
        inner = self.plain.reshape(-1).astype(np.int64)
        parts = [outer, inner] if self.axis == 0 else [inner, outer]
        parts += [np.repeat(np.arange(batch), self.nnz)]
        if self.block:
            within = np.indices(self.block).reshape(2, -1)
            parts = [p.repeat(within.shape[1]) for p in parts]
            for d, size in enumerate(self.block):
                parts[d] = parts[d] * size + np.tile(within[d], inner.size)
        numbers = np.unravel_index(parts[2], self.batch) if self.batch else ()
        found = Coordinates(np.stack([*numbers, *parts[:2]]), self.sizes)
        return found.marked(self.axis == 0 and found.in_order)

    def repeated(self, count):
        """Return the pattern of that many equal patterns along a new first dimension."""
        first, second = (np.repeat(a[None], count, axis=0) for a in (self.compressed, self.plain))
        return Compressed(self.layout, first, second, (count, *self.sizes), self.block, inner=self)

    def select_batch(self, dim, index):
        """Return the pattern of one index of a batch dimension."""
        first, second = (np.take(array, index, axis=dim) for array in (self.compressed, self.plain))
        return Compressed(self.layout, first, second, (*self.sizes[:dim], *self.sizes[dim + 1 :]), self.block)

    def transpose(self):
        """Return the pattern of the transposed matrices: rows become columns in the other layout."""
        other = self.layout[:-1] + ("c" if self.axis == 0 else "r")
        sizes = (*self.batch, self.sizes[-1], self.sizes[-2])
        return Compressed(other, self.compressed, self.plain, sizes, self.block[::-1], versions=self.versions)

    def copy(self):
        """Return a copy in new memory."""
        return Compressed(self.layout, self.compressed.copy(), self.plain.copy(), self.sizes, self.block)

    def __eq__(self, other):
        if self is other:
            return True
        return (
            isinstance(other, Compressed)
            and (self.layout, self.sizes, self.block) == (other.layout, other.sizes, other.block)
            and np.array_equal(self.compressed, other.compressed)
            and np.array_equal(self.plain, other.plain)
        )

    def __hash__(self):
        return hash((self.layout, self.sizes, self.nnz))

    def __repr__(self):
        return f"Compressed({self.layout!r}, {self.compressed.tolist()}, {self.plain.tolist()}, {self.sizes})"

    def __reduce__(self):
        return Compressed, (self.layout, self.compressed, self.plain, self.sizes, self.block)


# ------------------------------------------------------------------------------------------------ conversions


def compress(layout, unique, block=()):
    """Return the compressed pattern of unique coordinates, and the position in its flat values of each entry."""
    axis, blocked = COMPRESSED[layout]
    rows, columns = unique.sizes[-2:]
    first, second = unique.indices[-2], unique.indices[-1]
    if not blocked:
        order = np.lexsort((second, first) if axis == 0 else (first, second))
        pointers = _pointers((first, second)[axis][order], unique.sizes[-2:][axis])
        positions = np.empty(unique.nnz, np.int64)
        positions[order] = np.arange(unique.nnz)
        return Compressed(layout, pointers, (second, first)[axis][order], unique.sizes), positions
    height, width = block
    outer, inner = (first // height, second // width)[:: 1 if axis == 0 else -1]
    outer_count, inner_count = (rows // height, columns // width)[:: 1 if axis == 0 else -1]
    blocks, number = np.unique(outer * inner_count + inner, return_inverse=True)
    pointers = _pointers(blocks // max(inner_count, 1), outer_count)
    positions = (number.reshape(-1) * height + first % height) * width + second % width
    return Compressed(layout, pointers, blocks % max(inner_count, 1), unique.sizes, block), positions


def _pointers(rows, count):
    """Return where the entries of each row begin, for sorted rows."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))]).astype(np.int64)


def batched(patterns):
    """Return the pattern of a batch of compressed matrices with the same number of entries; None if they differ."""
    first = patterns[0]
    if any(p.nnz != first.nnz for p in patterns):
        return None
    compressed, plain = np.stack([p.compressed for p in patterns]), np.stack([p.plain for p in patterns])
    return Compressed(first.layout, compressed, plain, (len(patterns), *first.sizes), first.block)


def nonzero(array, sparse_dim):
    """Return the coordinates of the slices with a nonzero element, along the first dimensions of an array."""
    dense = tuple(range(sparse_dim, array.ndim))
    there = (array != 0).any(axis=dense) if dense else array != 0
    if not sparse_dim:
        return Coordinates(np.zeros((0, 1), np.int64), (), coalesced=True)
    return Coordinates(np.stack(np.nonzero(there)).astype(np.int64), array.shape[:sparse_dim], coalesced=True)


def empty(layout, shape, sparse_dim, block=()):
    """Return the pattern without entries."""
    if layout == "sparse_coo":
        return Coordinates(np.zeros((sparse_dim, 0), np.int64), shape[:sparse_dim], coalesced=True)
    axis, blocked = COMPRESSED[layout]
    block = block or ((1, 1) if blocked else ())
    sizes = shape[:sparse_dim]
    *batch, rows, columns = sizes
    count = (rows, columns)[axis] // (block[axis] if block else 1)
    pointers, plain = np.zeros((*batch, count + 1), np.int64), np.zeros((*batch, 0), np.int64)
    return Compressed(layout, pointers, plain, sizes, block)


def lookup(pattern, unique):
    """Return where in sorted unique coordinates each entry of a pattern is, and whether it is there."""
    if not unique.nnz:
        return np.zeros(pattern.nnz, np.int64), np.zeros(pattern.nnz, bool)
    at = np.minimum(np.searchsorted(unique.flat, pattern.flat), unique.nnz - 1)
    return at, unique.flat[at] == pattern.flat


def union(first, second):
    """Return the unique coordinates of two patterns, and the numbers there of the entries of each."""
    joined = Coordinates(np.concatenate([first.indices, second.indices], axis=1), first.sizes)
    unique, number, _ = joined.groups
    return unique, number[: first.nnz], number[first.nnz :]


def product(first, second):
    """Return the coordinates of a matrix product, and the pairs of entries: (first's, second's, the product's)."""
    starts = _pointers(second.indices[0], second.sizes[0])  # second's entries are sorted by rows
    columns = first.indices[1]
    counts = starts[columns + 1] - starts[columns]
    left = np.repeat(np.arange(first.nnz), counts)
    right = np.arange(counts.sum()) + np.repeat(starts[columns] - (np.cumsum(counts) - counts), counts)
    pairs = np.stack([first.indices[0][left], second.indices[1][right]])
    unique, number, _ = Coordinates(pairs, (first.sizes[0], second.sizes[1])).groups
    return unique, left, right, number


def concatenate(patterns, dim):
    """Return the coordinates of sparse arrays of one rank, one after the other along a sparse dimension."""
    parts, offset = [], 0
    for pattern in patterns:
        part = pattern.indices.copy()
        part[dim] += offset
        offset += pattern.sizes[dim]
        parts.append(part)
    sizes = [*patterns[0].sizes]
    sizes[dim] = offset
    return Coordinates(np.concatenate(parts, axis=1), sizes)


def select_rows(pattern, dim, wanted):
    """Return the coordinates with the given slices along a dimension, and which entries they are."""
    order = np.argsort(pattern.indices[dim], kind="stable")
    starts = _pointers(pattern.indices[dim][order], pattern.sizes[dim])
    counts = starts[wanted + 1] - starts[wanted]
    entries = order[np.arange(counts.sum()) + np.repeat(starts[wanted] - (np.cumsum(counts) - counts), counts)]
    indices = pattern.indices[:, entries].copy()
    indices[dim] = np.repeat(np.arange(len(wanted)), counts)
    sizes = [*pattern.sizes]
    sizes[dim] = len(wanted)
    found = Coordinates(indices, sizes)
    return found.marked(pattern.coalesced and found.in_order), entries


def slice_at(pattern, dim, index):
    """Return the coordinates without a dimension, at one index of it, and which entries they are."""
    entries = np.flatnonzero(pattern.indices[dim] == index)
    rest = [d for d in range(len(pattern.sizes)) if d != dim]
    found = Coordinates(pattern.indices[rest][:, entries], [pattern.sizes[d] for d in rest], pattern.coalesced)
    return found, entries


def window(pattern, dim, start, length):
    """Return the coordinates within a range of a dimension, and which entries they are."""
    at = pattern.indices[dim]
    entries = np.flatnonzero((at >= start) & (at < start + length))
    indices = pattern.indices[:, entries].copy()
    indices[dim] -= start
    sizes = [*pattern.sizes]
    sizes[dim] = length
    return Coordinates(indices, sizes, pattern.coalesced), entries


def unsqueeze(pattern, dim):
    """Return the coordinates with a new dimension of size 1."""
    indices = np.insert(pattern.indices, dim, 0, axis=0)
    return Coordinates(indices, (*pattern.sizes[:dim], 1, *pattern.sizes[dim:]), pattern.coalesced)


def without(pattern, dims, keepdim):
    """Return the unique coordinates after a sum over some dimensions, and the number there of each entry."""
    rest = [d for d in range(len(pattern.sizes)) if d not in dims]
    indices, sizes = pattern.indices[rest], [pattern.sizes[d] for d in rest]
    if keepdim:
        indices = np.where(np.isin(np.arange(len(pattern.sizes)), dims)[:, None], 0, pattern.indices)
        sizes = [1 if d in dims else s for d, s in enumerate(pattern.sizes)]
    unique, number, _ = Coordinates(indices, sizes).groups
    return unique, number


def fibers(pattern, dim):
    """Return the number of the line along a dimension on which each entry is, and how many lines there are."""
    rest = [d for d in range(len(pattern.sizes)) if d != dim]
    lines, number = np.unique(
        Coordinates(pattern.indices[rest], [pattern.sizes[d] for d in rest]).flat, return_inverse=True
    )
    return number.reshape(-1), len(lines)


def diagonals(offsets, width, shape):
    """Return the coordinates of diagonals of a matrix, and the positions of their elements among all given ones."""
    rows, columns = shape
    parts, chosen = [], []
    for number, offset in enumerate(offsets):
        j = np.arange(max(offset, 0), min(width, columns, rows + offset))
        parts.append(np.stack([j - offset, j]))
        chosen.append(number * width + j)
    empty_indices = np.zeros((2, 0), np.int64)
    return Coordinates(np.concatenate([empty_indices, *parts], axis=1), shape), np.concatenate(
        [np.zeros(0, np.int64), *chosen]
    )


def join(patterns):
    """Return the coordinates of several sparse arrays of one shape, one after the other."""
    return Coordinates(np.concatenate([p.indices for p in patterns], axis=1), patterns[0].sizes)


def checked_rows(name, wanted, size):
    """Return indices of slices as int64; raise IndexError for one out of bounds."""
    if wanted.dtype.kind not in "iu" and wanted.size:
        raise TypeError(f"{name}: expected integers, got {wanted.dtype}")
    for index in wanted[(wanted < 0) | (wanted >= size)][:1]:
        raise IndexError(f"{name}: index {index} is out of bounds for a dimension with size {size}")
    return wanted.astype(np.int64)


def subset(pattern, chosen):
    """Return the coordinates of the entries that a mask chooses, and their numbers."""
    return Coordinates(pattern.indices[:, chosen], pattern.sizes, pattern.coalesced), np.flatnonzero(chosen)


def block_diagonal(pattern, count):
    """Return the coordinates of a matrix with copies of a matrix along its diagonal."""
    shifts = np.repeat(np.arange(count), pattern.nnz) * np.array(pattern.sizes)[:, None]
    return Coordinates(np.tile(pattern.indices, count) + shifts, [count * s for s in pattern.sizes], pattern.coalesced)


def full(rows, columns):
    """Return the coordinates of all elements in some rows of a matrix; an entry for each row and column."""
    n = columns
    return np.stack([np.repeat(rows, n), np.tile(np.arange(n), len(rows))])


def all_positions(shape):
    """Return the coordinates of all elements of an array."""
    return Coordinates(np.indices(shape).reshape(len(shape), -1), shape, coalesced=True)
