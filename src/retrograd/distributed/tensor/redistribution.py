"""`Redistribution`: an exchange among the ranks of a mesh after which they have other parts of the same tensor."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from retrograd.core import Tensor, operator_named, registry
from retrograd.distributed import collectives
from retrograd.distributed.local_slice import move_back, move_to_front
from retrograd.distributed.nn.functional import apply_linear
from retrograd.distributed.reduce_op import ReduceOp
from retrograd.distributed.tensor.division import Division, Placements
from retrograd.distributed.tensor.placements import Partial, Placement, Replicate, Shard
from retrograd.ops.functions import functions

_alias = operator_named("alias")
Dtypes = tuple[Any, Any]


def cotangent_placements(placements: Placements) -> Placements:
    """Return how the gradient of a tensor is divided: as the tensor, and whole where the tensor is a sum of terms."""
    return tuple(Replicate() if isinstance(p, Partial) else p for p in placements)


@dataclass(frozen=True)
class Redistribution:
    """The linear map from the parts of a tensor in one division to those in another.

    of_gradient, of_result_gradient: how the gradients of the argument and of the result are divided.  The adjoint map
    redistributes the second one to the first.  dtypes, of_gradient_dtypes: the dtype in which parts, or gradients, are
    exchanged, and that of the result; None: as they are.
    """

    source: Division
    target: Placements
    of_gradient: Placements
    of_result_gradient: Placements
    dtypes: Dtypes = (None, None)
    of_gradient_dtypes: Dtypes = (None, None)

    def run(self, tensors: Any) -> list[Tensor]:
        """Return this rank's part of the result."""
        exchanged, result = self.dtypes
        x = tensors[0] if exchanged is None else tensors[0].to(exchanged)
        found = _alias(x) if self.source.placements == self.target else redistributed(x, self.source, self.target)
        return [found if result is None else found.to(result)]

    def adjoint(self, shapes: Any) -> "Redistribution":
        """Return the map of the gradients."""
        source = Division(self.source.shape, self.source.mesh, self.of_result_gradient)
        return Redistribution(
            source, self.of_gradient, self.target, self.source.placements, self.of_gradient_dtypes, self.dtypes
        )


def exchange(
    local: Tensor,
    source: Division,
    target: Placements,
    *,
    of_gradient: Placements | None = None,
    of_result_gradient: Placements | None = None,
    dtype: Any = None,
    gradient_dtype: Any = None,
) -> Tensor:
    """Return this rank's part in another division, as part of the graph; all ranks of the mesh must call it.

    of_gradient, of_result_gradient: how gradients are divided, by default as `cotangent_placements` says.
    dtype: of the exchanged parts and the result.  gradient_dtype: of the exchanged gradients.
    """
    own = cotangent_placements(source.placements) if of_gradient is None else of_gradient
    given = cotangent_placements(target) if of_result_gradient is None else of_result_gradient
    if source.placements == target and own == given and dtype is None and gradient_dtype is None:
        found: Tensor = _alias(local)
        return found
    dtypes = dtype or local.dtype, dtype or local.dtype
    of_gradient_dtypes = gradient_dtype or dtypes[1], local.dtype
    return apply_linear(Redistribution(source, target, own, given, dtypes, of_gradient_dtypes), local)[0]


def redistributed(x: Tensor, source: Division, target: Placements) -> Tensor:
    """Return this rank's part in another division, outside of the graph.

    Where a dimension of the tensor is divided along several dimensions of the mesh, the parts are joined from the last
    of these on and divided again from the first; otherwise each dimension of the mesh needs one exchange.
    """
    if not source.shape:
        vector = Division((1,), source.mesh, source.placements)
        found = redistributed(x.reshape(vector.local_shape), vector, target)
        return found if _dims_of(target) else found.reshape(())
    then = Division(source.shape, source.mesh, target)
    now, changed = source, _changed(source, then)
    for i in reversed(source.order):
        if i in changed and _is_nested(i, source.placements, target):
            x, now = _step(x, now, i, Replicate())
    for i in then.order:
        if i in changed:
            x, now = _step(x, now, i, target[i])
    return x.contiguous()


def _changed(source: Division, then: Division) -> set[int]:
    """Return the dimensions of the mesh along which a tensor is exchanged: also those inside of a changed division."""
    pairs = [(source.placements[i], then.placements[i]) for i in range(len(source.placements))]
    found, known = {i for i, (old, new) in enumerate(pairs) if old != new}, -1
    while known < len(found):  # the orders differ if one of the divisions has a `StridedShard`
        known = len(found)
        for order in (source.order, then.order):
            outer: set[int] = set()  # the dimensions of the tensor whose division has changed
            for i in order:
                dims = _dims_of(pairs[i])
                if i in found or dims & outer:
                    found.add(i)
                    outer |= dims
    return found


def _is_nested(i: int, source: Placements, target: Placements) -> bool:
    """Return whether a dimension of the tensor that is divided along one of the mesh is divided along others too."""
    others = _dims_of([p for k in range(len(source)) if k != i for p in (source[k], target[k])])
    return bool(_dims_of((source[i], target[i])) & others)


def _dims_of(placements: Iterable[Placement]) -> set[int]:
    """Return the dimensions of the tensor that placements divide."""
    return {p.dim for p in placements if isinstance(p, Shard)}


def _step(x: Tensor, now: Division, mesh_dim: int, new: Placement) -> tuple[Tensor, Division]:
    """Return the part after one exchange along a dimension of the mesh, and its division."""
    old, then = now.placements[mesh_dim], now.with_placement(mesh_dim, new)
    if old == new:
        return x, now
    if isinstance(old, Shard):
        if isinstance(new, Shard):
            if old.dim == new.dim:  # the only division of this dimension, in whichever order
                return x, then
            return _all_to_all(x, now, then, mesh_dim, old.dim, new.dim), then
        x = _joined(x, now, now.with_placement(mesh_dim, Replicate()), mesh_dim, old.dim)
        old = Replicate()
    elif isinstance(old, Partial):
        if isinstance(new, Shard) and old.reduce_op in ("sum", "avg"):
            return _reduced_part(x, then, mesh_dim, new.dim, ReduceOp(old.reduce_op)), then
        x = x.contiguous().clone()
        collectives.all_reduce(x, ReduceOp(old.reduce_op), now.mesh.get_group(mesh_dim))
    if isinstance(new, Shard):
        low, high = then.bounds[new.dim]
        first = now.bounds[new.dim][0]
        return x.narrow(new.dim, low - first, high - low).clone(), then
    if isinstance(new, Partial):
        return _term(x, new, then, mesh_dim), then
    return x, then


def _joined(x: Tensor, now: Division, then: Division, mesh_dim: int, dim: int) -> Tensor:
    """Return the parts of the ranks along a dimension of the mesh, joined along a dimension of the tensor."""
    group, size = now.mesh.get_group(mesh_dim), then.local_shape[dim]
    rows = _padded(move_to_front(x, dim), -(-size // group.size()))
    whole = functions["empty"]((group.size() * rows.shape[0], *rows.shape[1:]), dtype=x.dtype)
    collectives.all_gather_into_tensor(whole, rows, group)
    return move_back(whole.narrow(0, 0, size), dim)


def _reduced_part(x: Tensor, then: Division, mesh_dim: int, dim: int, op: ReduceOp) -> Tensor:
    """Return this rank's part of the sum over the ranks along a dimension of the mesh."""
    group, rows = then.mesh.get_group(mesh_dim), move_to_front(x, dim)
    each = -(-rows.shape[0] // group.size())
    own = functions["empty"]((each, *rows.shape[1:]), dtype=x.dtype)
    collectives.reduce_scatter_tensor(own, _padded(rows, each * group.size()), op, group)
    low, high = then.bounds[dim]
    return move_back(own.narrow(0, 0, high - low), dim)


def _all_to_all(x: Tensor, now: Division, then: Division, mesh_dim: int, old: int, new: int) -> Tensor:
    """Return this rank's part along another dimension of the tensor."""
    group = now.mesh.get_group(mesh_dim)
    ranks = [[*now.coordinate[:mesh_dim], i, *now.coordinate[mesh_dim + 1 :]] for i in range(group.size())]
    first = now.bounds[new][0]
    sent, received = [], []
    for rank in ranks:
        low, high = then.bounds_at(rank)[new]
        sent.append(x.narrow(new, low - first, high - low).contiguous())
        shape = list(then.local_shape)
        low, high = now.bounds_at(rank)[old]
        shape[old] = high - low
        received.append(functions["empty"](shape, dtype=x.dtype))
    collectives.all_to_all(received, sent, group)
    found: Tensor = registry["cat"](received, old)
    return found


def _term(x: Tensor, new: Partial, then: Division, mesh_dim: int) -> Tensor:
    """Return this rank's term of values that it has: the first rank keeps those of a sum, so that they are exact."""
    if new.reduce_op in ("sum", "bxor") and then.coordinate[mesh_dim]:
        found: Tensor = registry["zeros_like"](x)
        return found
    if new.reduce_op == "product" and then.coordinate[mesh_dim]:
        found = registry["ones_like"](x)
        return found
    return x.clone()


def _padded(rows: Tensor, count: int) -> Tensor:
    """Return the rows of a tensor, followed by rows of zeros."""
    missing = count - rows.shape[0]
    if not missing:
        return rows.contiguous()
    found: Tensor = registry["cat"]([rows, functions["zeros"]((missing, *rows.shape[1:]), dtype=rows.dtype)])
    return found
