"""The law of nested tensors: an operator on them equals that operator mapped over the components."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from retrograd.core import Op, Tensor, registry
from retrograd.core.blocks import generator_block
from retrograd.nested.buffer_layout import get_layout, is_nested
from retrograd.nested.components import components, nest
from retrograd.ops.as_tensor import as_tensor
from retrograd.ops.batch_loop import DataDependent
from retrograd.testing.calculus import agree, directions, gradients, is_float, leaf, replace_floats, run

REFUSALS = (ValueError, IndexError, RuntimeError, TypeError, NotImplementedError)


def law_nested(op: Op, args: tuple, params: dict) -> None:
    """Check the operator on nested tensors against stacked components, and against each of several sizes.

    Nested are the inputs of two dimensions and more, each alone and all together: the rows along the first dimension,
    and such rows cut to different lengths, including gradients.  The same is checked for stacked samples, if the
    operator accepts them.  An operator that mixes rows may refuse.
    """
    if op.definition.accepts_nested:
        return
    with _ignore_warnings():
        for one, given in [(args, params), *_stacks(op, args, params)]:
            tensors = [i for i, a in enumerate(one) if isinstance(a, Tensor) and a.ndim >= 2 and a.shape[0]]
            for chosen in [(i,) for i in tensors] + [tuple(tensors)] * (len(tensors) > 1):
                row_choices = _check_stacked(op, one, given, chosen)
                if _may_change(op, one, chosen):
                    _check_ragged(op, one, given, chosen, row_choices)


def _stacks(op: Op, args: tuple, params: dict) -> Iterator[tuple[tuple, dict]]:
    """Yield calls with one more leading dimension in all inputs or in the first; dim params are shifted."""
    shifted = {k: _shift_dims(v) if k.startswith("dim") else v for k, v in params.items()}
    first = next((i for i, a in enumerate(args) if isinstance(a, Tensor)), 0)
    sizes = {s for a in args if isinstance(a, Tensor) for s in a.shape}
    count = next(n for n in (2, 3, 4, 5, 6, 7) if n not in sizes)
    for last in {len(args), first + 1}:
        more = tuple([_stack(a, count) if isinstance(a, Tensor) and i < last else a for i, a in enumerate(args)])
        with suppress(*REFUSALS):
            _run_with_shape_rule(op, more, shifted)
            yield more, shifted


def _shift_dims(dims: Any) -> Any:
    """Return dimensions shifted by a leading one."""
    if isinstance(dims, tuple):
        return tuple(map(_shift_dims, dims))
    return dims + 1 if isinstance(dims, int) and dims >= 0 else dims


def _stack(a: Tensor, count: int) -> Tensor:
    """Stack copies of a tensor, every second one with its elements reversed."""
    return as_tensor(np.stack([np.flip(a.value) if i % 2 else a.value for i in range(count)]))


def _may_change(op: Op, args: tuple, chosen: tuple) -> bool:
    """Whether these inputs may change their sizes: not if `constrain` ties all inputs together."""
    floating = {i for i, a in enumerate(args) if is_float(a)}
    return not hasattr(op.definition, "constrain") or floating <= set(chosen)


@generator_block
def _ignore_warnings() -> Iterator[None]:
    """Ignore warnings in the block, about slow operators and broadcast losses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# ------------------------------------------------------------------------------------------- components of one size


def _check_stacked(op: Op, args: tuple, params: dict, chosen: tuple) -> list[tuple]:
    """Check that nested and stacked components of one size give the same.

    Returns the ways in which the operator maps over them: which inputs are split into rows.
    """
    expected = run(op, args, params)
    maps = [rows for rows in _row_choices(args, chosen) if _all_close(expected, _run_rows(op, args, params, rows))]
    nested = tuple([nest(list(a)) if i in chosen else a for i, a in enumerate(args)])
    what = f"{op.name}: inputs {chosen} nested"
    try:
        found = run(op, nested, params)
    except REFUSALS as error:
        if maps or not str(error):
            raise AssertionError(f"{what}: refused, though the operator maps over the rows: {error!r}") from error
        return []
    assert len(found) == len(expected), f"{what}: {len(found)} results, not {len(expected)}"
    stacked = tuple(map(_stack_components, found))
    for out, wanted in zip(stacked, expected, strict=True):
        assert (out.shape, out.dtype) == (wanted.shape, wanted.dtype), f"{what}: {out.aval}, not {wanted.aval}"
    if not op.random:
        pairs = [(o, e) for o, e in zip(_observe(op, stacked), _observe(op, expected), strict=True) if e.numel()]
        agree(tuple([o for o, _ in pairs]), tuple([e for _, e in pairs]), what, 1e-9)
    return maps


def _row_choices(args: tuple, chosen: tuple) -> list[tuple]:
    """Return which inputs may be split into rows: the chosen ones, and all with as many rows."""
    sizes = {args[i].shape[0] for i in chosen}
    if len(sizes) > 1:
        return []
    same_size = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.ndim and a.shape[0] in sizes]
    return [chosen, tuple(same_size)] if len(same_size) > len(chosen) else [chosen]


def _run_rows(op: Op, args: tuple, params: dict, rows: tuple) -> tuple | None:
    """Return the results for each row, as a batch of one, concatenated; None if there are none."""
    count = args[rows[0]].shape[0]
    each = _run_each(op, [_row(args, rows, i) for i in range(count)], params)
    if each is None:
        return None
    return tuple([registry["cat"](parts, dim=0) for parts in zip(*each, strict=True)])


def _row(args: tuple, rows: tuple, number: int) -> tuple:
    return tuple([a[number : number + 1] if i in rows else a for i, a in enumerate(args)])


def _run_each(op: Op, each: list[tuple], params: dict) -> list[tuple] | None:
    """Return the results for each of several calls; None if one is refused, or is not a batch of one."""
    try:
        results = [_run_with_shape_rule(op, one, params) for one in each]
    except REFUSALS:
        return None
    if len({len(r) for r in results}) > 1:
        return None
    for parts in zip(*results, strict=True):
        if any(p.shape[:1] != (1,) or p.ndim != parts[0].ndim for p in parts):
            return None
    return results


def _run_with_shape_rule(op: Op, args: tuple, params: dict) -> tuple:
    """Return the results; apply the shape rule first, since a kernel may accept more."""
    if not op.composite and not issubclass(op.definition, DataDependent):
        op.definition.shape(*[a.aval if isinstance(a, Tensor) else a for a in args], **params)
    return run(op, args, params)


def _all_close(expected: tuple, found: tuple | None) -> bool:
    """Whether results are equal up to rounding."""
    if found is None:
        return False
    return all(
        e.shape == f.shape and e.dtype == f.dtype and np.allclose(e.value, f.value, 1e-9, 1e-9, equal_nan=True)
        for e, f in zip(expected, found, strict=True)
    )


def _stack_components(out: Tensor) -> Tensor:
    """Stack a nested tensor's components; return other tensors unchanged."""
    return as_tensor(np.stack([c.value for c in components(out)], axis=get_layout(out).lead)) if is_nested(out) else out


def _observe(op: Op, outs: tuple) -> tuple:
    """Return the determined part of the results."""
    observe: Callable | None = getattr(op.definition, "observe", None)
    return tuple(observe(*outs)) if observe else outs


# ---------------------------------------------------------------------------------------- components of several sizes


def _check_ragged(op: Op, args: tuple, params: dict, chosen: tuple, row_choices: list[tuple]) -> None:
    """Check that components of several sizes give the results and gradients of each, as a batch of one."""
    for rows in row_choices:
        if not _maps_over_several(op, args, params, rows):
            continue
        for dims in _cut_dims(args[chosen[0]]):
            each = _shorten_components(args, chosen, rows, dims)
            if each and _run_each(op, each, params) is not None:
                _compare(op, each, params, chosen, rows)
                return


def _maps_over_several(op: Op, args: tuple, params: dict, rows: tuple) -> bool:
    """Whether an operator that maps over one row does so for two."""
    if args[rows[0]].shape[0] > 1:
        return True
    more = tuple([registry["cat"]([a, a], dim=0) if i in rows else a for i, a in enumerate(args)])
    try:
        return _all_close(_run_with_shape_rule(op, more, params), _run_rows(op, more, params, rows))
    except REFUSALS:
        return False


def _cut_dims(first: Tensor) -> list[Callable[[Tensor], list[int]]]:
    """Return the choices of dimensions in which components may differ: the first, the last, all of equal size."""
    size, last = first.shape[1], first.shape[-1]
    return [
        lambda a: [1] if a.shape[1] == size else [],
        lambda a: [a.ndim - 1] if a.shape[-1] == last else [],
        lambda a: [d for d in range(1, a.ndim) if a.shape[d] == size],
    ]


def _shorten_components(args: tuple, chosen: tuple, rows: tuple, dims: Callable[[Tensor], list[int]]) -> list[tuple]:
    """Return the arguments for each component, the second of which is shorter along these dimensions; [] if
    impossible."""
    if not any(args[i].shape[d] > 1 for i in chosen for d in dims(args[i])):
        return []
    count = args[chosen[0]].shape[0]
    each = [list(_row(args, rows, number % count)) for number in range(max(count, 2))]
    for i in chosen:
        each[1][i] = as_tensor(_shorter(each[1][i].value, dims(args[i])))
    return list(map(tuple, each))


def _shorter(a: np.ndarray, dims: list[int]) -> np.ndarray:
    return a[tuple([slice(max(s - 1, 1)) if d in dims else slice(None) for d, s in enumerate(a.shape)])].copy()


def _compare(op: Op, each: list[tuple], params: dict, chosen: tuple, rows: tuple) -> None:
    """Compare the operator on the joined components with each of them, if it has results and gradients for each."""
    what = f"{op.name}: inputs {chosen} nested, components of shapes {[one[chosen[0]].shape[1:] for one in each]}"
    try:
        leaves, each = _leaves(op, each, rows)
        expected = [out for one in each for out in _observe(op, run(op, one, params))]
        slopes = _input_gradients(op, expected, leaves)
    except REFUSALS:
        return
    outs = [_split_components(out, len(each)) for out in run(op, _join_components(each, chosen, rows), params)]
    found = [out for one in zip(*outs, strict=True) for out in _observe(op, one)]
    for out, wanted in zip(found, expected, strict=True):
        assert (out.shape, out.dtype) == (wanted.shape, wanted.dtype), f"{what}: {out.aval}, not {wanted.aval}"
    if not op.random:
        pairs = [(o, e) for o, e in zip(found, expected, strict=True) if e.numel()]
        agree(tuple([o for o, _ in pairs]), tuple([e for _, e in pairs]), what, 1e-9)
        agree(_input_gradients(op, found, leaves), slopes, f"{what}: gradients", 1e-8)


def _leaves(op: Op, each: list[tuple], rows: tuple) -> tuple[list[Tensor], list[tuple]]:
    """Return the floating tensors as leaves; those that are not split into rows are shared by all components."""
    shared = tuple([leaf(a) if is_float(a) else a for a in each[0]])
    owned = [tuple([leaf(a) if is_float(a) else a for a in one]) for one in each]
    leaves = [a for i, a in enumerate(shared) if is_float(a) and i not in rows]
    leaves += [one[i] for one in owned for i in rows if is_float(one[i])]
    constrain: Callable = getattr(op.definition, "constrain", lambda *xs: xs)
    calls = []
    for own in owned:
        one = tuple([a if i in rows else b for i, (a, b) in enumerate(zip(own, shared, strict=True))])
        calls.append(replace_floats(one, constrain(*filter(is_float, one))))
    return leaves, calls


def _join_components(each: list[tuple], chosen: tuple, rows: tuple) -> tuple:
    """Return the arguments for all components: nested if chosen, stacked if split into rows."""
    args = list(each[0])
    for i in rows:
        column = [one[i] for one in each]
        args[i] = (
            nest([registry["reshape"](a, a.shape[1:]) for a in column])
            if i in chosen
            else registry["cat"](column, dim=0)
        )
    return tuple(args)


def _split_components(out: Tensor, count: int) -> list[Tensor]:
    """Return the results for each component, as batches of one."""
    if is_nested(out):
        return [registry["unsqueeze"](c, 0) for c in components(out)]
    assert out.shape[:1] == (count,), f"a result of shape {out.shape} for {count} components"
    return [out[i : i + 1] for i in range(count)]


def _input_gradients(op: Op, outs: list[Tensor], leaves: list[Tensor]) -> tuple:
    """Return the gradients of the leaves for fixed cotangents of the floating results."""
    if not (op.differentiable or op.composite):
        return ()
    floating = tuple(filter(is_float, outs))
    found = gradients(floating, leaves, directions(floating, 1), create_graph=True)  # they share `constrain`
    return tuple([np.zeros(x.shape) if g is None else g for g, x in zip(found, leaves, strict=True)])
