"""What comes last: operators that no rule takes, mapped over the components one by one."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice
from typing import Any

from retrograd.backend.ragged import no_components
from retrograd.core import Op, Tensor, call, registry
from retrograd.core.batch_loop import PerformanceWarning
from retrograd.core.source_location import user_line
from retrograd.nested.buffer import over, values
from retrograd.nested.buffer_layout import Layout, is_nested, layout
from retrograd.nested.components import components, joined
from retrograd.nested.dispatch import DOES_NOT_FIT, AcrossError, NoBatchError, composed, otherwise
from retrograd.nested.fallback_checks import check_apart, check_batch, check_shapes
from retrograd.ops.family import Along, Pointwise, Stacked, canonical_dims
from retrograd.ops.view import cat, narrow, reshape, unsqueeze


@otherwise
def composed_of_others(op: Op, args: tuple, params: dict) -> Any:
    """An operator that is made of others, unless these want numbers where sizes are ragged."""
    return op.definition.compose(*args, **params) if op.composite else NotImplemented


_told: set[str] = set()  # the operators of which the user has heard


@otherwise
def mapped(op: Op, args: tuple, params: dict) -> Any:
    """The operator on each component, as a batch of one; what it answers has the components in front again."""
    check_apart(op, args, params)
    return map_over(op, args, params)


def map_over(op: Op, args: tuple, params: dict) -> Any:
    """The operator on each component, with what goes with it."""
    known = layout(next(a for a in args if is_nested(a)))
    if not len(known.structure):
        return _of_none(op, args, params, known)
    parts = _parts(op.name, args)
    first, followed = _first(op, args, parts, params, known)
    each = islice(_each(args, parts, followed, known), 1, None)
    out = together(op.name, [first, *_results(op, each, params, 1)], known.lead)
    tell(op.name)  # only now, for a call that fails is not slow
    return out


composed("grid_sample", "istft")(mapped)  # these look at sizes


@composed("diag_embed", "place_diagonal")
def _embedded(op: Op, args: tuple, params: dict) -> Any:
    """The dimensions are those of the result, which has one more."""
    ndim, dims = args[0].ndim + 1, (params["dim1"], params["dim2"])
    if layout(args[0]).lead in canonical_dims(op.name, dims, ndim):
        raise AcrossError(f"{op.name}: dimension {layout(args[0]).lead} has the components of a nested tensor")
    return map_over(op, args, params)


def tell(name: str) -> None:
    """Warn, once for each operator, that it runs slower than it could."""
    if name not in _told:
        text = f"{name}: at {user_line()}: runs on the components of a nested tensor one by one"
        warnings.warn(text, PerformanceWarning, stacklevel=2)
        _told.add(name)


def forget() -> None:
    """Warn anew of all operators."""
    _told.clear()


# ----------------------------------------------------------------------------------------- arguments for each component


def _first(op: Op, args: tuple, parts: dict, params: dict, known: Layout) -> tuple[Any, list[bool]]:
    """The result for the first component, and which plain tensors have a row for each component.

    Those are the fewest of the tensors which can be such that the operator gives a batch of one.
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
                together(op.name, [out], known.lead)
                batches = [is_nested(a) or f for a, f in zip(args, followed, strict=True)]
                check_batch(op, one, batches, params, out, known.lead)
            except DOES_NOT_FIT as error:
                refused = refused or error
            else:
                return out, followed
    assert refused is not None
    raise refused


def may_follow(op: Op, a: Any, known: Layout) -> bool:
    """Whether a plain operand may have a row for each component: one that broadcasts must line up with them."""
    if is_nested(a) or getattr(a, "ndim", 0) <= known.lead or a.shape[known.lead] != len(known.structure):
        return False
    of = op.definition
    broadcasts = issubclass(of, Pointwise | Along) or (issubclass(of, Stacked) and len(of.cores) == 1)
    return a.ndim == known.ndim if broadcasts else True


def one_by_one(op: Op, args: tuple, params: dict, followed: list[bool]) -> Any:
    """The operator on each component; plain tensors that are `followed` have a row for each."""
    known = layout(next(a for a in args if is_nested(a)))
    if not len(known.structure):
        return _of_none(op, args, params, known)
    each = _each(args, _parts(op.name, args), followed, known)
    return together(op.name, list(_results(op, each, params)), known.lead)


def _results(op: Op, each: Iterable[tuple], params: dict, number: int = 0) -> Iterator[Any]:
    """The results for components, of which the first has this number."""
    for i, one in enumerate(each, number):
        try:
            yield call(op, one, params)
        except Exception as error:
            error.add_note(f"This is component {i} of a nested tensor, as a batch of one.")
            raise


def _parts(name: str, args: tuple) -> dict[int, Sequence[Tensor]]:
    """The components of each nested tensor, of which there must be as many, by its place among the arguments."""
    parts = {i: components(a) for i, a in enumerate(args) if is_nested(a)}
    count, *others = map(len, parts.values())
    for other in others:
        if other != count:
            raise ValueError(f"{name}: the nested tensors have {count} and {other} components")
    return parts


def _each(args: tuple, parts: dict, followed: list[bool], known: Layout) -> Iterator[tuple]:
    """The arguments for each component: it, and what belongs to it, as batches of one; the others as they are."""
    for number in range(len(known.structure)):
        one = list(args)
        for i, a in enumerate(args):
            if i in parts:
                one[i] = unsqueeze(parts[i][number], layout(a).lead)
            elif followed[i]:
                one[i] = narrow(a, known.lead, number, 1)
        yield tuple(one)


def together(name: str, results: list, lead: int = 0) -> Any:
    """The results for the components, batches of one, as a nested tensor; plain if there is nothing to be ragged."""
    if isinstance(results[0], tuple):
        several = {len(r) for r in results}
        if len(several) > 1:
            raise NoBatchError(
                f"{name}: gives {' or '.join(map(str, sorted(several)))} results, as the components differ"
            )
        return tuple([together(name, list(parts), lead) for parts in zip(*results, strict=True)])
    for i, r in enumerate(results):
        if r.ndim <= lead or r.shape[lead] != 1:
            raise NoBatchError(
                f"{name}: gives a result of shape {r.shape} for component {i} of a nested tensor, no batch of one"
            )
    if results[0].ndim == lead + 1:
        return cat(results, dim=lead)
    return joined([registry["squeeze"](r, lead) for r in results], lead)


# ------------------------------------------------------------------------------------------------- no components


def _of_none(op: Op, args: tuple, params: dict, known: Layout) -> Any:
    """The result for no components at all, by way of one whose ragged sizes are 1."""
    one = tuple([ones_for(a) if is_nested(a) else _one_row(a) if may_follow(op, a, known) else a for a in args])
    return nothing_like(call(op, one, params), known.lead)


def ones_for(x: Tensor) -> Tensor:
    """A batch of one component of ones (integers: zeros), of the sizes that a nested tensor's have, 1 for ragged ones.

    Gradients that flow to it, all zeros, flow on to the tensor.
    """
    known = layout(x)
    shape = [1 if d == known.lead or d in known.ragged else size for d, size in enumerate(x.shape)]
    if x.dtype.kind not in "fc":
        return registry["zeros"](shape, dtype=x.dtype)
    return registry["ones"](shape, dtype=x.dtype) + registry["sum"](values(x))


def _one_row(a: Tensor) -> Tensor:
    return registry["zeros" if a.dtype.kind in "biu" else "ones"]((1, *a.shape[1:]), dtype=a.dtype)


def nothing_like(out: Any, lead: int) -> Any:
    """The nested tensor without components of what would be a result."""
    if isinstance(out, tuple):
        return tuple([nothing_like(o, lead) for o in out])
    rows = narrow(out, lead, 0, 0)
    if out.ndim == lead + 1:
        return rows
    return over(reshape(rows, (*out.shape[:lead], 0, *out.shape[lead + 2 :])), no_components(1), 0, lead)
