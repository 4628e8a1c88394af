"""Matrix products of the components of ragged arrays."""

from typing import NamedTuple

import numpy as np

from retrograd.backend.ragged import Structure
from retrograd.kernels import empty


class Part(NamedTuple):
    """The layout of the components' matrices in a buffer; leading dimensions are shared.

    The buffer of matrices (m, n) is (..., rows, n) if `ragged` is "rows"; (..., m, rows) if it is "columns";
    (..., rows) if it is "both", with two sizes for each component; (..., components, m, n) if it is "none".
    `stored_transposed`, possible only with "both", means that the matrices are stored transposed.
    """

    ragged: str
    structure: object = None
    stored_transposed: bool = False

    @property
    def core(self):
        """The number of the buffer's last dimensions that the matrices occupy."""
        return {"rows": 2, "columns": 2, "both": 1, "none": 3}[self.ragged]

    @property
    def transposed(self):
        """Return the parts for the transposed matrices: the buffer's last two dimensions, if any, are swapped."""
        if self.ragged == "both":
            return self._replace(stored_transposed=not self.stored_transposed)
        return self._replace(ragged={"rows": "columns", "columns": "rows", "none": "none"}[self.ragged])

    def sizes(self, shape):
        """Return the numbers of rows and of columns, each an int or one per component, for a buffer of this shape."""
        if self.ragged == "both":
            rows, columns = self.structure.sizes.T
            return (columns, rows) if self.stored_transposed else (rows, columns)
        lengths = None if self.structure is None else self.structure.lengths
        return lengths if self.ragged == "rows" else shape[-2], lengths if self.ragged == "columns" else shape[-1]

    @property
    def structures(self):
        """The structures of the ragged rows and columns; None for a dimension that is not ragged."""
        if self.ragged != "both":
            return tuple([self.structure if self.ragged == which else None for which in ("rows", "columns")])
        rows, columns = (Structure(self.structure.sizes[:, i : i + 1]) for i in (0, 1))
        return (columns, rows) if self.stored_transposed else (rows, columns)

    def check(self, name, shape):
        """Raise a ValueError unless a buffer of this shape has as many rows as the structure."""
        if self.structure is not None:
            rows = shape[-2] if self.ragged == "rows" else shape[-1]
            if len(shape) < self.core or rows != self.structure.rows:
                raise ValueError(f"{name}: a buffer of shape {shape} has not the {self.structure.rows} rows of {self}")

    def pieces(self, buffer):
        """Return the matrix of each component, a view of the buffer."""
        if self.ragged == "none":
            return [buffer[..., i, :, :] for i in range(buffer.shape[-3])]
        bounds = self.structure.bounds()
        if self.ragged == "rows":
            return [buffer[..., first:last, :] for first, last in bounds]
        if self.ragged == "columns":
            return [buffer[..., first:last] for first, last in bounds]
        front, sizes = buffer.shape[:-1], self.structure.sizes.tolist()
        found = [buffer[..., b:e].reshape(*front, *size) for (b, e), size in zip(bounds, sizes, strict=True)]
        return [piece.swapaxes(-1, -2) for piece in found] if self.stored_transposed else found


def pair_structures(rows, columns):
    """Return the structure of matrices with the rows of one structure and the columns of another."""
    return Structure(np.stack((rows.lengths, columns.lengths), 1))


def uniform(count, rows):
    """Return the structure of `count` components with the same number of rows each."""
    return Structure(np.full((count, 1), rows, np.int64))


class Parts(NamedTuple):
    """The layouts of two operands and of their products."""

    a: Part
    b: Part
    out: Part


def multiply_each(a, b, parts):
    """Return the buffer of the matrix products of each component of two buffers."""
    out = empty(product_shape(a.shape, b.shape, parts), a.dtype)
    with np.errstate(invalid="ignore"):  # a false alarm of OpenBLAS: see FALSE_ALARM in products.py
        for x, y, z in zip(parts.a.pieces(a), parts.b.pieces(b), parts.out.pieces(out), strict=True):
            np.matmul(x, y, out=z)
    return out


def product_shape(a, b, parts):
    """Return the shape of the products' buffer from the operands' shapes; raise ValueError if they don't fit."""
    _check_fit(a, b, parts)
    front = np.broadcast_shapes(a[: len(a) - parts.a.core], b[: len(b) - parts.b.core])
    out, rows, columns = parts.out, parts.a.sizes(a)[0], parts.b.sizes(b)[1]
    if out.ragged == "both":
        return (*front, out.structure.rows)
    if out.ragged == "rows":
        return (*front, out.structure.rows, _number(columns))
    if out.ragged == "columns":
        return (*front, _number(rows), out.structure.rows)
    return (*front, _count(a, parts), _number(rows), _number(columns))


def _number(size):
    """Return the common size of a dimension that is ragged in one operand and dense in the other."""
    return size if isinstance(size, int) else int(size[0]) if len(size) else 0


def _count(a, parts):
    """Return the number of components."""
    structure = parts.b.structure if parts.a.structure is None else parts.a.structure
    return a[-3] if structure is None else len(structure)


def _check_fit(a, b, parts):
    """Raise a ValueError that names the first component whose matrices do not fit, and their shapes."""
    parts.a.check("matmul", a)
    parts.b.check("matmul", b)
    left, right = parts.a.sizes(a), parts.b.sizes(b)
    if left[1] is right[0] or not np.any(np.not_equal(left[1], right[0])):
        return
    sizes = [np.broadcast_to(size, _count(a, parts)) for size in (*left, *right)]
    i = int(np.argmax(sizes[1] != sizes[2]))
    of = [int(size[i]) for size in sizes]
    raise ValueError(f"matmul: matrices of component {i}, of shapes {tuple(of[:2])} and {tuple(of[2:])}, do not fit")
