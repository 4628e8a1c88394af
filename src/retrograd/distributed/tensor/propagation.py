"""How the results of an operator are divided, given how its operands are: derived from the operators' own rules.

An operator maps over a dimension if each index of the result depends on that index of the operands alone, as
`Definition.mapped` says, or if it only moves elements and keeps their index: each rank computes with its part.
If operands are divided along a dimension that is summed (`Definition.summed`), each rank has a term of the sum. So it
has if others are indices along the divided dimension (`Definition.indexed`): its elements, and 0 in place of others.
Otherwise every rank computes with whole operands.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache, wraps
from math import prod
from typing import Any, NamedTuple

from retrograd.core import Aval, Tensor
from retrograd.core import dtype as dtypes
from retrograd.core.errors import OperandIndexError, OperandValueError
from retrograd.distributed.tensor.division import Division
from retrograd.distributed.tensor.placements import Partial, Placement, Replicate, Shard, StridedShard
from retrograd.nn.tensor_part import on_parts
from retrograd.ops.family import Pointwise
from retrograd.ops.functions import functions


class Call(NamedTuple):
    """A call of an operator on whole tensors: an `Aval` for each operand that is a tensor, other operands as they are.

    params: pairs of names and values.  kinds: the classes of operands and of these, as 1 and 1.0 are equal.
    """

    op: Any
    operands: tuple[Any, ...]
    params: tuple[tuple[str, Any], ...]
    kinds: tuple[type, ...]


class Plan(NamedTuple):
    """The placements along one dimension of the mesh of the operands, None for others, and of all results.

    indexed: the divided dimension of the first operand in which others are indices, or None.
    """

    operands: tuple[Placement | None, ...]
    results: Placement
    indexed: int | None = None

    def gathers(self, given: Sequence[Placement | None]) -> bool:
        """Return whether an operand that is divided is needed whole."""
        return any(isinstance(p, Shard) and not isinstance(q, Shard) for p, q in zip(given, self.operands, strict=True))


Given = tuple[Placement | None, ...]
Nest = tuple[int, ...]


def _cached(function: Any) -> Any:
    """Return a function that keeps its results for calls that can be hashed."""
    kept = lru_cache(maxsize=4096)(function)

    @wraps(function)
    def run(call: Call, *args: Any) -> Any:
        try:
            hash(call)
        except TypeError:  # a slice is among the params
            return function(call, *args)
        return kept(call, *args)

    return run


@_cached
def result_avals(call: Call) -> Any:
    """Return the avals of the results of a call, or other results as they are.

    Raises NotImplementedError if they depend on the values of the operands.
    """
    return _as_avals(_run_on_meta(call, [getattr(a, "shape", None) for a in call.operands]))


@_cached
def plan_for(call: Call, given: Given, nest: Nest) -> Plan:
    """Return how the operands are to be divided along one dimension of a mesh, given how they are.

    nest: the number of ranks along it and along those with which it divides a dimension of an operand together, in the
    order in which they divide it.  If an operand has a `StridedShard`, all have that are divided, so that they have the
    same indices, and the results.
    """
    found = _plan_in_order(call, tuple([Shard(p.dim) if isinstance(p, Shard) else p for p in given]), nest)
    factor = max([p.split_factor for p in given if isinstance(p, StridedShard)], default=None)
    if factor is None:
        return found
    results = found.results
    return Plan(
        tuple([StridedShard(p.dim, factor) if isinstance(p, Shard) else p for p in found.operands]),
        StridedShard(results.dim, factor) if isinstance(results, Shard) else results,
        found.indexed,
    )


def _plan_in_order(call: Call, given: Given, nest: Nest) -> Plan:
    """Return the plan for operands without a `StridedShard`."""
    found = _linear_plan(call, given)
    if found is not None:
        return found
    whole = tuple([Replicate() if isinstance(p, Partial) else p for p in given])
    sizes = [_count(a) for a in call.operands]
    for i in sorted(range(len(whole)), key=lambda i: -sizes[i]):
        placement = whole[i]
        if isinstance(placement, Shard):
            for plan in (_mapped_plan, _summed_plan, _indexed_plan):
                found = plan(call, whole, i, placement.dim, nest)
                if found is not None and _runs_on_parts(call, found, nest):
                    return found
    return Plan(tuple([p and Replicate() for p in whole]), Replicate())


def _count(operand: Any) -> int:
    found = 1
    for size in operand.shape if isinstance(operand, Aval) else ():
        found *= size
    return found if isinstance(operand, Aval) else 0


def _results(call: Call) -> tuple[Any, ...]:
    found = result_avals(call)
    return found if isinstance(found, tuple) else (found,)


def _as_avals(found: Any) -> Any:
    if isinstance(found, tuple):
        return tuple([_as_avals(member) for member in found])
    return found.aval if isinstance(found, Tensor) else found


def _run_on_meta(call: Call, shapes: Sequence[Any]) -> Any:
    """Run the operator on tensors of some shapes, without memory."""
    made = [
        functions["empty"](shape, dtype=a.dtype, device="meta") if isinstance(a, Aval) else a
        for a, shape in zip(call.operands, shapes, strict=True)
    ]
    positional, keywords = call.op.call_arguments(tuple(made), dict(call.params))
    with on_parts():
        return call.op(*positional, **keywords)


# ------------------------------------------------------------------------------------------------ terms of sums


def _linear_plan(call: Call, given: Given) -> Plan | None:
    """Return the plan by which the results are sums of terms too: the operator is linear in all operands with terms."""
    partial = {i for i, p in enumerate(given) if isinstance(p, Partial)}
    kinds = {given[i] for i in partial}
    if len(kinds) != 1 or any(isinstance(p, Shard) for p in given):
        return None
    (kind,) = kinds
    assert isinstance(kind, Partial)
    if kind.reduce_op not in ("sum", "avg") or not all(_keeps_sums(call.operands[i], _results(call)) for i in partial):
        return None
    return Plan(given, kind) if partial in _linear_groups(call) else None


def _keeps_sums(operand: Aval, results: Sequence[Aval]) -> bool:
    """Return whether a conversion to the dtype of the results commutes with sums."""
    return all(r.dtype == operand.dtype or dtypes.is_differentiable(r.dtype) for r in results)


def _linear_groups(call: Call) -> list[set[int]]:
    """Return the groups of operands in which an operator is linear together; numbers are operands too."""
    names = [p.name for p in call.op.schema.inputs]
    found = []
    for group in call.op.definition.linear.split():
        chosen = group.split(",")
        found.append({
            i for i, a in enumerate(call.operands) if a is not None and names[min(i, len(names) - 1)] in chosen
        })  # fmt: skip
    return found


def _summed_plan(call: Call, given: Given, first: int, dim: int, nest: Nest) -> Plan | None:
    """Return the plan by which each rank computes a term of a sum; None if the operator does not sum over it."""
    for together in call.op.definition.summed(*call.operands, **dict(call.params)):
        if together.get(first) == dim:
            chosen = [p and (Shard(together[i]) if i in together else Partial()) for i, p in enumerate(given)]
            return Plan(tuple(chosen), Partial())
    return None


def _indexed_plan(call: Call, given: Given, first: int, dim: int, nest: Nest) -> Plan | None:
    """Return the plan by which each rank takes the elements that it has; None if no operand has indices into `dim`."""
    if first or call.op.definition.indexed(*call.operands, **dict(call.params)) != dim:
        return None
    return Plan((Shard(dim), *[p and Replicate() for p in given[1:]]), Partial(), dim)


# ------------------------------------------------------------------------------------------------ parts of results


def _mapped_plan(call: Call, given: Given, first: int, dim: int, nest: Nest) -> Plan | None:
    """Return the plan by which each rank computes its part of the results; None if the operator does not map so."""
    out = _result_dim(call, first, dim, nest)
    if out is None:
        return None
    size, chosen = _sizes(_results(call)[0])[out], list[Placement | None]()
    for i, (a, placement) in enumerate(zip(call.operands, given, strict=True)):
        if placement is None:
            chosen.append(None)
            continue
        own = [d for d, e in _dims(call, i, nest).items() if e == out]
        if own and (i == first or _sizes(a)[own[0]] == size):
            chosen.append(Shard(own[0]))
        elif own or _is_needed_whole(call, a):
            chosen.append(Replicate())
        else:
            return None
    return Plan(tuple(chosen), Shard(out))


def _is_needed_whole(call: Call, operand: Aval) -> bool:
    """Return whether the results depend on the values of an operand only, and not on where they are.

    Integers may be indices along the divided dimension, unless the operator says along which one they are, or is
    pointwise.
    """
    definition = call.op.definition
    if not operand.shape or issubclass(definition, Pointwise):
        return True
    if definition.indexed(*call.operands, **dict(call.params)) is not None:
        return True
    return operand.dtype.kind not in "iu" and not definition.elements


def _result_dim(call: Call, i: int, dim: int, nest: Nest) -> int | None:
    """Return the dimension of all results that is divided as one of an operand is; None if there is none."""
    results, out = _results(call), _dims(call, i, nest).get(dim)
    if out is None or any(out >= len(_sizes(r)) for r in results):
        return None
    sizes = {_sizes(r)[out] for r in results}
    return (
        out if sizes == {_sizes(call.operands[i])[dim]} or (len(sizes) == 1 and "shape" in dict(call.params)) else None
    )


def _sizes(aval: Aval) -> tuple[int, ...]:
    """Return the shape of a tensor; a scalar is divided like a tensor of one element."""
    return tuple(aval.shape) or (1,)


def _dims(call: Call, i: int, nest: Nest) -> Mapping[int, int]:
    """Return which dimensions of all results are those of an operand, over which the operator maps."""
    definition, results = call.op.definition, _results(call)
    if not call.operands[i].shape and not any(r.shape for r in results):
        return {0: 0}
    found = [definition.mapped(i, r, *call.operands, **dict(call.params)) for r in results]
    if not any(found) and definition.elements == "moved" and _moves_all(call):
        found = [_moved_dims(call, i, number, nest) for number in range(len(results))]
    return {d: e for d, e in found[0].items() if all(other.get(d) == e for other in found)}


def _moves_all(call: Call) -> bool:
    """Return whether the elements of all operands that are tensors are moved, and none of them is an index."""
    return {i for i, a in enumerate(call.operands) if isinstance(a, Aval)} in _linear_groups(call)


def _moved_dims(call: Call, i: int, number: int, nest: Nest) -> dict[int, int]:
    """Return which dimensions keep their indices when elements are moved, or their block of one of the ranks.

    A dimension of the result along which the indices of other dimensions vary too, as on a diagonal, is none of them.
    """
    shape, results = call.operands[i].shape, ()
    kept, varies = list[set[int]](), list[set[int]]()
    for dim, size in enumerate(shape):
        labels = [_indices(a.shape, dim) if isinstance(a, Aval) and dim < len(a.shape) else a for a in call.operands]
        if any(isinstance(a, Aval) for a in labels):
            return {}
        positional, keywords = call.op.call_arguments(tuple(labels), dict(call.params))
        with on_parts():
            moved = call.op(*positional, **keywords)
        moved = moved[number] if isinstance(moved, tuple) else moved
        kept.append({out for out in range(moved.ndim) if _keeps_blocks(moved, out, size, nest)})
        varies.append({out for out in range(moved.ndim) if moved.shape[out] > 1 and _varies_along(moved, out)})
        results = moved.shape
    found = {}
    for dim, outs in enumerate(kept):
        others = set().union(*[v for d, v in enumerate(varies) if d != dim])
        alone = [out for out in sorted(outs) if results[out] != shape[dim] or out not in others]
        if alone:
            found[dim] = alone[0]
    return found


def _varies_along(labels: Tensor, out: int) -> bool:
    """Return whether labels change along a dimension."""
    return bool((labels.narrow(out, 0, 1) != labels).any())


def _keeps_blocks(labels: Tensor, out: int, size: int, nest: Nest) -> bool:
    """Return whether indices along a dimension of an operand are those of the result, or in the same block."""
    own, result = _indices(labels.shape, out), labels.shape[out]
    if result == size:
        return size > 1 and bool((labels == own).all())
    ranks = prod(nest)
    if size % ranks or result % ranks or not size or not result:
        return False
    return bool((labels // (size // ranks) == own // (result // ranks)).all())


def _indices(shape: Sequence[int], dim: int) -> Tensor:
    """Return the index of each element along a dimension."""
    along = functions["arange"](shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(shape))])
    found: Tensor = along.expand(*shape)
    return found


def _runs_on_parts(call: Call, plan: Plan, nest: Nest) -> bool:
    """Return whether the operator gives the parts of the results for the parts of all ranks; each rank finds the same.

    Params may say sizes of whole tensors, and a part may have the size 1, where a dimension has another meaning.
    """
    ranks = prod(nest)
    for rank in {0, ranks - 1, *range(1, min(ranks, 64))}:
        shapes = [
            _part_of_shape(a.shape, p, rank, nest) if isinstance(a, Aval) else None
            for a, p in zip(call.operands, plan.operands, strict=True)
        ]
        expected = [_part_of_shape(r.shape, plan.results, rank, nest) for r in _results(call)]
        try:
            found = _as_avals(_run_on_meta(call._replace(params=_with_shape(call.params, expected[0])), shapes))
        except (OperandValueError, OperandIndexError):  # it has params for whole tensors, such as groups
            return False
        if [tuple(r.shape) for r in (found if isinstance(found, tuple) else (found,))] != expected:
            return False
    return True


def _part_of_shape(shape: Sequence[int], placement: Placement | None, rank: int, nest: Nest) -> tuple[int, ...]:
    """Return the shape of a rank's part; that of a divided scalar has one dimension."""
    found = list(shape or (1,)) if isinstance(placement, Shard) else list(shape)
    if isinstance(placement, Shard):
        size, parts = found[placement.dim], prod(nest)
        for ranks in nest:
            parts //= ranks
            each = -(-size // ranks)
            size = max(min(each, size - rank // parts % ranks * each), 0)
        found[placement.dim] = size
    return tuple(found)


def _with_shape(params: Any, shape: tuple[int, ...]) -> Any:
    """Return the params of an operator for a part of its result, which may be given by its shape."""
    return tuple([(name, shape if name == "shape" and isinstance(v, tuple) else v) for name, v in params])


def local_params(params: Mapping[str, Any], result: Division) -> dict[str, Any]:
    """Return the params of an operator for this rank's part of its result."""
    return dict(_with_shape(tuple(params.items()), result.local_shape)) if result.dims else dict(params)


def call_of(op: Any, operands: Sequence[Any], params: Mapping[str, Any]) -> Call:
    """Return the call of an operator on whole tensors, whose avals are given."""
    kinds = tuple([type(value) for value in (*operands, *params.values())])
    return Call(op, tuple(operands), tuple(params.items()), kinds)


def nest_of(mesh_dim: int, divisions: Sequence[Division | None]) -> Nest:
    """Return the numbers of ranks that divide dimensions of operands together with one dimension of the mesh."""
    found = {mesh_dim: 0}
    for d in divisions:
        if d is not None and isinstance(own := d.placements[mesh_dim], Shard):
            found |= {k: rank for rank, k in enumerate(d.order) if d.placements[k].is_shard(own.dim)}
    mesh = next(d.mesh for d in divisions if d is not None)
    return tuple([mesh.size(k) for k in sorted(found, key=lambda k: found[k])])
