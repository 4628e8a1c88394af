"""Offsets and sizes of the components as tensors: by an operator, so that traces record it."""

from retrograd.backend.offsets import row_bounds, sizes_in_full
from retrograd.backend.ragged import structure_of
from retrograd.core import Aval, Internal, op
from retrograd.core.dtype import int64
from retrograd.nested.buffer import wrap_buffer
from retrograd.nested.buffer_layout import layout_of_shape
from retrograd.ops.batching import broadcast_batch


def _sizes(x):
    layout = layout_of_shape(x.shape)
    before, after = x.shape[layout.lead + 1 : layout.ragged.start], x.shape[layout.ragged.stop :]
    return sizes_in_full(x.structure, before, after)


_QUERIES = {"offsets": lambda x: row_bounds(x.structure), "lengths": lambda x: x.structure.lengths, "sizes": _sizes}


@op("nested.offsets_of(Tensor x, *, str what) -> Tensor")
class offsets_of(Internal, differentiable=False, accepts_nested=True):
    """A copy of the "offsets" of the components, their "lengths" in rows, or their "sizes", a row each; int64."""

    def impl(xp, x, *, what):
        return _QUERIES[what](x).copy()

    def shape(x, *, what):
        layout = layout_of_shape(x.shape)
        count, ndim = len(layout.structure), x.ndim - layout.lead - 1
        return Aval({"offsets": (count + 1,), "lengths": (count,), "sizes": (count, ndim)}[what], int64)

    def batch(batched, n, x, *, what):
        return broadcast_batch(offsets_of(x, what=what), n)

    def samples(r):
        for what in _QUERIES:
            yield (wrap_buffer(r(5, 2), structure_of([(3, 2), (2, 2)])[0]),), {"what": what}
