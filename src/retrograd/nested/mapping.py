"""What comes last: operators that no rule takes, mapped over the components one by one."""

import warnings
from collections.abc import Iterator
from typing import Any

from retrograd.backend.ragged import RaggedSizeError, no_components
from retrograd.core import Op, Tensor, call, registry
from retrograd.core.examples import PerformanceWarning
from retrograd.core.source import user_line
from retrograd.nested.apart import otherwise
from retrograd.nested.components import components, joined
from retrograd.nested.buffer import over
from retrograd.nested.layout import Layout, is_nested, layout
from retrograd.ops.family import Along, Pointwise, Stacked
from retrograd.ops.view import cat, narrow, reshape, squeeze, unsqueeze


@otherwise
def composed_of_others(op: Op, args: tuple, params: dict) -> Any:
    """An operator that is made of others, unless it asks for the number that a ragged size is."""
    if not op.inlined:
        return NotImplemented
    try:
        return op.definition.compose(*args, **params)
    except RaggedSizeError:
        return NotImplemented


_told: set[str] = set()  # the operators of which the user has heard


@otherwise
def mapped(op: Op, args: tuple, params: dict) -> Any:
    """The operator on each component, as a batch of one; what it answers has the components in front again."""
    check_apart(op, args, params)
    if op.name not in _told:
        _told.add(op.name)
        text = f"{op.name}: at {user_line()}: runs on the components of a nested tensor one by one"
        warnings.warn(text, PerformanceWarning, stacklevel=2)
    return one_by_one(op, args, params, [follows(op, a, args) for a in args])


def one_by_one(op: Op, args: tuple, params: dict, followed: list[bool]) -> Any:
    """The operator on each component; plain tensors that are `followed` have a row for each along the first dimension."""
    known = layout(next(a for a in args if is_nested(a)))
    count = len(known.structure)
    if not count:
        return _of_none(op, args, params, known)
    results = [call(op, one, params) for one in _each(args, followed, count)]
    return together(op.name, results, known.lead)


def _each(args: tuple, followed: list[bool], count: int) -> Iterator[tuple]:
    """The arguments for each component: it, and what belongs to it, as batches of one; the others as they are."""
    nested = {i: components(a) for i, a in enumerate(args) if is_nested(a)}
    for i, parts in nested.items():
        if len(parts) != count:
            raise ValueError(f"nested tensors of {count} and {len(parts)} components do not go together")
    for number in range(count):
        one = list(args)
        for i, a in enumerate(args):
            if i in nested:
                one[i] = unsqueeze(nested[i][number], layout(a).lead)
            elif followed[i]:
                one[i] = narrow(a, 0, number, 1)
        yield tuple(one)


def together(name: str, results: list, lead: int = 0) -> Any:
    """The results for the components, batches of one, as one nested tensor; plain where nothing is left to be ragged."""
    if isinstance(results[0], tuple):
        return tuple([together(name, list(parts), lead) for parts in zip(*results, strict=True)])
    for i, r in enumerate(results):
        if r.ndim <= lead or r.shape[lead] != 1:
            raise RuntimeError(
                f"{name}: gives a result of shape {r.shape} for component {i} of a nested tensor, which is no batch of one"
            )
    if results[0].ndim == lead + 1:
        return cat(results, dim=lead)
    return joined([squeeze(r, lead) for r in results], lead)


def check_apart(op: Op, args: tuple, params: dict) -> None:
    """Refuse what would act along the dimension of the components, for there they differ in shape."""
    for a in filter(is_nested, args):
        lead, ndim = layout(a).lead, a.ndim
        named = [d for k, v in params.items() if k.startswith("dim") for d in (v if isinstance(v, tuple) else (v,))]
        if lead in [d % ndim for d in named if isinstance(d, int)]:
            raise RuntimeError(
                f"{op.name}: would act along dimension {lead}, across the components of a nested tensor, whose sizes "
                f"differ; see to_padded_tensor(), and values() for the rows of all components"
            )


def follows(op: Op, a: Any, args: tuple) -> bool:
    """Whether a plain operand has a row for each component along its first dimension: if it lines up with them."""
    if is_nested(a) or not getattr(a, "ndim", 0):
        return False
    nested = next(b for b in args if is_nested(b))
    known, of = layout(nested), op.definition
    lines_up = issubclass(of, Pointwise | Along) or (issubclass(of, Stacked) and len(of.cores) == 1)
    return lines_up and a.ndim == known.ndim and a.shape[0] == len(known.structure)


def _of_none(op: Op, args: tuple, params: dict, known: Layout) -> Any:
    """The result for no components at all, by way of one whose ragged sizes are 1."""
    one = [ones_for(a) if is_nested(a) else a for a in args]
    return nothing_like(call(op, tuple(one), params), known.lead)


def ones_for(x: Tensor) -> Tensor:
    """A batch of one component of ones, of the sizes that a nested tensor's components have, 1 for ragged ones."""
    known = layout(x)
    shape = [1 if d == known.lead or d in known.ragged else size for d, size in enumerate(x.shape)]
    return registry["ones"](shape, dtype=x.dtype)


def nothing_like(out: Any, lead: int) -> Any:
    """The nested tensor without components of what would be a result."""
    if isinstance(out, tuple):
        return tuple([nothing_like(o, lead) for o in out])
    rows = narrow(out, lead, 0, 0)
    if out.ndim == lead + 1:
        return rows
    return over(reshape(rows, (*out.shape[:lead], 0, *out.shape[lead + 2 :])), no_components(1), 0, lead)
