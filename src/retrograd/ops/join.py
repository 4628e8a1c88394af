"""Joining, repeating and combining tensors: hstack, repeat, tile, meshgrid, ..."""

import math

from retrograd.core import Aval, Internal, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.errors import OperandDtypeError
from retrograd.ops.batch_loop import DataDependent
from retrograd.ops.create import Factory, as_tensor
from retrograd.ops.family import Composite, canonical_dim, numel, same_dtype
from retrograd.ops.gather import index_select
from retrograd.ops.index import T, getitem
from retrograd.ops.view import cat, expand, narrow, reshape, stack, unsqueeze

# --------------------------------------------------------------------------------- at least n dimensions


def _map_tensors(tensors, widen):
    """Return each tensor widened; a single one is not put into a tuple."""
    widened = tuple(map(widen, tensors))
    return widened[0] if len(widened) == 1 else widened


def _as_1d(x):
    return x if x.ndim else reshape(x, (1,))


def _as_2d(x):
    return x if x.ndim > 1 else reshape(x, (1, -1))


def _as_3d(x):
    """Return x with at least three dimensions: a vector's is the second, those of a matrix are the first two."""
    if x.ndim > 1:
        return x if x.ndim > 2 else unsqueeze(x, -1)
    return reshape(x, (1, -1, 1))


@op("atleast_1d(Tensor[] tensors=[]) -> Tensor[]")
class atleast_1d(Composite):
    """Turn tensors without dimensions into vectors; return one tensor, or a tuple of several."""

    method = False

    def compose(*tensors):
        return _map_tensors(tensors, _as_1d)

    oracle = "numpy.atleast_1d"

    def samples(r):
        yield (r(),), {}
        yield (r(), r(2, 3)), {}


@op("atleast_2d(Tensor[] tensors=[]) -> Tensor[]")
class atleast_2d(Composite):
    """Turn vectors into matrices with one row; return one tensor, or a tuple of several."""

    method = False

    def compose(*tensors):
        return _map_tensors(tensors, _as_2d)

    oracle = "numpy.atleast_2d"

    def samples(r):
        yield (r(),), {}
        yield (r(3), r(2, 3)), {}


@op("atleast_3d(Tensor[] tensors=[]) -> Tensor[]")
class atleast_3d(Composite):
    """Turn vectors into (1, n, 1) and matrices into (m, n, 1); return one tensor, or a tuple of several.

    >>> import retrograd as rg
    >>> rg.atleast_3d(rg.ones(2)).shape, rg.atleast_3d(rg.ones(2, 4)).shape
    ((1, 2, 1), (2, 4, 1))
    """

    method = False

    def compose(*tensors):
        return _map_tensors(tensors, _as_3d)

    oracle = "numpy.atleast_3d"

    def samples(r):
        yield (r(),), {}
        yield (r(3), r(2, 3), r(1, 1, 1, 1)), {}


# --------------------------------------------------------------------------------------------------- joining


@op("hstack(Tensor[] tensors) -> Tensor")
class hstack(Composite):
    """Concatenate tensors along the second dimension, or along the only one.

    >>> import retrograd as rg
    >>> rg.hstack((rg.tensor([1, 2]), rg.tensor([3]))).tolist()
    [1, 2, 3]
    """

    method = False

    def compose(*tensors):
        tensors = _check_tensors_given("hstack", list(map(_as_1d, tensors)))
        return cat(tensors, dim=min(tensors[0].ndim - 1, 1))

    def oracle(np, *tensors):
        return np.hstack(tensors)

    def samples(r):
        yield (r(2, 1), r(2, 3)), {}
        yield (r(2), r()), {}

    def errors(r):
        yield (r(2, 1), r(3, 1)), {}, ValueError, "cat: tensor 1 is"


def _check_tensors_given(name, tensors):
    if not tensors:
        raise ValueError(f"{name}: {name} expects a non-empty TensorList")
    return tensors


@op("vstack(Tensor[] tensors) -> Tensor")
class vstack(Composite, aliases="row_stack"):
    """Concatenate tensors along the first dimension; vectors are rows.

    >>> import retrograd as rg
    >>> rg.vstack((rg.tensor([1, 2]), rg.tensor([[3, 4]]))).tolist()
    [[1, 2], [3, 4]]
    """

    method = False

    def compose(*tensors):
        return cat(_check_tensors_given("vstack", list(map(_as_2d, tensors))))

    def oracle(np, *tensors):
        return np.vstack(tensors)

    def samples(r):
        yield (r(3), r(2, 3)), {}
        yield (r(), r(1)), {}


@op("dstack(Tensor[] tensors) -> Tensor")
class dstack(Composite):
    """Concatenate tensors along the third dimension, which matrices and vectors get as a last one."""

    method = False

    def compose(*tensors):
        return cat(_check_tensors_given("dstack", list(map(_as_3d, tensors))), dim=2)

    def oracle(np, *tensors):
        return np.dstack(tensors)

    def samples(r):
        yield (r(2), r(2)), {}
        yield (r(2, 3), r(2, 3, 2)), {}


@op("column_stack(Tensor[] tensors) -> Tensor")
class column_stack(Composite):
    """Concatenate tensors along the second dimension; vectors are columns."""

    method = False

    def compose(*tensors):
        columns = [t if t.ndim > 1 else reshape(t, (-1, 1)) for t in tensors]
        return cat(_check_tensors_given("column_stack", columns), dim=1)

    def oracle(np, *tensors):
        return np.hstack([t if t.ndim > 1 else np.reshape(t, (-1, 1)) for t in tensors])

    def samples(r):
        yield (r(2), r(2, 3)), {}
        yield (r(), r()), {}


@op("block_diag(Tensor[] tensors=[]) -> Tensor")
class block_diag(Composite):
    """Put matrices on the diagonal of a larger one, with zeros elsewhere; vectors are rows.

    >>> import retrograd as rg
    >>> rg.block_diag(rg.tensor([[1, 2]]), rg.tensor(3)).tolist()
    [[1, 2, 0], [0, 0, 3]]
    """

    method = False

    def compose(*tensors):
        if any(t.ndim > 2 for t in tensors):
            raise ValueError(f"block_diag: expected matrices, got shapes {', '.join(str(t.shape) for t in tensors)}")
        blocks = [atleast_2d(t) for t in tensors] or [registry["zeros"]((1, 0))]
        dtype, width, left, rows = dtypes.result_type(*blocks), sum(b.shape[1] for b in blocks), 0, []
        for block in blocks:
            n, m = block.shape
            sides = [registry["zeros"]((n, k), dtype=dtype) for k in (left, width - left - m)]
            rows.append(cat([sides[0], block, sides[1]], dim=1))
            left += m
        return cat(rows)

    def oracle(np, *tensors):
        blocks = [np.atleast_2d(t) for t in tensors]
        out = np.zeros(np.sum([t.shape for t in blocks], axis=0))
        row = column = 0
        for t in blocks:
            out[row : row + len(t), column : column + t.shape[1]] = t
            row, column = row + len(t), column + t.shape[1]
        return out

    def samples(r):
        yield (r(2, 3), r(1), r(3, 1)), {}
        yield (r(), r(2)), {}

    def errors(r):
        yield (r(1, 1, 1),), {}, ValueError, r"block_diag: expected matrices, got shapes \(1, 1, 1\)"


# ------------------------------------------------------------------------------------------------- repeating


@op("repeat(Tensor x, int... repeats) -> Tensor")
class repeat(Composite):
    """Repeat the tensor repeats[i] times along dimension i, as a copy; new dimensions are in front.

    >>> import retrograd as rg
    >>> rg.tensor([1, 2]).repeat(2, 2).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """

    def compose(x, *, repeats):
        return _repeat_dims("repeat", x, repeats)

    def oracle(np, x, repeats):
        return np.tile(x, repeats)

    def samples(r):
        yield (r(2, 3),), {"repeats": (2, 1)}
        yield (r(3),), {"repeats": (2, 2)}
        yield (r(3, 1),), {"repeats": (1, 2)}

    def errors(r):
        yield (r(2, 3),), {"repeats": (2,)}, ValueError, "repeat: .*1 sizes for 2 dimensions"
        yield (r(2),), {"repeats": (-1,)}, ValueError, "repeat: .*sizes must not be negative"


def _repeat_dims(name, x, sizes):
    lead = len(sizes) - x.ndim
    if lead < 0:
        raise ValueError(
            f"{name}: Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: "
            f"{len(sizes)} sizes for {x.ndim} dimensions"
        )
    if any(size < 0 for size in sizes):
        raise ValueError(f"{name}: sizes must not be negative, got {sizes}")
    pairs = list(zip(sizes, (1,) * lead + x.shape, strict=True))
    repeated = tuple(size * s for size, s in pairs)
    if all(1 in pair for pair in pairs):  # a view would do, but the result must be a copy
        return registry["row_major"](expand(x, repeated))
    expanded = expand(reshape(x, tuple(n for _, s in pairs for n in (1, s))), tuple(n for pair in pairs for n in pair))
    out = reshape(expanded, repeated)
    return registry["clone"](out) if out._view is not None else out  # of an expanded tensor it is a view


@op("tile(Tensor x, int... dims) -> Tensor")
class tile(Composite):
    """Repeat the tensor as `repeat` does, with 1 for each leading dimension that `dims` leaves out.

    >>> import retrograd as rg
    >>> rg.tile(rg.tensor([[1], [2]]), (2,)).tolist()
    [[1, 1], [2, 2]]
    """

    def compose(x, *, dims):
        return _repeat_dims("tile", x, (1,) * (x.ndim - len(dims)) + dims)

    def oracle(np, x, dims):
        return np.tile(x, dims)

    def samples(r):
        yield (r(2, 3),), {"dims": (2,)}
        yield (r(3),), {"dims": (2, 2)}


@op("repeat_indices(Tensor repeats, *, int? output_size=None) -> Tensor")
class repeat_indices(Internal, DataDependent, differentiable=False):
    """Return index i of a vector of integers repeats[i] times; of several rows if all have the same sum."""

    def impl(xp, repeats, *, output_size):
        _check_repeats(repeats, output_size)
        return xp.repeat_indices(repeats, output_size)

    def shape(repeats, *, output_size):
        _check_repeats(repeats, output_size)
        if output_size is not None:
            return Aval((*repeats.shape[:-1], output_size), dtypes.int64)
        raise NotImplementedError("repeat_interleave: how many there are depends on the values of repeats")

    @classmethod
    def batch(cls, batched, n, /, repeats, *, output_size):
        """Treat examples as rows if all have the given output size."""
        if output_size is None:
            return super().batch(batched, n, repeats, output_size=output_size)
        return repeat_indices(repeats, output_size=output_size)

    exempt = {
        "shape float32 integers empty vmap nested": "the size depends on the values, so there is no shape rule",
    }

    oracle = "retrograd.testing.references.join.repeat_indices"

    def samples(r):
        yield (r.ints(3, (4,)),), {}
        yield (as_tensor([[1, 0, 2], [0, 3, 0]]),), {"output_size": 3}


def _check_repeats(repeats, output_size):
    if repeats.dtype.kind not in "iu":
        raise OperandDtypeError(f"repeat_interleave: repeats must be 1-d integers, got {repeats.dtype}")
    if repeats.ndim == 0 or (repeats.ndim > 1 and output_size is None):
        raise RuntimeError(f"repeat_interleave: repeats must be 1-d integers, got {repeats.dtype} of {repeats.shape}")


@op("repeat_interleave(Tensor x, Tensor? repeats=None, int? dim=None, *, int? output_size=None) -> Tensor")
class repeat_interleave(Composite):
    """Repeat each slice along `dim` (None: each element, in row-major order) by `repeats`, one number or one per slice.

    `output_size`, if given, must be the sum of the repeats.  With repeats alone, index i is repeated repeats[i] times.

    >>> import retrograd as rg
    >>> rg.repeat_interleave(rg.tensor([[1, 2], [3, 4]]), rg.tensor([2, 1]), dim=0).tolist()
    [[1, 2], [1, 2], [3, 4]]
    """

    def compose(x, repeats, *, dim, output_size):
        if repeats is None:
            _check_repeats(x, None)
            return repeat_indices(x, output_size=output_size)
        x, at = (reshape(x, (-1,)), 0) if dim is None else (x, canonical_dim("repeat_interleave", dim, x.ndim))
        if isinstance(repeats, int) and repeats >= 0 and output_size is None:
            return _repeat_elements(x, at, repeats)
        repeats = as_tensor(repeats)
        if numel(repeats.shape) == 1:
            repeats = expand(reshape(repeats, (1,)), (x.shape[at],))
        if repeats.shape != x.shape[at : at + 1]:
            raise ValueError(
                f"repeat_interleave: repeats of shape {repeats.shape} do not fit dimension {at} of shape {x.shape}"
            )
        return index_select(x, at, repeat_indices(repeats, output_size=output_size))

    exempt = {"vmap": "without output_size the size of the result depends on the values"}

    oracle = "retrograd.testing.references.join.repeat_interleave"

    def samples(r):
        yield (r(2, 3), 2), {}
        yield (r(2, 3), r.ints(4, (3,))), {"dim": 1}
        yield (r(3, 2), as_tensor([2])), {"dim": 0, "output_size": 6}
        yield (r.ints(4, (3,)), None), {}

    def errors(r):
        yield (r(3), r.ints(3, (2,))), {"dim": 0}, ValueError, r"repeat_interleave: repeats of shape \(2,\)"
        yield (r(3), -1), {}, RuntimeError, "repeat_interleave: .*repeats must not be negative"
        yield (r(3), 2), {"output_size": 5}, RuntimeError, "output_size is 5, but repeats add up to 6"


def _repeat_elements(x, at, times):
    before, size, after = x.shape[:at], x.shape[at], x.shape[at + 1 :]
    expanded = registry["row_major"](expand(unsqueeze(x, at + 1), (*before, size, times, *after)))
    return reshape(expanded, (*before, size * times, *after))


# ---------------------------------------------------------------------------------------------- combinations


@op("meshgrid(Tensor[] tensors=[], *, str indexing='ij') -> Tensor[]")
class meshgrid(Composite):
    """Return one tensor per vector, with one dimension per vector: the i-th varies along dimension i.

    With indexing="xy" the first two dimensions are swapped.  The results are views.

    >>> import retrograd as rg
    >>> [grid.tolist() for grid in rg.meshgrid(rg.tensor([1, 2]), rg.tensor([3, 4]), indexing="ij")]
    [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
    """

    method = False

    def compose(*tensors, indexing):
        _check_vectors("meshgrid", tensors)
        if indexing not in ("ij", "xy"):
            raise ValueError(f"meshgrid: indexing must be 'ij' or 'xy', got {indexing!r}")
        order = list(range(len(tensors)))
        if indexing == "xy":
            order[:2] = order[:2][::-1]
        shape = tuple(numel(tensors[i].shape) for i in order)
        lines = [reshape(t, (-1, *(1,) * (len(order) - 1 - order.index(i)))) for i, t in enumerate(tensors)]
        return tuple(expand(line, shape) for line in lines)

    def oracle(np, *tensors, indexing):
        return np.meshgrid(*tensors, indexing=indexing)

    def samples(r):
        yield (r(2), r(3)), {}
        yield (r(2), r(), r(3)), {"indexing": "xy"}

    def errors(r):
        yield (r(2), r(2, 2)), {}, ValueError, r"meshgrid: Expected 0D or 1D tensor .* got shapes \(2,\), \(2, 2\)"


def _check_vectors(name, tensors):
    _check_tensors_given("meshgrid", tensors)
    if any(t.ndim > 1 for t in tensors):
        listed = ", ".join(str(t.shape) for t in tensors)
        raise ValueError(f"{name}: Expected 0D or 1D tensor in the tensor list but got shapes {listed}")
    same_dtype(name, tensors)


@op("cartesian_prod(Tensor[] tensors=[]) -> Tensor")
class cartesian_prod(Composite):
    """Return the Cartesian product of vectors, one row each, the last varying fastest; a single vector itself.

    >>> import retrograd as rg
    >>> rg.cartesian_prod(rg.tensor([1, 2]), rg.tensor([3, 4])).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """

    method = False

    def compose(*tensors):
        _check_vectors("cartesian_prod", tensors)
        if len(tensors) == 1:
            return tensors[0]
        return reshape(stack(meshgrid(tensors), dim=-1), (-1, len(tensors)))

    oracle = "retrograd.testing.references.join.cartesian_prod"

    def samples(r):
        yield (r(2), r(3), r(2)), {}
        yield (r(2),), {}


@op("combination_indices(*, int n, int r, bool with_replacement) -> Tensor")
class combination_indices(Factory):
    """Return the ways to choose r of n indices, in order, one per row."""

    def impl(xp, *, n, r, with_replacement):
        return xp.index_combinations(n, r, with_replacement)

    def shape(*, n, r, with_replacement):
        return Aval((math.comb(n + (r - 1) * with_replacement if r else n, r), r), dtypes.int64)

    oracle = "retrograd.testing.references.join.combination_indices"

    def samples(r):
        yield (), {"n": 4, "r": 2, "with_replacement": False}
        yield (), {"n": 3, "r": 3, "with_replacement": True}


@op("combinations(Tensor x, int r=2, bool with_replacement=False) -> Tensor")
class combinations(Composite):
    """Return all ways to choose r elements of a vector, in order, one per row; with replacement, repeats are allowed.

    >>> import retrograd as rg
    >>> rg.combinations(rg.tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """

    method = False

    def compose(x, *, r, with_replacement):
        if x.ndim != 1:
            raise ValueError(f"combinations: expected a vector, got shape {x.shape}")
        if r < 0:
            raise ValueError(f"combinations: r must not be negative, got {r}")
        if r == 0:
            return narrow(x, 0, 0, 0)
        return getitem(x, [combination_indices(n=x.shape[0], r=r, with_replacement=with_replacement)], spec=(T,))

    oracle = "retrograd.testing.references.join.combinations"

    def samples(r):
        yield (r(4),), {}
        yield (r(3),), {"r": 3, "with_replacement": True}
        yield (r(2),), {"r": 0}

    def errors(r):
        yield (r(2, 2),), {}, ValueError, r"combinations: expected a vector, got shape \(2, 2\)"
