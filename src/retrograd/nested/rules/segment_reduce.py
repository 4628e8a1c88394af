"""Reductions along the rows of a buffer, component by component, on plain arrays with the structure of the rows.

Structures here are without holes.
"""

from functools import partial

from retrograd.backend import segments
from retrograd.backend.ragged import structure_of
from retrograd.core import Aval, Internal, call, op, registry
from retrograd.core.dtype import int64
from retrograd.ops.batching import batch_all
from retrograd.ops.family import cast_to, check_floating
from retrograd.ops.pointwise import eq, exp, isinf, isnan, logical_and, logical_or, where
from retrograd.ops.reduce import LogicalReduction, sum_dtype, truth_dtype


class Segments(Internal, in_host_memory=True):
    """Base of operators along dimension `row` of a buffer, separately for the rows of each component."""

    @classmethod
    def batch(cls, batched, n, /, *args, row, **params):
        """Batch by moving the row dimension behind the batch dimension."""
        args = tuple(batch_all(args, batched, n))
        return call(registry[cls.__name__], args, {**params, "row": row + 1})

    def samples(r):
        yield (r(5, 2),), {"structure": sample_structure(), "row": 0}
        yield (r(2, 5),), {"structure": sample_structure(), "row": 1}


def check_rows(name, x, structure, row):
    """Refuse a buffer with another number of rows than the structure."""
    if x.shape[row] != structure.rows:
        raise ValueError(f"{name}: shape {x.shape} has {x.shape[row]} rows, the structure {structure.rows}")


class SegmentReduction(Segments):
    """Reduces the rows of each component: dimension `row` then indexes the components."""

    @classmethod
    def shape(cls, x, *, structure, row, **params):
        """Return the aval of x with a row for each component."""
        check_rows(cls.__name__, x, structure, row)
        return Aval((*x.shape[:row], len(structure), *x.shape[row + 1 :]), x.dtype)


def sample_structure(*lengths):
    """Return the structure of components of these lengths, by default one of them empty."""
    return structure_of([(n,) for n in lengths or (2, 0, 3)])[0]


# ----------------------------------------------------------------------------------------- sums, repetition


@op("nested.segment_sum(Tensor x, *, any structure, int row) -> Tensor")
class segment_sum(SegmentReduction, linear="x", elements="summed", in_host_memory=False):
    """The sum of the rows of each component: dimension `row` then indexes the components."""

    def impl(xp, x, *, structure, row):
        return xp.segments.segment_sum(x, structure, row)

    def shape(x, *, structure, row):
        return Aval((*x.shape[:row], len(structure), *x.shape[row + 1 :]), sum_dtype(x, None))

    def vjp_x(g, structure, row):
        return repeat_rows(g, structure=structure, row=row)


@op("nested.repeat_rows(Tensor x, *, any structure, int row) -> Tensor")
class repeat_rows(Segments, linear="x", elements="moved", in_host_memory=False):
    """Repeats a value per component for each of its rows: the inverse change of dimension `row`."""

    def impl(xp, x, *, structure, row):
        return xp.segments.repeat_rows(x, structure, row)

    def shape(x, *, structure, row):
        return Aval((*x.shape[:row], structure.rows, *x.shape[row + 1 :]), x.dtype)

    def vjp_x(g, structure, row):
        return segment_sum(g, structure=structure, row=row)

    def samples(r):
        yield (r(3, 2),), {"structure": sample_structure(), "row": 0}
        yield (r(2, 3),), {"structure": sample_structure(), "row": 1}


# -------------------------------------------------------------------------------- by the kernels of others


def kernel_along(operator, x, row, params):
    """Return the kernel of an operator for arrays of x's kind, along a dimension."""
    target = registry[operator]
    several = next(p.type for p in target.schema.params if p.name == "dim").startswith("int[]")
    return partial(target.kernel_for((x,)), dim=(row,) if several else row, **params)


@op("nested.segment_argreduce(Tensor x, *, str operator, any structure, int row, any params) -> Tensor")
class segment_argreduce(SegmentReduction, differentiable=False):
    """The result of a reduction kernel, which keeps the dimension, for the rows of each component."""

    def impl(xp, x, *, operator, structure, row, params):
        check_rows(operator, x, structure, row)
        kernel = kernel_along(operator, x, row, params)
        return segments.reduce_components(x, structure, row, operator, kernel, result_dtype(operator, x.dtype))

    def shape(x, *, operator, structure, row, params):
        return Aval(SegmentReduction.shape(x, structure=structure, row=row).shape, result_dtype(operator, x.dtype))

    def samples(r):
        yield (r(5, 2),), {"operator": "any", "structure": sample_structure(), "row": 0, "params": {"keepdim": True}}
        yield (
            (r(2, 5),),
            {"operator": "argmax", "structure": sample_structure(2, 3), "row": 1, "params": {"keepdim": True}},
        )


def result_dtype(operator, dtype):
    """Return the dtype of a reduction's result: that of truth values or of indices."""
    return truth_dtype(dtype) if issubclass(registry[operator].definition, LogicalReduction) else int64


@op("nested.local_rows(Tensor x, *, str operator, any structure, int row, any params) -> Tensor")
class local_rows(Segments, differentiable=False):
    """The indices that an operator returns as last result, within each component."""

    def impl(xp, x, *, operator, structure, row, params):
        kernel = kernel_along(operator, x, row, params)

        def indices(part):
            out = kernel(part)
            return out[-1] if isinstance(out, tuple) else out

        return segments.map_components(indices, (x,), structure, row, int64)

    def shape(x, *, operator, structure, row, params):
        return Aval(x.shape, int64)

    def samples(r):
        params = {"descending": False, "stable": False}
        yield (r(5, 2),), {"operator": "argsort", "structure": sample_structure(), "row": 0, "params": params}
        params = {"largest": True}
        yield (
            (r(2, 5),),
            {"operator": "running_extremes", "structure": sample_structure(), "row": 1, "params": params},
        )


@op("nested.segment_select(Tensor x, *, str operator, any structure, int row, any params) -> Tensor")
class segment_select(SegmentReduction):
    """The element that a reduction selects among the rows of each component; ties share the gradient."""

    def impl(xp, x, *, operator, structure, row, params):
        check_rows(operator, x, structure, row)
        kernel = kernel_along(operator, x, row, params)
        return segments.reduce_components(x, structure, row, operator, kernel, x.dtype)

    def vjp_x(g, x, out, structure, row):
        return repeat_rows(g, structure=structure, row=row) * _tie_weights(x, out, structure, row)

    def jvp_x(t, x, out, structure, row):
        return segment_sum(t * _tie_weights(x, out, structure, row), structure=structure, row=row)

    def samples(r):
        two, params = sample_structure(2, 3), {"keepdim": True}
        yield (r(5, 2),), {"operator": "amax", "structure": two, "row": 0, "params": params}
        yield (r(2, 5),), {"operator": "amin", "structure": two, "row": 1, "params": params}
        params = {"keepdim": True, "skip_nan": False}
        yield (r(5, 2),), {"operator": "middle", "structure": two, "row": 0, "params": params}


def _tie_weights(x, out, structure, row):
    """Return the share of the gradient of each element: equal for those that equal the result, else 0."""
    out = repeat_rows(out, structure=structure, row=row)
    chosen = cast_to(logical_or(eq(x, out), logical_and(isnan(x), isnan(out))), x.dtype)
    each = repeat_rows(segment_sum(chosen, structure=structure, row=row), structure=structure, row=row)
    return chosen / each


@op("nested.segment_scale(Tensor x, *, bool largest, any structure, int row) -> Tensor")
class segment_scale(SegmentReduction, differentiable=False):
    """The divisor for a norm of the rows of each component: the largest or smallest one, 1 if unusable."""

    def impl(xp, x, *, largest, structure, row):
        check_floating("segment_scale", x)
        return segments.segment_scale(x, structure, row, largest)

    def samples(r):
        yield (r(5, 2),), {"largest": True, "structure": sample_structure(), "row": 0}
        yield (r(2, 5),), {"largest": False, "structure": sample_structure(2, 3), "row": 1}


# ---------------------------------------------------------------------------------------------- logsumexp


@op("nested.segment_logsumexp(Tensor x, *, any structure, int row) -> Tensor")
class segment_logsumexp(SegmentReduction, in_host_memory=False):
    """log(sum(exp(x))) over the rows of each component, without overflow; -inf for an empty one."""

    def impl(xp, x, *, structure, row):
        check_floating("logsumexp", x)
        return xp.segments.segment_logsumexp(x, structure, row)

    def vjp_x(g, x, out, structure, row):
        return repeat_rows(g, structure=structure, row=row) * _softmax_over(x, out, structure, row)

    def jvp_x(t, x, out, structure, row):
        return segment_sum(t * _softmax_over(x, out, structure, row), structure=structure, row=row)

    def samples(r):
        yield (r(5, 2),), {"structure": sample_structure(2, 3), "row": 0}
        yield (r(2, 5),), {"structure": sample_structure(4, 1), "row": 1}


def _softmax_over(x, out, structure, row):
    """Return the softmax from the logsumexp; avoid differences of infinities."""
    return exp(x - repeat_rows(where(isinf(out), 0, out), structure=structure, row=row))
