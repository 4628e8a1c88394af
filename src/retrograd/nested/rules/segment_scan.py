"""Scans along the rows of a buffer, component by component, that keep its shape, and derived operators.

Structures here are without holes.
"""

from retrograd.backend import segments
from retrograd.core import Aval, Tensor, op
from retrograd.nested.rules.segment_reduce import SegmentReduction, Segments, repeat_rows, sample_structure, segment_sum
from retrograd.ops.create import as_tensor
from retrograd.ops.family import check_floating
from retrograd.ops.pointwise import exp, isinf, logical_or, where
from retrograd.ops.reduce import sum_dtype
from retrograd.ops.view import cat, narrow, reshape


class Scan(Segments):
    """Base of operators that keep the shape."""

    @classmethod
    def shape(cls, x, **params):
        """Return the shape of the input."""
        return Aval(x.shape, x.dtype)


# -------------------------------------------------------------------------------------------------- softmax


@op("nested.segment_softmax(Tensor x, *, any structure, int row) -> Tensor")
class segment_softmax(Scan, in_host_memory=False):
    """exp(x) / sum(exp(x)) over the rows of each component."""

    def impl(xp, x, *, structure, row):
        check_floating("softmax", x)
        return xp.segments.segment_softmax(x, structure, row, False)

    def vjp_x(g, out, structure, row):
        return softmax_back(g, out, structure, row)

    jvp_x = vjp_x  # the Jacobian, diag(s) - s s^T, is symmetric


@op("nested.segment_log_softmax(Tensor x, *, any structure, int row) -> Tensor")
class segment_log_softmax(Scan, in_host_memory=False):
    """The logarithm of the softmax over the rows of each component, exact if that is small."""

    def impl(xp, x, *, structure, row):
        check_floating("log_softmax", x)
        return xp.segments.segment_softmax(x, structure, row, True)

    def vjp_x(g, out, structure, row):
        return log_softmax_back(g, out, structure, row)

    def jvp_x(t, out, structure, row):
        return t - _component_sums(exp(out) * t, structure, row)


def softmax_back(g, out, structure, row):
    """Return the cotangent of x from `segment_softmax` with result `out`."""
    return out * (g - _component_sums(g * out, structure, row))


def log_softmax_back(g, out, structure, row):
    """Return the cotangent of x from `segment_log_softmax` with result `out`."""
    return g - exp(out) * _component_sums(g, structure, row)


def _component_sums(x, structure, row):
    """Return the sum of the component, for each of its rows."""
    return repeat_rows(segment_sum(x, structure=structure, row=row), structure=structure, row=row)


# ------------------------------------------------------------------------------------- linear recurrences


def shift_rows(x, structure, row, reverse, first):
    """Return x shifted by one row in its component, starting with `first`; with `reverse`, shifted back."""
    n = x.shape[row]
    if not n:
        return x
    parts = [narrow(x, row, 0, 1), narrow(x, row, 0, n - 1)]
    if reverse:
        parts = [narrow(x, row, 1, n - 1), narrow(x, row, n - 1, 1)]
    inside = as_tensor(segments.has_neighbor_row(structure, reverse))
    return where(align_rows(inside, x, row), cat(parts, dim=row), first)


def align_rows(each, x, row):
    """Reshape a value per row so that it broadcasts against x."""
    return reshape(each, (-1, *(1,) * (x.ndim - row - 1)))


@op("nested.segment_recurrence(Tensor b, Tensor a, *, any structure, int row, bool reverse=False) -> Tensor")
class segment_recurrence(Scan, linear="b"):
    """h[i] = b[i] + a[i] h[i - 1] along the rows of each component; with `reverse`, from h[i + 1]."""

    def impl(xp, b, a, *, structure, row, reverse):
        return segments.segment_recurrence(b, a, structure, row, reverse)

    def shape(b, a, **params):
        return b

    def vjp_b(g, a, structure, row, reverse):
        return _reverse_recurrence(g, a, structure, row, reverse)

    def vjp_a(g, a, out, structure, row, reverse):
        return _reverse_recurrence(g, a, structure, row, reverse) * shift_rows(out, structure, row, reverse, 0)

    def jvp_a(t, a, out, structure, row, reverse):
        before = shift_rows(out, structure, row, reverse, 0)
        return segment_recurrence(t * before, a, structure=structure, row=row, reverse=reverse)

    def samples(r):
        yield (r(6, 2), r(6, 2)), {"structure": sample_structure(2, 0, 4), "row": 0, "reverse": False}
        yield (r(2, 5), r(2, 5)), {"structure": sample_structure(), "row": 1, "reverse": True}


def _reverse_recurrence(g, a, structure, row, reverse):
    """Return the recurrence in the other direction: h[i] = g[i] + a[i + 1] h[i + 1]."""
    factors = shift_rows(a, structure, row, not reverse, 0)
    return segment_recurrence(g, factors, structure=structure, row=row, reverse=not reverse)


# -------------------------------------------------------------------------------------- sums and products


@op("nested.segment_cumsum(Tensor x, *, any structure, int row, bool reverse=False) -> Tensor")
class segment_cumsum(Segments, linear="x"):
    """The cumulative sum of the rows of a component; with `reverse`, from the end."""

    def impl(xp, x, *, structure, row, reverse):
        return segments.segment_cumsum(x, structure, row, reverse)

    def shape(x, *, structure, row, reverse):
        return Aval(x.shape, sum_dtype(x, None))

    def vjp_x(g, structure, row, reverse):
        return segment_cumsum(g, structure=structure, row=row, reverse=not reverse)

    def samples(r):
        yield (r(5, 2),), {"structure": sample_structure(), "row": 0, "reverse": False}
        yield (r(2, 5),), {"structure": sample_structure(), "row": 1, "reverse": True}


def segment_cumprod(x: Tensor, structure, row: int, reverse: bool = False) -> Tensor:
    """Return the cumulative product of the rows of a component; with `reverse`, from the end."""
    inside = align_rows(as_tensor(segments.has_neighbor_row(structure, reverse)), x, row)
    first, factors = where(inside, 0, x), where(inside, x, 0)
    return segment_recurrence(first, factors, structure=structure, row=row, reverse=reverse)


@op("nested.segment_prod(Tensor x, *, any structure, int row) -> Tensor")
class segment_prod(SegmentReduction):
    """The product of the rows of each component; its derivatives of every order are exact for zero factors."""

    def impl(xp, x, *, structure, row):
        return segments.segment_prod(x, structure, row)

    def shape(x, *, structure, row):
        return Aval((*x.shape[:row], len(structure), *x.shape[row + 1 :]), sum_dtype(x, None))

    def vjp_x(g, x, structure, row):
        return repeat_rows(g, structure=structure, row=row) * _products_of_others(x, structure, row)

    def jvp_x(t, x, structure, row):
        return segment_sum(t * _products_of_others(x, structure, row), structure=structure, row=row)


def _products_of_others(x, structure, row):
    """Return for each element the product of all others of its component."""
    before, behind = (segment_cumprod(x, structure, row, reverse) for reverse in (False, True))
    return shift_rows(before, structure, row, False, 1) * shift_rows(behind, structure, row, True, 1)


@op("nested.segment_logcumsumexp(Tensor x, *, any structure, int row) -> Tensor")
class segment_logcumsumexp(Scan):
    """log(cumsum(exp(x))) along the rows of each component, without overflow."""

    def impl(xp, x, *, structure, row):
        check_floating("logcumsumexp", x)
        return segments.segment_logcumsumexp(x, structure, row)

    # As in `logcumsumexp`: the weight of x[j] in out[i] is exp(x[j] - out[j]) times all decays from j + 1 to i.

    def vjp_x(g, x, out, structure, row):
        weight, decay = _weights(x, out, structure, row)
        return weight * _reverse_recurrence(g, decay, structure, row, False)

    def jvp_x(t, x, out, structure, row):
        weight, decay = _weights(x, out, structure, row)
        return segment_recurrence(weight * t, decay, structure=structure, row=row)


def _weights(x, out, structure, row):
    """Return exp(x - out), and the decay factor of each step; avoid differences of infinities."""
    infinite = isinf(out)
    cut = logical_or(infinite, shift_rows(infinite, structure, row, False, True))
    finite = where(infinite, 0, out)
    decay = exp(where(cut, 0, shift_rows(finite, structure, row, False, 0) - finite))
    return exp(x - finite), where(cut, 0, decay)
