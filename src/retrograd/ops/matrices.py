"""Operators on matrices: transpose, flip, rotate, diagonals, triangular indices, Vandermonde."""

from retrograd.core import Aval, Tensor, op, registry
from retrograd.core import dtype as dtypes
from retrograd.foundation.lazy_imports import add_attribute
from retrograd.ops.create import Factory, arange, as_tensor, factory
from retrograd.ops.diagonal import diagonal, diagonal_backward
from retrograd.ops.family import Composite, canonical_dim, canonical_dims
from retrograd.ops.pointwise import pow
from retrograd.ops.view import cat, expand, flip, narrow, reshape, transpose, unsqueeze

# --------------------------------------------------------------------------------------------------- turned


def _check_dims(name, x, ndim):
    if x.ndim < ndim:
        raise ValueError(
            f"{name}: expected total dims >= {ndim}, but got total dims = {x.ndim}: expected at least {ndim} "
            f"dimensions, got shape {x.shape}"
        )


@op("t(Tensor x) -> Tensor")
class t(Composite):
    """A view of a matrix transposed; of tensors with fewer dimensions, a view unchanged."""

    def compose(x):
        if x.ndim > 2:
            raise ValueError(
                f"t: t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D: expected a matrix or a vector, "
                f"got shape {x.shape}; for a stack of them there is mT"
            )
        return transpose(x, 0, 1) if x.ndim == 2 else reshape(x, x.shape)

    oracle = "numpy.transpose"

    def samples(r):
        yield (r(2, 3),), {}
        yield (r(3),), {}

    def errors(r):
        yield (r(2, 3, 4),), {}, ValueError, r"t: .*expected a matrix or a vector, got shape \(2, 3, 4\)"


@op("swapaxes(Tensor x, int axis0, int axis1) -> Tensor")
class swapaxes(Composite):
    """A view with two dimensions swapped: `transpose` under NumPy's name."""

    def compose(x, *, axis0, axis1):
        return transpose(x, axis0, axis1)

    def oracle(np, x, axis0, axis1):
        return np.swapaxes(x, axis0, axis1)

    def samples(r):
        yield (r(2, 3, 4),), {"axis0": 0, "axis1": -1}


@op("flipud(Tensor x) -> Tensor")
class flipud(Composite):
    """x with the first dimension reversed; a copy."""

    def compose(x):
        _check_dims("flipud", x, 1)
        return flip(x, 0)

    def oracle(np, x):
        return x[::-1]

    def samples(r):
        yield (r(3, 2),), {}

    def errors(r):
        yield (r(),), {}, ValueError, r"flipud: .*expected at least 1 dimensions, got shape \(\)"


@op("fliplr(Tensor x) -> Tensor")
class fliplr(Composite):
    """x with the second dimension reversed; a copy."""

    def compose(x):
        _check_dims("fliplr", x, 2)
        return flip(x, 1)

    def oracle(np, x):
        return x[:, ::-1]

    def samples(r):
        yield (r(3, 2),), {}

    def errors(r):
        yield (r(2),), {}, ValueError, r"fliplr: .*expected at least 2 dimensions, got shape \(2,\)"


@op("rot90(Tensor x, int k=1, int[] dims=[0, 1]) -> Tensor")
class rot90(Composite):
    """x rotated k times by 90 degrees in the plane of two dimensions, from the first towards the second; a copy.

    >>> import retrograd as rg
    >>> rg.rot90(rg.tensor([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """

    def compose(x, *, k, dims):
        _check_dims("rot90", x, 2)
        dims = canonical_dims("rot90", dims, x.ndim)
        if len(dims) != 2:
            raise ValueError(f"rot90: expected two dimensions to turn in, got {len(dims)}")
        rotated = flip(x, ((), dims[1:], dims, dims[:1])[k % 4])
        return transpose(rotated, *dims) if k % 2 else rotated

    def oracle(np, x, k, dims):
        return np.rot90(x, k, dims)

    def samples(r):
        for k in (1, 2, -1, 4):
            yield (r(3, 2),), {"k": k}
        yield (r(2, 3, 2),), {"dims": (2, 0)}

    def errors(r):
        yield (r(2, 2),), {"dims": (1, 1)}, ValueError, "rot90: .*a dimension is named twice"
        yield (r(2),), {}, ValueError, "rot90: .*expected at least 2 dimensions"


# ------------------------------------------------------------------------------------------------- diagonals


@op("diag_embed(Tensor x, int offset=0, int dim1=-2, int dim2=-1) -> Tensor")
class diag_embed(Composite):
    """Zeros with the last dimension of x on the diagonal of two dimensions, at `offset` from the main one.

    >>> import retrograd as rg
    >>> rg.diag_embed(rg.tensor([1, 2]), offset=1).tolist()
    [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    """

    def compose(x, *, offset, dim1, dim2):
        if x.ndim == 0:
            raise ValueError("diag_embed: expected at least 1 dimension, got shape ()")
        a, b = (canonical_dim("diag_embed", d, x.ndim + 1) for d in (dim1, dim2))
        shape, size = list(x.shape[:-1]), x.shape[-1] + abs(offset)
        for d in sorted((a, b)):
            shape.insert(d, size)
        return diagonal_backward(x, shape=tuple(shape), offset=offset, dim1=a, dim2=b)

    def oracle(np, x, offset, dim1, dim2):
        n = x.shape[-1] + abs(offset)
        rows = np.zeros((*x.shape[:-1], n, n))
        for i in range(x.shape[-1]):
            rows[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
        return np.moveaxis(rows, (-2, -1), (dim1, dim2))

    def samples(r):
        yield (r(3),), {}
        yield (r(2, 3),), {"offset": -1, "dim1": 0, "dim2": 2}
        yield (r(2, 3),), {"offset": 1, "dim1": -1, "dim2": 0}

    def errors(r):
        yield (r(2, 3),), {"dim1": 1, "dim2": 1}, ValueError, "dim1 and dim2 are both 1"
        yield (r(),), {}, ValueError, "diag_embed: expected at least 1 dimension"


@op("diag(Tensor x, int diagonal=0) -> Tensor")
class diag(Composite):
    """A matrix with a vector on its diagonal; of a matrix, a copy of its diagonal.

    >>> import retrograd as rg
    >>> rg.diag(rg.tensor([1, 2])).tolist(), rg.diag(rg.tensor([[1, 2], [3, 4]])).tolist()
    ([[1, 0], [0, 2]], [1, 4])
    """

    def compose(x, *, diagonal):
        if x.ndim == 2:
            return registry["clone"](registry["diagonal"](x, diagonal))
        if x.ndim != 1:
            raise ValueError(f"diag: expected a vector or a matrix, got shape {x.shape}; see diag_embed and diagonal")
        return diag_embed(x, diagonal)

    def oracle(np, x, diagonal):
        return np.diag(x, diagonal)

    def samples(r):
        yield (r(3),), {"diagonal": -1}
        yield (r(3, 4),), {"diagonal": 1}

    def errors(r):
        yield (r(2, 2, 2),), {}, ValueError, r"diag: expected a vector or a matrix, got shape \(2, 2, 2\)"


@op("diagflat(Tensor x, int offset=0) -> Tensor")
class diagflat(Composite):
    """A matrix with all elements of x, in row-major order, on its diagonal."""

    def compose(x, *, offset):
        return diag_embed(reshape(x, (-1,)), offset)

    def oracle(np, x, offset):
        return np.diagflat(x, offset)

    def samples(r):
        yield (r(2, 2),), {"offset": -1}
        yield (r(),), {}


def fill_diagonal_(x, fill_value, wrap=False) -> Tensor:
    """Write a number on the main diagonal in place, where all indices are equal; return the tensor.

    More than two dimensions must have equal sizes.  With wrap=True the diagonal of a tall matrix starts again one row
    below its end.
    """
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ValueError(f"fill_diagonal_: expected a matrix, or dimensions of equal size, got shape {x.shape}")
    rows, columns = x.shape[0], x.shape[1] + 1
    for start in range(0, max(rows, 1) if wrap and x.ndim == 2 else 1, columns):
        line = narrow(x, 0, start, min(columns, rows - start)) if start or wrap else x
        while line.ndim > 1:
            line = diagonal(line)
        line[...] = fill_value
    return x


add_attribute(Tensor, "fill_diagonal_", fill_diagonal_)


# ----------------------------------------------------------------------------------------- of vectors


def _check_sizes(name, row, col):
    if row < 0 or col < 0:
        raise ValueError(f"{name}: sizes must not be negative, got {row} and {col}")


def _triangle_aval(name, row, col, offset, dtype):
    _check_sizes(name, row, col)
    below = sum(min(max(i + offset + 1, 0), col) for i in range(row))
    return Aval((2, below), dtype or dtypes.int64)


@op("tril_indices(int row, int col, int offset=0, *, dtype? dtype=None) -> Tensor")
class _tril_indices(Factory):
    """The row and column indices of the lower triangle of a matrix, up to a diagonal: shape (2, n).

    >>> import retrograd as rg
    >>> rg.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """

    def impl(xp, *, row, col, offset, dtype):
        _check_sizes("tril_indices", row, col)
        return xp.triangle("tril_indices", row, col, offset, dtype or dtypes.int64)

    def shape(*, row, col, offset, dtype):
        return _triangle_aval("tril_indices", row, col, offset, dtype)

    def oracle(np, row, col, offset, dtype):
        return np.transpose([(i, j) for i in range(row) for j in range(col) if j - i <= offset])

    def samples(r):
        yield (), {"row": 3, "col": 4, "offset": 1}
        yield (), {"row": 3, "col": 2, "offset": -1, "dtype": "int32"}

    def errors(r):
        yield (), {"row": -1, "col": 2}, ValueError, "tril_indices: .*sizes must not be negative"


@op("triu_indices(int row, int col, int offset=0, *, dtype? dtype=None) -> Tensor")
class _triu_indices(Factory):
    """The row and column indices of the upper triangle of a matrix, from a diagonal on: shape (2, n)."""

    def impl(xp, *, row, col, offset, dtype):
        _check_sizes("triu_indices", row, col)
        return xp.triangle("triu_indices", row, col, offset, dtype or dtypes.int64)

    def shape(*, row, col, offset, dtype):
        lower = _triangle_aval("triu_indices", row, col, offset - 1, dtype)
        return Aval((2, row * col - lower.shape[1]), lower.dtype)

    def oracle(np, row, col, offset, dtype):
        return np.transpose([(i, j) for i in range(row) for j in range(col) if j - i >= offset])

    def samples(r):
        yield (), {"row": 3, "col": 4, "offset": 1}
        yield (), {"row": 3, "col": 2, "offset": -1, "dtype": "int32"}

    def errors(r):
        yield (), {"row": 2, "col": -1}, ValueError, "triu_indices: .*sizes must not be negative"


tril_indices, triu_indices = factory(_tril_indices), factory(_triu_indices)


@op("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor")
class vander(Composite):
    """The Vandermonde matrix: powers of the elements of a vector, one row each, from N - 1 (size - 1) down to 0.

    >>> import retrograd as rg
    >>> rg.vander(rg.tensor([2, 3]), 3).tolist()
    [[4, 2, 1], [9, 3, 1]]
    """

    method = False

    def compose(x, *, N, increasing):
        if x.ndim != 1:
            raise ValueError(f"vander: expected a vector, got shape {x.shape}")
        count = x.shape[0] if N is None else N
        if count < 0:
            raise ValueError(f"vander: N must not be negative, got {N}")
        if count == 0:
            return pow(unsqueeze(x, 1), arange(count - 1, -1, -1))
        column = unsqueeze(x, 1)
        factors = [registry["ones_like"](column), expand(column, (x.shape[0], count - 1))]
        powers = registry["cumprod"](cat(factors, 1), 1)  # as in PyTorch; powers of negative numbers take much longer
        return powers if increasing else flip(powers, 1)

    def oracle(np, x, N, increasing):
        return np.vander(x, N, increasing)

    def samples(r):
        yield (r(3),), {}
        yield (r(3) * as_tensor([1, 0, 1]),), {"N": 4, "increasing": True}

    def errors(r):
        yield (r(2, 2),), {}, ValueError, r"vander: expected a vector, got shape \(2, 2\)"
