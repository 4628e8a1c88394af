"""The fallback: map operators without a rule over the components one by one."""

from collections.abc import Iterable, Iterator
from itertools import combinations, islice
from typing import Any

from retrograd.backend.ragged import no_components
from retrograd.core import Op, Tensor, call, registry
from retrograd.core.dtype import is_differentiable
from retrograd.foundation.source_location import user_line, warn_user
from retrograd.nested.buffer import values, wrap_buffer
from retrograd.nested.buffer_layout import Layout, get_layout, is_nested
from retrograd.nested.components import components, nest
from retrograd.nested.dispatch import (
    RULE_ERRORS,
    AcrossComponentsError,
    NotBatchOfOneError,
    register_fallback,
    rule_for,
)
from retrograd.nested.fallback_checks import check_batch, check_dims, check_shapes
from retrograd.ops.batch_loop import PerformanceWarning
from retrograd.ops.family import AlongDims, CoreDims, Pointwise, canonical_dims
from retrograd.ops.view import cat, narrow, reshape, unsqueeze


@register_fallback
def run_composite(op: Op, args: tuple, params: dict) -> Any:
    """Run a composite operator, unless it needs integers for ragged sizes."""
    return op.definition.compose(*args, **params) if op.composite else NotImplemented


_warned: set[str] = set()  # the operators that have been warned about


@register_fallback
def loop_over_components(op: Op, args: tuple, params: dict) -> Any:
    """Map the operator over the components, as batches of one; the result has the components in front."""
    check_dims(op, args, params)
    return map_components(op, args, params)


def map_components(op: Op, args: tuple, params: dict) -> Any:
    """Map the operator over the components and the rows of plain tensors that belong to them."""
    layout = get_layout(next(a for a in args if is_nested(a)))
    if not len(layout.structure):
        return _result_without_components(op, args, params, layout)
    parts = _components_by_argument(op.name, args)
    first, batched = _run_first(op, args, parts, params, layout)
    each = islice(_component_arguments(args, parts, batched, layout), 1, None)
    out = join_results(op.name, [first, *_run_each(op, each, params, 1)], layout.lead)
    warn_once(op.name)  # only now, because a call that fails should not warn
    return out


rule_for("grid_sample", "istft")(loop_over_components)  # these read sizes


@rule_for("diag_embed", "diagonal_backward")
def _map_diag_embed(op: Op, args: tuple, params: dict) -> Any:
    """Map the operator, whose dimensions count in the result, which has one more."""
    ndim, dims = args[0].ndim + 1, (params["dim1"], params["dim2"])
    if get_layout(args[0]).lead in canonical_dims(op.name, dims, ndim):
        raise AcrossComponentsError(
            f"{op.name}: dimension {get_layout(args[0]).lead} has the components of a nested tensor"
        )
    return map_components(op, args, params)


def warn_once(name: str) -> None:
    """Warn, once for each operator, that it loops over the components."""
    if name not in _warned:
        text = f"{name}: at {user_line()}: runs on the components of a nested tensor one by one"
        warn_user(text, PerformanceWarning)
        _warned.add(name)


def reset_warnings() -> None:
    """Forget which operators have been warned about."""
    _warned.clear()


# ----------------------------------------------------------------------------------------- arguments for each component


def _run_first(op: Op, args: tuple, parts: dict, params: dict, layout: Layout) -> tuple[Any, list[bool]]:
    """Return the result for the first component, and which plain tensors have a row for each component.

    The choice is the smallest set of candidates with which the operator returns a batch of one.
    """
    candidates = [i for i, a in enumerate(args) if may_have_rows(op, a, layout)]
    first_error = None
    for number in range(len(candidates) + 1) if len(candidates) < 5 else (0, 1, len(candidates)):
        for subset in combinations(candidates, number):
            batched = [i in subset for i in range(len(args))]
            try:
                example = next(_component_arguments(args, parts, batched, layout))
                check_shapes(op, example, params)
                out = call(op, example, params)
                join_results(op.name, [out], layout.lead)
                batches = [is_nested(a) or f for a, f in zip(args, batched, strict=True)]
                check_batch(op, example, batches, params, out, layout.lead)
            except RULE_ERRORS as error:
                first_error = first_error or error
            else:
                return out, batched
    assert first_error is not None
    raise first_error


def may_have_rows(op: Op, a: Any, layout: Layout) -> bool:
    """Whether a plain operand may have a row for each component; if it broadcasts, its dimensions must align."""
    if is_nested(a) or getattr(a, "ndim", 0) <= layout.lead or a.shape[layout.lead] != len(layout.structure):
        return False
    of = op.definition
    broadcasts = issubclass(of, Pointwise | AlongDims) or (issubclass(of, CoreDims) and len(of.cores) == 1)
    return a.ndim == layout.ndim if broadcasts else True


def run_per_component(op: Op, args: tuple, params: dict, batched: list[bool]) -> Any:
    """Loop over the components; plain tensors that are `batched` have a row for each."""
    layout = get_layout(next(a for a in args if is_nested(a)))
    if not len(layout.structure):
        return _result_without_components(op, args, params, layout)
    each = _component_arguments(args, _components_by_argument(op.name, args), batched, layout)
    return join_results(op.name, list(_run_each(op, each, params)), layout.lead)


def _run_each(op: Op, each: Iterable[tuple], params: dict, number: int = 0) -> Iterator[Any]:
    """Yield the results for components; the first has index `number`."""
    for i, example in enumerate(each, number):
        try:
            yield call(op, example, params)
        except Exception as error:
            error.add_note(f"This is component {i} of a nested tensor, as a batch of one.")
            raise


def _components_by_argument(name: str, args: tuple) -> dict[int, tuple[Tensor, ...]]:
    """Return the components of each nested tensor by argument index; their numbers must agree."""
    parts = {i: components(a) for i, a in enumerate(args) if is_nested(a)}
    count, *others = map(len, parts.values())
    for other in others:
        if other != count:
            raise ValueError(f"{name}: the nested tensors have {count} and {other} components")
    return parts


def _component_arguments(args: tuple, parts: dict, batched: list[bool], layout: Layout) -> Iterator[tuple]:
    """Yield the arguments for each component: nested and followed ones as batches of one, the others unchanged."""
    for number in range(len(layout.structure)):
        example = list(args)
        for i, a in enumerate(args):
            if i in parts:
                example[i] = unsqueeze(parts[i][number], get_layout(a).lead)
            elif batched[i]:
                example[i] = narrow(a, layout.lead, number, 1)
        yield tuple(example)


def join_results(name: str, results: list, lead: int = 0) -> Any:
    """Join the results for the components, batches of one, into a nested tensor; plain if it has no ragged
    dimension."""
    if isinstance(results[0], tuple):
        several = {len(r) for r in results}
        if len(several) > 1:
            raise NotBatchOfOneError(
                f"{name}: gives {' or '.join(map(str, sorted(several)))} results, as the components differ"
            )
        return tuple([join_results(name, list(parts), lead) for parts in zip(*results, strict=True)])
    for i, r in enumerate(results):
        if r.ndim <= lead or r.shape[lead] != 1:
            raise NotBatchOfOneError(
                f"{name}: gives a result of shape {r.shape} for component {i} of a nested tensor, no batch of one"
            )
    if results[0].ndim == lead + 1:
        return cat(results, dim=lead)
    return nest([registry["squeeze"](r, lead) for r in results], lead)


# ------------------------------------------------------------------------------------------------- no components


def _result_without_components(op: Op, args: tuple, params: dict, layout: Layout) -> Any:
    """Return the result for zero components, derived from one component whose ragged sizes are 1."""
    example = tuple(
        [sample_component(a) if is_nested(a) else _sample_row(a) if may_have_rows(op, a, layout) else a for a in args]
    )
    return drop_components(call(op, example, params), layout.lead)


def sample_component(x: Tensor) -> Tensor:
    """Return a batch of one component of ones (integers: zeros) with the sizes of a nested tensor, 1 for ragged ones.

    Gradients that flow to it, all zeros, continue to the tensor.
    """
    layout = get_layout(x)
    shape = [1 if d == layout.lead or d in layout.ragged else size for d, size in enumerate(x.shape)]
    if not is_differentiable(x.dtype):
        return registry["zeros"](shape, dtype=x.dtype)
    return registry["ones"](shape, dtype=x.dtype) + registry["sum"](values(x))


def _sample_row(a: Tensor) -> Tensor:
    return registry["zeros" if a.dtype.kind in "biu" else "ones"]((1, *a.shape[1:]), dtype=a.dtype)


def drop_components(out: Any, lead: int) -> Any:
    """Return the nested tensor without components of the kind of a result."""
    if isinstance(out, tuple):
        return tuple([drop_components(o, lead) for o in out])
    rows = narrow(out, lead, 0, 0)
    if out.ndim == lead + 1:
        return rows
    return wrap_buffer(reshape(rows, (*out.shape[:lead], 0, *out.shape[lead + 2 :])), no_components(1), 0, lead)
