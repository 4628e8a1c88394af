"""The fallback: map operators without a rule over the components one by one."""

import warnings
from collections.abc import Iterable, Iterator
from itertools import combinations, islice
from typing import Any

from retrograd.backend.ragged import no_components
from retrograd.core import Op, Tensor, call, registry
from retrograd.core.dtype import is_differentiable
from retrograd.core.source_location import user_line
from retrograd.nested.buffer import over, values
from retrograd.nested.buffer_layout import Layout, is_nested, layout
from retrograd.nested.components import components, joined
from retrograd.nested.dispatch import DOES_NOT_FIT, AcrossError, NoBatchError, composed, fallback
from retrograd.nested.fallback_checks import check_batch, check_dims, check_shapes
from retrograd.ops.batch_loop import PerformanceWarning
from retrograd.ops.family import AlongDims, CoreDims, Pointwise, canonical_dims
from retrograd.ops.view import cat, narrow, reshape, unsqueeze


@fallback
def run_composite(op: Op, args: tuple, params: dict) -> Any:
    """Run a composite operator, unless it needs integers for ragged sizes."""
    return op.definition.compose(*args, **params) if op.composite else NotImplemented


_told: set[str] = set()  # the operators that have been warned about


@fallback
def loop_over_components(op: Op, args: tuple, params: dict) -> Any:
    """Map the operator over the components, as batches of one; the result has the components in front."""
    check_dims(op, args, params)
    return map_over(op, args, params)


def map_over(op: Op, args: tuple, params: dict) -> Any:
    """Map the operator over the components and the rows of plain tensors that belong to them."""
    known = layout(next(a for a in args if is_nested(a)))
    if not len(known.structure):
        return _result_without_components(op, args, params, known)
    parts = _parts(op.name, args)
    first, followed = _first(op, args, parts, params, known)
    each = islice(_each(args, parts, followed, known), 1, None)
    out = join_results(op.name, [first, *_results(op, each, params, 1)], known.lead)
    warn_once(op.name)  # only now, because a call that fails should not warn
    return out


composed("grid_sample", "istft")(loop_over_components)  # these read sizes


@composed("diag_embed", "diagonal_backward")
def _embedded(op: Op, args: tuple, params: dict) -> Any:
    """Map the operator, whose dimensions count in the result, which has one more."""
    ndim, dims = args[0].ndim + 1, (params["dim1"], params["dim2"])
    if layout(args[0]).lead in canonical_dims(op.name, dims, ndim):
        raise AcrossError(f"{op.name}: dimension {layout(args[0]).lead} has the components of a nested tensor")
    return map_over(op, args, params)


def warn_once(name: str) -> None:
    """Warn, once for each operator, that it loops over the components."""
    if name not in _told:
        text = f"{name}: at {user_line()}: runs on the components of a nested tensor one by one"
        warnings.warn(text, PerformanceWarning, stacklevel=2)
        _told.add(name)


def reset_warnings() -> None:
    """Forget which operators have been warned about."""
    _told.clear()


# ----------------------------------------------------------------------------------------- arguments for each component


def _first(op: Op, args: tuple, parts: dict, params: dict, known: Layout) -> tuple[Any, list[bool]]:
    """Return the result for the first component, and which plain tensors have a row for each component.

    The choice is the smallest set of candidates with which the operator returns a batch of one.
    """
    may = [i for i, a in enumerate(args) if may_follow(op, a, known)]
    refused = None
    for number in range(len(may) + 1) if len(may) < 5 else (0, 1, len(may)):
        for chosen in combinations(may, number):
            followed = [i in chosen for i in range(len(args))]
            try:
                one = next(_each(args, parts, followed, known))
                check_shapes(op, one, params)
                out = call(op, one, params)
                join_results(op.name, [out], known.lead)
                batches = [is_nested(a) or f for a, f in zip(args, followed, strict=True)]
                check_batch(op, one, batches, params, out, known.lead)
            except DOES_NOT_FIT as error:
                refused = refused or error
            else:
                return out, followed
    assert refused is not None
    raise refused


def may_follow(op: Op, a: Any, known: Layout) -> bool:
    """Whether a plain operand may have a row for each component; if it broadcasts, its dimensions must align."""
    if is_nested(a) or getattr(a, "ndim", 0) <= known.lead or a.shape[known.lead] != len(known.structure):
        return False
    of = op.definition
    broadcasts = issubclass(of, Pointwise | AlongDims) or (issubclass(of, CoreDims) and len(of.cores) == 1)
    return a.ndim == known.ndim if broadcasts else True


def one_by_one(op: Op, args: tuple, params: dict, followed: list[bool]) -> Any:
    """Loop over the components; plain tensors that are `followed` have a row for each."""
    known = layout(next(a for a in args if is_nested(a)))
    if not len(known.structure):
        return _result_without_components(op, args, params, known)
    each = _each(args, _parts(op.name, args), followed, known)
    return join_results(op.name, list(_results(op, each, params)), known.lead)


def _results(op: Op, each: Iterable[tuple], params: dict, number: int = 0) -> Iterator[Any]:
    """Yield the results for components; the first has index `number`."""
    for i, one in enumerate(each, number):
        try:
            yield call(op, one, params)
        except Exception as error:
            error.add_note(f"This is component {i} of a nested tensor, as a batch of one.")
            raise


def _parts(name: str, args: tuple) -> dict[int, tuple[Tensor, ...]]:
    """Return the components of each nested tensor by argument index; their numbers must agree."""
    parts = {i: components(a) for i, a in enumerate(args) if is_nested(a)}
    count, *others = map(len, parts.values())
    for other in others:
        if other != count:
            raise ValueError(f"{name}: the nested tensors have {count} and {other} components")
    return parts


def _each(args: tuple, parts: dict, followed: list[bool], known: Layout) -> Iterator[tuple]:
    """Yield the arguments for each component: nested and followed ones as batches of one, the others unchanged."""
    for number in range(len(known.structure)):
        one = list(args)
        for i, a in enumerate(args):
            if i in parts:
                one[i] = unsqueeze(parts[i][number], layout(a).lead)
            elif followed[i]:
                one[i] = narrow(a, known.lead, number, 1)
        yield tuple(one)


def join_results(name: str, results: list, lead: int = 0) -> Any:
    """Join the results for the components, batches of one, into a nested tensor; plain if it has no ragged
    dimension."""
    if isinstance(results[0], tuple):
        several = {len(r) for r in results}
        if len(several) > 1:
            raise NoBatchError(
                f"{name}: gives {' or '.join(map(str, sorted(several)))} results, as the components differ"
            )
        return tuple([join_results(name, list(parts), lead) for parts in zip(*results, strict=True)])
    for i, r in enumerate(results):
        if r.ndim <= lead or r.shape[lead] != 1:
            raise NoBatchError(
                f"{name}: gives a result of shape {r.shape} for component {i} of a nested tensor, no batch of one"
            )
    if results[0].ndim == lead + 1:
        return cat(results, dim=lead)
    return joined([registry["squeeze"](r, lead) for r in results], lead)


# ------------------------------------------------------------------------------------------------- no components


def _result_without_components(op: Op, args: tuple, params: dict, known: Layout) -> Any:
    """Return the result for zero components, derived from one component whose ragged sizes are 1."""
    one = tuple([sample_component(a) if is_nested(a) else _one_row(a) if may_follow(op, a, known) else a for a in args])
    return without_components(call(op, one, params), known.lead)


def sample_component(x: Tensor) -> Tensor:
    """Return a batch of one component of ones (integers: zeros) with the sizes of a nested tensor, 1 for ragged ones.

    Gradients that flow to it, all zeros, continue to the tensor.
    """
    known = layout(x)
    shape = [1 if d == known.lead or d in known.ragged else size for d, size in enumerate(x.shape)]
    if not is_differentiable(x.dtype):
        return registry["zeros"](shape, dtype=x.dtype)
    return registry["ones"](shape, dtype=x.dtype) + registry["sum"](values(x))


def _one_row(a: Tensor) -> Tensor:
    return registry["zeros" if a.dtype.kind in "biu" else "ones"]((1, *a.shape[1:]), dtype=a.dtype)


def without_components(out: Any, lead: int) -> Any:
    """Return the nested tensor without components of the kind of a result."""
    if isinstance(out, tuple):
        return tuple([without_components(o, lead) for o in out])
    rows = narrow(out, lead, 0, 0)
    if out.ndim == lead + 1:
        return rows
    return over(reshape(rows, (*out.shape[:lead], 0, *out.shape[lead + 2 :])), no_components(1), 0, lead)
