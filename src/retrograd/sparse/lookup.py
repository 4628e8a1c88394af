"""The lookup of rows whose gradient is sparse, for `embedding(..., sparse=True)`."""

from retrograd.backend.sparse_array import as_indices
from retrograd.backend.sparse_pattern import Coordinates
from retrograd.core import Internal, Tensor, op
from retrograd.core.tensor import unwrap_all
from retrograd.ops.batching import append_dims
from retrograd.ops.embedding import lookup, sum_rows
from retrograd.ops.pointwise import detach, ne, where
from retrograd.sparse.primitives import wrap


@op("sparse.lookup(Tensor weight, Tensor ids, *, int? padding_idx=None) -> Tensor")
class lookup_with_sparse_gradient(Internal, elements="moved", node_name="EmbeddingBackward0"):
    """`lookup` with a sparse gradient, which has an entry for each index but `padding_idx`.

    Where a transform maps over the indices, or traces them, they are no constants, and the gradient is dense.
    """

    def impl(xp, weight, ids, *, padding_idx):
        return xp.lookup(weight, ids)

    def shape(weight, ids, *, padding_idx):
        return lookup.definition.shape(weight, ids)

    def vjp_weight(g, ids, weight_aval, padding_idx):
        constant = _constant(ids)
        is_used = None if padding_idx is None else ne(ids if constant is None else constant, padding_idx)
        if constant is None:
            g = g if is_used is None else where(append_dims(is_used, g.ndim), g, 0)
            return sum_rows(g, ids, weight_aval.shape[0])
        if is_used is not None:
            g, constant = g[is_used], constant[is_used]
        return _rows_at(g, constant, weight_aval.shape[0])

    def jvp_weight(t, ids, padding_idx):
        rows = lookup(t, ids)
        return rows if padding_idx is None else where(append_dims(ne(ids, padding_idx), rows.ndim), rows, 0)

    def batch(batched, n, weight, ids, *, padding_idx):
        if not batched[0]:
            return lookup_with_sparse_gradient(weight, ids, padding_idx=padding_idx)
        rows = lookup.definition.batch(batched, n, weight, ids)
        if padding_idx is None:
            return rows
        is_used = ne(ids, padding_idx)
        return where(append_dims(is_used, rows.ndim - (not batched[1])), rows, detach(rows))

    def oracle(np, weight, ids, padding_idx):
        return weight[ids]

    def samples(r):
        yield (r(5, 3), r.ints(5, (4,))), {}


def _constant(ids):
    """Return the indices below all levels; None if one of the levels maps over them or traces them."""
    while ids.level is not None:
        if ids.tag is not None:
            return None
        ids = ids.value
    return ids


def _rows_at(rows: Tensor, ids: Tensor, size: int) -> Tensor:
    """Return the sparse tensor (size, ...) with an entry for each index: a row of `rows`, (*ids.shape, ...)."""
    at = as_indices(unwrap_all(ids)).reshape(1, -1)
    return wrap(rows.reshape((at.shape[1], *rows.shape[ids.ndim :])), Coordinates(at, (size,)))
