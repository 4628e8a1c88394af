"""The law of nested tensors: an operator on them is that operator mapped over the components."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from retrograd.core import Op, Tensor, registry
from retrograd.core.level import generator_block
from retrograd.nested.buffer_layout import is_nested, layout
from retrograd.nested.components import components, joined
from retrograd.testing.calculus import agree, directions, gradients, is_float, leaf, replace_floats, run

REFUSALS = (ValueError, IndexError, RuntimeError, TypeError, NotImplementedError)


def law_nested(op: Op, args: tuple, params: dict) -> None:
    """On nested tensors the operator does what it does on stacked components, and on each of several sizes.

    Nested are the inputs of two dimensions and more, each alone and all together: of rows along the first dimension,
    and of such rows cut to different lengths, gradients included.  The same of samples stacked, where the operator
    takes them.  What mixes the rows may be refused.
    """
    if op.definition.accepts_nested:
        return
    with _quietly():
        for one, given in [(args, params), *_stacks(op, args, params)]:
            tensors = [i for i, a in enumerate(one) if isinstance(a, Tensor) and a.ndim >= 2 and a.shape[0]]
            for chosen in [(i,) for i in tensors] + [tuple(tensors)] * (len(tensors) > 1):
                ways = _check_stacked(op, one, given, chosen)
                if _may_change(op, one, chosen):
                    _check_ragged(op, one, given, chosen, ways)


def _stacks(op: Op, args: tuple, params: dict) -> Iterator[tuple[tuple, dict]]:
    """Calls of one dimension more, in front of all inputs or of the first, which params that name dimensions skip."""
    behind = {k: _behind(v) if k.startswith("dim") else v for k, v in params.items()}
    first = next((i for i, a in enumerate(args) if isinstance(a, Tensor)), 0)
    sizes = {s for a in args if isinstance(a, Tensor) for s in a.shape}
    count = next(n for n in (2, 3, 4, 5, 6, 7) if n not in sizes)
    for last in {len(args), first + 1}:
        more = tuple([_stack(a, count) if isinstance(a, Tensor) and i < last else a for i, a in enumerate(args)])
        with suppress(*REFUSALS):
            _strictly(op, more, behind)
            yield more, behind


def _behind(dims: Any) -> Any:
    """Dimensions counted with one in front."""
    if isinstance(dims, tuple):
        return tuple(map(_behind, dims))
    return dims + 1 if isinstance(dims, int) and dims >= 0 else dims


def _stack(a: Tensor, count: int) -> Tensor:
    """Several tensors, stacked: one, and that one with its elements in reverse order, in turn."""
    return Tensor(np.stack([np.flip(a.value) if i % 2 else a.value for i in range(count)]))


def _may_change(op: Op, args: tuple, chosen: tuple) -> bool:
    """Whether these inputs may have other sizes than the others: not if they are all made to fit each other."""
    floating = {i for i, a in enumerate(args) if is_float(a)}
    return not hasattr(op.definition, "constrain") or floating <= set(chosen)


@generator_block
def _quietly() -> Iterator[None]:
    """A block in which operators may be slow, and losses broadcast."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# ------------------------------------------------------------------------------------------- components of one size


def _check_stacked(op: Op, args: tuple, params: dict, chosen: tuple) -> list[tuple]:
    """Nested or stacked, components of one size give the same.

    Returned are the ways in which the operator maps over them: which inputs are taken row by row.
    """
    expected = run(op, args, params)
    maps = [rows for rows in _ways(args, chosen) if _same(expected, _in_rows(op, args, params, rows))]
    nested = tuple([joined(list(a)) if i in chosen else a for i, a in enumerate(args)])
    what = f"{op.name}: inputs {chosen} nested"
    try:
        found = run(op, nested, params)
    except REFUSALS as error:
        if maps or not str(error):
            raise AssertionError(f"{what}: refused, though the operator maps over the rows: {error!r}") from error
        return []
    assert len(found) == len(expected), f"{what}: {len(found)} results, not {len(expected)}"
    stacked = tuple(map(_stacked, found))
    for out, wanted in zip(stacked, expected, strict=True):
        assert (out.shape, out.dtype) == (wanted.shape, wanted.dtype), f"{what}: {out.aval}, not {wanted.aval}"
    if not op.definition.random:
        pairs = [(o, e) for o, e in zip(_observed(op, stacked), _observed(op, expected), strict=True) if e.numel()]
        agree(tuple([o for o, _ in pairs]), tuple([e for _, e in pairs]), what, 1e-9)
    return maps


def _ways(args: tuple, chosen: tuple) -> list[tuple]:
    """Which inputs may be taken row by row: the chosen ones, and with them those that have as many rows."""
    sizes = {args[i].shape[0] for i in chosen}
    if len(sizes) > 1:
        return []
    beside = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.ndim and a.shape[0] in sizes]
    return [chosen, tuple(beside)] if len(beside) > len(chosen) else [chosen]


def _in_rows(op: Op, args: tuple, params: dict, rows: tuple) -> tuple | None:
    """The results for each row, as a batch of one, one behind the other; None if there are none."""
    count = args[rows[0]].shape[0]
    each = _mapped(op, [_row(args, rows, i) for i in range(count)], params)
    if each is None:
        return None
    return tuple([registry["cat"](parts, dim=0) for parts in zip(*each, strict=True)])


def _row(args: tuple, rows: tuple, number: int) -> tuple:
    return tuple([a[number : number + 1] if i in rows else a for i, a in enumerate(args)])


def _mapped(op: Op, each: list[tuple], params: dict) -> list[tuple] | None:
    """The results for each of several calls; None if one is refused, or gives what is no batch of one."""
    try:
        results = [_strictly(op, one, params) for one in each]
    except REFUSALS:
        return None
    if len({len(r) for r in results}) > 1:
        return None
    for parts in zip(*results, strict=True):
        if any(p.shape[:1] != (1,) or p.ndim != parts[0].ndim for p in parts):
            return None
    return results


def _strictly(op: Op, args: tuple, params: dict) -> tuple:
    """The results, but what the shape rule refuses is refused, though the kernel may take it."""
    if not op.composite and not op.definition.ragged:
        op.definition.shape(*[a.aval if isinstance(a, Tensor) else a for a in args], **params)
    return run(op, args, params)


def _same(expected: tuple, found: tuple | None) -> bool:
    """Whether results are equal but for rounding."""
    if found is None:
        return False
    return all(
        e.shape == f.shape and e.dtype == f.dtype and np.allclose(e.value, f.value, 1e-9, 1e-9, equal_nan=True)
        for e, f in zip(expected, found, strict=True)
    )


def _stacked(out: Tensor) -> Tensor:
    """A nested tensor's components, stacked; other tensors as they are."""
    return Tensor(np.stack([c.value for c in components(out)], axis=layout(out).lead)) if is_nested(out) else out


def _observed(op: Op, outs: tuple) -> tuple:
    """What of the results is determined."""
    observe: Callable | None = getattr(op.definition, "observe", None)
    return tuple(observe(*outs)) if observe else outs


# ---------------------------------------------------------------------------------------- components of several sizes


def _check_ragged(op: Op, args: tuple, params: dict, chosen: tuple, ways: list[tuple]) -> None:
    """Components of several sizes give what the operator gives for each, as a batch of one, and its gradients."""
    for rows in ways:
        if not _maps_over_several(op, args, params, rows):
            continue
        for dims in _cut_dims(args[chosen[0]]):
            each = _cut(args, chosen, rows, dims)
            if each and _mapped(op, each, params) is not None:
                _compare(op, each, params, chosen, rows)
                return


def _maps_over_several(op: Op, args: tuple, params: dict, rows: tuple) -> bool:
    """Whether an operator that maps over rows does so if there are two in place of one."""
    if args[rows[0]].shape[0] > 1:
        return True
    more = tuple([registry["cat"]([a, a], dim=0) if i in rows else a for i, a in enumerate(args)])
    try:
        return _same(_strictly(op, more, params), _in_rows(op, more, params, rows))
    except REFUSALS:
        return False


def _cut_dims(first: Tensor) -> list[Callable[[Tensor], list[int]]]:
    """Along which dimensions components may differ in size: the first, the last, all that have the same size."""
    size, last = first.shape[1], first.shape[-1]
    return [
        lambda a: [1] if a.shape[1] == size else [],
        lambda a: [a.ndim - 1] if a.shape[-1] == last else [],
        lambda a: [d for d in range(1, a.ndim) if a.shape[d] == size],
    ]


def _cut(args: tuple, chosen: tuple, rows: tuple, dims: Callable[[Tensor], list[int]]) -> list[tuple]:
    """The arguments for each component, the second of which is shorter along these dimensions; [] if none can be."""
    if not any(args[i].shape[d] > 1 for i in chosen for d in dims(args[i])):
        return []
    count = args[chosen[0]].shape[0]
    each = [list(_row(args, rows, number % count)) for number in range(max(count, 2))]
    for i in chosen:
        each[1][i] = Tensor(_shorter(each[1][i].value, dims(args[i])))
    return list(map(tuple, each))


def _shorter(a: np.ndarray, dims: list[int]) -> np.ndarray:
    return a[tuple([slice(max(s - 1, 1)) if d in dims else slice(None) for d, s in enumerate(a.shape)])].copy()


def _compare(op: Op, each: list[tuple], params: dict, chosen: tuple, rows: tuple) -> None:
    """The operator on the components put together, and on each, if it has results and gradients for each."""
    what = f"{op.name}: inputs {chosen} nested, components of shapes {[one[chosen[0]].shape[1:] for one in each]}"
    try:
        leaves, each = _leaves(op, each, rows)
        expected = [out for one in each for out in _observed(op, run(op, one, params))]
        slopes = _pulled(op, expected, leaves)
    except REFUSALS:
        return
    outs = [_apart(out, len(each)) for out in run(op, _together(each, chosen, rows), params)]
    found = [out for one in zip(*outs, strict=True) for out in _observed(op, one)]
    for out, wanted in zip(found, expected, strict=True):
        assert (out.shape, out.dtype) == (wanted.shape, wanted.dtype), f"{what}: {out.aval}, not {wanted.aval}"
    if not op.definition.random:
        pairs = [(o, e) for o, e in zip(found, expected, strict=True) if e.numel()]
        agree(tuple([o for o, _ in pairs]), tuple([e for _, e in pairs]), what, 1e-9)
        agree(_pulled(op, found, leaves), slopes, f"{what}: gradients", 1e-8)


def _leaves(op: Op, each: list[tuple], rows: tuple) -> tuple[list[Tensor], list[tuple]]:
    """The floating tensors as leaves, of which those that are not taken row by row are the same for all components."""
    shared = tuple([leaf(a) if is_float(a) else a for a in each[0]])
    owned = [tuple([leaf(a) if is_float(a) else a for a in one]) for one in each]
    leaves = [a for i, a in enumerate(shared) if is_float(a) and i not in rows]
    leaves += [one[i] for one in owned for i in rows if is_float(one[i])]
    constrain: Callable = getattr(op.definition, "constrain", lambda *xs: xs)
    made = []
    for own in owned:
        one = tuple([a if i in rows else b for i, (a, b) in enumerate(zip(own, shared, strict=True))])
        made.append(replace_floats(one, constrain(*filter(is_float, one))))
    return leaves, made


def _together(each: list[tuple], chosen: tuple, rows: tuple) -> tuple:
    """The arguments for all components: nested where they are chosen, stacked where they are taken row by row."""
    args = list(each[0])
    for i in rows:
        column = [one[i] for one in each]
        args[i] = (
            joined([registry["reshape"](a, a.shape[1:]) for a in column])
            if i in chosen
            else registry["cat"](column, dim=0)
        )
    return tuple(args)


def _apart(out: Tensor, count: int) -> list[Tensor]:
    """The results for each component, as batches of one."""
    if is_nested(out):
        return [registry["unsqueeze"](c, 0) for c in components(out)]
    assert out.shape[:1] == (count,), f"a result of shape {out.shape} for {count} components"
    return [out[i : i + 1] for i in range(count)]


def _pulled(op: Op, outs: list[Tensor], leaves: list[Tensor]) -> tuple:
    """The gradients that fixed cotangents of the floating results give the leaves."""
    if not (op.differentiable or op.composite):
        return ()
    floating = tuple(filter(is_float, outs))
    found = gradients(floating, leaves, directions(floating, 1), create_graph=True)  # they share `constrain`
    return tuple([np.zeros(x.shape) if g is None else g for g, x in zip(found, leaves, strict=True)])
