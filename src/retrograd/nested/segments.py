"""Operators along the rows of a buffer, component by component.  They see plain arrays and the structure of the rows.

Structures here are without holes.
"""

from retrograd.backend import segments
from retrograd.backend.ragged import structure_of
from retrograd.core import Aval, Definition, op, registry
from retrograd.core.dtype import int64
from retrograd.ops.batching import all_batched


class Segments(Definition):
    """Acts along dimension `row` of a buffer, on the rows of each component by themselves."""

    public = False

    @classmethod
    def batch(cls, batched, n, /, *args, structure, row):
        """The rows lie behind the examples."""
        args = all_batched(args, batched, n)
        return registry[cls.__name__](*args, structure=structure, row=row + 1)

    def samples(r):
        structure = structure_of([(2,), (0,), (3,)])[0]
        yield (r(5, 2),), {"structure": structure, "row": 0}
        yield (r(2, 5),), {"structure": structure, "row": 1}


@op("nested.segment_sum(Tensor x, *, any structure, int row) -> Tensor")
class segment_sum(Segments, linear="x", sums=True):
    """The sum of the rows of each component: along dimension `row` lie the components instead."""

    def impl(xp, x, *, structure, row):
        return segments.segment_sum(x, structure, row)

    def shape(x, *, structure, row):
        dtype = int64 if x.dtype.kind in "biu" else x.dtype
        return Aval((*x.shape[:row], len(structure), *x.shape[row + 1 :]), dtype)

    def vjp_x(g, structure, row):
        return repeat_rows(g, structure=structure, row=row)


@op("nested.repeat_rows(Tensor x, *, any structure, int row) -> Tensor")
class repeat_rows(Segments, linear="x", moves=True):
    """What belongs to a component, for each of its rows: along dimension `row` lie the rows instead of the components."""

    def impl(xp, x, *, structure, row):
        return segments.repeat_rows(x, structure, row)

    def shape(x, *, structure, row):
        return Aval((*x.shape[:row], structure.rows, *x.shape[row + 1 :]), x.dtype)

    def vjp_x(g, structure, row):
        return segment_sum(g, structure=structure, row=row)

    def samples(r):
        structure = structure_of([(2,), (0,), (3,)])[0]
        yield (r(3, 2),), {"structure": structure, "row": 0}
        yield (r(2, 3),), {"structure": structure, "row": 1}
