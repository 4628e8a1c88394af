"""The two operators between sparse tensors and their values, and the parts of sparse tensors.

Only these two take sparse arrays.  Every other operator on a sparse tensor is composed of them and of operators on the
values, which are plain tensors with all rules; patterns are constants.
"""

import math
from typing import Any

from retrograd.backend import sparse_array
from retrograd.backend.sparse_array import Sparse, as_indices
from retrograd.backend.sparse_pattern import Compressed, Coordinates, all_positions, lookup
from retrograd.core import Aval, Internal, Tensor, namespaces, op, registry
from retrograd.core.op import compound
from retrograd.core.tensor import unwrap_all
from retrograd.foundation.describe_value import tensor_hint
from retrograd.ops.create import as_tensor
from retrograd.ops.family import View
from retrograd.ops.layout import array_device, place

Pattern = Coordinates | Compressed
namespaces[Sparse] = sparse_array


@op("sparse.values(Tensor x, *, any pattern) -> Tensor")
class values(Internal, View, accepts_nested=True):
    """The values of a sparse tensor with this pattern, as a view."""

    def impl(xp, x, *, pattern):
        assert x.pattern is pattern or x.pattern == pattern
        return x.values

    def shape(x, *, pattern):
        return Aval(pattern.values_shape(x.shape[len(pattern.sizes) :]), x.dtype)

    def vjp_x(g, pattern):
        return wrap_element_gradients(g, pattern)

    def jvp_x(t, pattern):
        return values_at(t, pattern)

    def batch(batched, n, x, *, pattern):
        rows = values(x, pattern=pattern_of(x))
        return rows.reshape((n, *pattern.values_shape(x.shape[1 + len(pattern.sizes) :])))

    def samples(r):
        yield (wrap(r(2, 3), _sample_pattern()),), {"pattern": _sample_pattern()}


@op("sparse.from_values(Tensor values, *, any pattern) -> Tensor")
class from_values(Internal, View, linear="values", accepts_nested=True):
    """The sparse tensor with these values at the positions of a pattern, as a view."""

    def impl(xp, values, *, pattern):
        return Sparse(values, pattern)

    def shape(values, *, pattern):
        return Aval(pattern.shape(values.shape), values.dtype)

    def vjp_values(g, pattern):
        return values_at(g, pattern)

    def batch(batched, n, values, *, pattern):
        repeated = pattern.repeated(n)
        dense = values.shape[1 + pattern.lead :]
        return from_values(values.reshape(repeated.values_shape(dense)), pattern=repeated)

    def samples(r):
        yield (r(2, 3),), {"pattern": _sample_pattern()}


@op("sparse.dense(Tensor x) -> Tensor")
class dense(Internal, accepts_nested=True):
    """The dense tensor of a sparse one; its gradient has entries for all elements."""

    def impl(xp, x):
        return x.dense()

    def shape(x):
        return Aval(x.shape, x.dtype)

    def vjp_x(g, x_aval):
        return _with_all_entries(g)

    def jvp_x(t):
        return dense(t)

    def batch(batched, n, x):
        return dense(x)

    def samples(r):
        yield (wrap(r(2, 3), _sample_pattern()),), {}


def _with_all_entries(g: Tensor) -> Tensor:
    return wrap(g.reshape((-1,)), all_positions(g.shape))


def _sample_pattern() -> Coordinates:
    return sparse_array.coordinates_of(sparse_array.index_array("", [[0, 1], [2, 0]]), (2, 3), True)


# ------------------------------------------------------------------------------------------------------- parts


def is_sparse(x: object) -> bool:
    """Whether an object is a sparse tensor."""
    return isinstance(x, Tensor) and type(unwrap_all(x)) is Sparse


def check_dense_or_sparse(name: str, *operands: object) -> None:
    """Raise TypeError for operands that are no tensors, NotImplementedError for nested ones."""
    for x in operands:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: expected a Tensor, got {type(x).__name__}; {tensor_hint(x)}")
        if not is_sparse(x) and compound(x) is not None:
            raise NotImplementedError(f"{name}: a nested tensor of shape {x.shape} is neither dense nor sparse")


def pattern_of(x: Tensor) -> Pattern:
    """Return the pattern of a sparse tensor at its own level; refuse one whose dimension `vmap` maps over."""
    array = unwrap_all(x)
    pattern, dense = array.pattern, array.values.ndim - array.pattern.lead
    while pattern is not None and len(pattern.sizes) + dense > x.ndim:
        pattern = pattern.inner
    if pattern is None:
        raise NotImplementedError(
            f"vmap: a sparse tensor of shape {array.shape} can't be mapped over a dimension: its slices have different "
            f"entries; map over the values of one pattern, or over x.to_dense()"
        )
    found: Pattern = pattern
    return found


def values_of(x: Tensor) -> Tensor:
    """Return the values of a sparse tensor, as a view."""
    out: Tensor = values(x, pattern=pattern_of(x))
    return out


def wrap(rows: Tensor, pattern: Pattern) -> Tensor:
    """Return the sparse tensor with these values."""
    out: Tensor = from_values(rows, pattern=pattern)
    return out


def entries(x: Tensor) -> tuple[Coordinates, Tensor]:
    """Return the coordinates of a sparse tensor of any layout, and its values with the entries in front."""
    pattern = pattern_of(x)
    coordinates: Coordinates = pattern.coordinates()
    rows = values_of(x)
    if pattern is coordinates:
        return coordinates, rows
    return coordinates, rows.reshape((coordinates.nnz, *rows.shape[pattern.lead :]))


def unique_entries(x: Tensor) -> tuple[Coordinates, Tensor]:
    """Return sorted, unique coordinates of a sparse tensor, and the sums of the values at each."""
    coordinates, rows = entries(x)
    if coordinates.in_order:
        return coordinates.marked(True), rows
    unique, number, _ = coordinates.groups
    return unique, add_at(rows, number, unique.nnz)


def _indices(rows: Tensor, numbers: Any) -> Tensor:
    """Return indices, which are in host memory as all of a pattern, where the rows are."""
    out: Tensor = place(as_tensor(as_indices(numbers)), array_device(rows))
    return out


def take(rows: Tensor, numbers: Any) -> Tensor:
    """Return rows by number."""
    out: Tensor = registry["index_select"](rows, 0, _indices(rows, numbers))
    return out


def add_at(rows: Tensor, numbers: Any, count: int) -> Tensor:
    """Return `count` rows: zeros, with each row added at its number."""
    out: Tensor = registry["index_sum"](rows, _indices(rows, numbers), dim=0, size=count)
    return out


def values_at(x: Tensor, pattern: Pattern) -> Tensor:
    """Return the elements of a tensor, dense or sparse, at the positions of a pattern, in the shape of its values."""
    where = pattern.coordinates()
    if not is_sparse(x):
        rows = take(x.reshape((math.prod(where.sizes), *x.shape[len(where.sizes) :])), where.flat)
        return rows.reshape(pattern.values_shape(rows.shape[1:]))
    its = pattern_of(x)
    if its is pattern or its == pattern:
        return values_of(x)
    unique, rows = unique_entries(x)
    at, there = lookup(where, unique)
    if not unique.nnz:
        return registry["zeros"](pattern.values_shape(rows.shape[1:]), dtype=x.dtype)
    found = take(rows, at)
    if not there.all():
        found = registry["where"](as_tensor(there.reshape(-1, *(1,) * (found.ndim - 1))), found, 0)
    return found.reshape(pattern.values_shape(rows.shape[1:]))


def wrap_element_gradients(g: Tensor, pattern: Pattern) -> Tensor:
    """Return the sparse gradient of a tensor, given those of its entries.

    Entries at one position have equal gradients, that of the element, which is their sum: it is stored once.
    """
    if isinstance(pattern, Compressed) or pattern.in_order:
        return wrap(g, pattern)
    unique, _, first = pattern.groups
    return wrap(take(g, first), unique)
