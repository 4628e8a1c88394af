"""The laws: `law_<name>(op, args, params)` raises AssertionError if it is violated."""

import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from retrograd import fx
from retrograd.autograd.forward_ad import dual_level, make_dual, unpack_dual
from retrograd.core import Aval, Op, Tensor, registry
from retrograd.core.dtype import real_of
from retrograd.core.engine import is_fresh
from retrograd.core.tensor import share_real_dtype
from retrograd.func import jet, vmap
from retrograd.levels.sparsity_level import PatternLevel
from retrograd.ops.as_tensor import as_tensor
from retrograd.ops.family import Pointwise
from retrograd.ops.pointwise import real_part
from retrograd.testing.bfloat16_law import law_bfloat16
from retrograd.testing.calculus import (
    agree,
    as_float_map,
    dense,
    difference,
    directions,
    gradients,
    inner,
    is_float,
    leaf,
    precision,
    pull,
    push,
    run,
    seeded,
)
from retrograd.testing.closeness import assert_close
from retrograd.testing.nested_law import law_nested
from retrograd.testing.oracle_law import law_oracle
from retrograd.testing.writes_law import law_views, law_writes


def shape_rule(op: Op, args: tuple, params: dict) -> tuple[Aval, ...]:
    """Return the result of the shape rule for these arguments."""
    result = op.definition.shape(*[a.aval if isinstance(a, Tensor) else a for a in args], **params)
    return result if isinstance(result, tuple) else (result,)


def law_shape(op: Op, args: tuple, params: dict) -> None:
    """Check that the shape rule predicts the shape and dtype of the result.  (Composites have none.)"""
    if not op.composite:
        predicted, got = shape_rule(op, args, params), tuple(out.aval for out in run(op, args, params))
        assert predicted == got, f"{op.name}: the shape rule says {predicted}, the result is {got}"


def law_jvp(op: Op, args: tuple, params: dict) -> None:
    """Check the forward derivative along each input, and along all at once, against finite differences."""
    f, xs = as_float_map(op, args, params)
    ts = directions(xs, 1)
    for chosen in [(i,) for i in range(len(xs))] + [tuple(range(len(xs)))] * (len(xs) > 1):
        part = _restrict_to(f, xs, chosen)
        at, along = tuple(xs[i] for i in chosen), tuple(ts[i] for i in chosen)
        out, tangent = push(part, at, along)
        expected = difference(part, at, along)
        agree(
            dense(tangent, out),
            expected,
            f"{op.name}: tangent along inputs {chosen}",
            precision((*xs, *out))[1] * 10,
        )


def law_dual_level(op: Op, args: tuple, params: dict) -> None:
    """Check that a dual level gives the tangents of `jvp`, along all inputs at once."""
    f, xs = as_float_map(op, args, params)
    ts = directions(xs, 1)
    out, expected = push(f, xs, ts)
    with dual_level():
        found = tuple(unpack_dual(o).tangent for o in f(*map(make_dual, xs, ts)))
    agree(dense(found, out), dense(expected, out), f"{op.name}: tangent at a dual level", precision((*xs, *out))[1])


def _restrict_to(f: Callable, xs: tuple, chosen: tuple) -> Callable:
    """Return `f` as a map of the chosen inputs, the others fixed."""

    def part(*ys):
        full = list(xs)
        for i, y in zip(chosen, ys, strict=True):
            full[i] = y
        return f(*full)

    return part


def law_vjp(op: Op, args: tuple, params: dict) -> None:
    """Check <vjp g, t> = <g, Df t>, Df t by differences: for each input alone, and for all at once."""
    f, xs = as_float_map(op, args, params)
    outs = f(*xs)
    gs, ts = directions(outs, 2), directions(xs, 1)
    all_at_once = pull(f, xs, gs)
    for i, x in enumerate(xs):
        expected = inner(gs, difference(_restrict_to(f, xs, (i,)), (x,), (ts[i],)))
        for cotangent in (pull(f, xs, gs, argnums=(i,))[0], all_at_once[i]):
            assert cotangent is None or cotangent.aval == x.aval, (
                f"{op.name}: the cotangent of {x.aval} is {cotangent.aval}"
            )
            actual = inner((cotangent,), (ts[i],))
            agree(
                (actual,),
                (expected,),
                f"{op.name}: <vjp g, t> for input {i}",
                precision((*xs, *outs))[1] * 10,
            )


def law_reverse_over_reverse(op: Op, args: tuple, params: dict) -> None:
    """Check the derivative of <vjp(g), t>, of all inputs together, with respect to each input and to g."""
    f, xs = as_float_map(op, args, params)
    outs = f(*xs)
    n, ts = len(xs), directions(xs, 1)

    def slope(*operands):
        """Return <vjp(g), t> for both = (*inputs, *cotangents), in the graph of all of them."""
        found = gradients(f(*operands[:n]), list(operands[:n]), operands[n:], create_graph=True)
        terms = [real_part((g * t).sum()) for g, t in zip(found, ts, strict=True) if g is not None]
        return (sum(terms[1:], terms[0]),)

    at = (*xs, *directions(outs, 2))
    if not any(out.requires_grad for out in f(*map(leaf, xs))):
        return
    if all(g is None for g in pull(f, xs, at[n:])):  # a constant, such as the norm of order 0
        return
    us = directions(at, 3)
    second = pull(slope, at, (as_tensor(np.ones((), real_of(xs[0].dtype))),))
    for i, u in enumerate(us):
        expected = difference(_restrict_to(lambda *y: slope(*map(leaf, y)), at, (i,)), (at[i],), (u,))
        actual = inner((second[i],), (u,))
        agree((actual,), expected, f"{op.name}: second derivative along {i}", precision((*xs, *outs))[1] * 100)


def law_forward_over_reverse(op: Op, args: tuple, params: dict) -> None:
    """Check the tangent of the cotangents against finite differences."""
    f, xs = as_float_map(op, args, params)
    if not xs:
        return
    outs = f(*xs)
    gs, us = directions(outs, 2), directions(xs, 3)

    def cotangents(*ys):
        return tuple(g for g in pull(f, ys, gs) if g is not None)

    out, tangent = push(cotangents, xs, us)
    what = f"{op.name}: forward over reverse"
    agree(dense(tangent, out), difference(cotangents, xs, us), what, precision((*xs, *outs))[1] * 100)


def law_jet(op: Op, args: tuple, params: dict) -> None:
    """Check the first three Taylor-mode derivatives along a curve against nested derivatives."""
    f, xs = as_float_map(op, args, params)
    if not xs or not f(*xs):
        return
    vs, ws = directions(xs, 1), directions(xs, 2)
    found = jet(f, xs, [[v, 2 * w, 0] for v, w in zip(vs, ws, strict=True)])[1]

    def along(t):
        return f(*[x + t * v + t * t * w for x, v, w in zip(xs, vs, ws, strict=True)])

    for k in range(3):
        along = _slope(along)
        what = f"{op.name}: derivative {k + 1} along a curve"
        agree(tuple(terms[k] for terms in found), along(as_tensor(np.zeros(()))), what, 1e-9)


def _slope(f: Callable) -> Callable:
    """Return the derivative of a function of a number."""

    def slope(t):
        out, tangent = push(f, (t,), (as_tensor(np.ones(())),))
        return dense(tangent, out)

    return slope


def law_vmap(op: Op, args: tuple, params: dict) -> None:
    """Check that a batch gives the results of each example, for any batched inputs and dimensions."""
    tensors = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    every = [c for k in range(1, len(tensors) + 1) for c in combinations(tensors, k)]
    for chosen in every if len(tensors) < 4 else [*[(i,) for i in tensors], tuple(tensors)]:
        examples = [args, _reverse_elements(op, args, params, chosen), args]
        expected = [run(op, example, params) for example in examples]
        for dims in _in_dims(args, chosen):
            check_vmap(op, params, examples, dims, expected)


def _reverse_elements(op: Op, args: tuple, params: dict, chosen: tuple) -> tuple:
    """Return another example: the chosen inputs with reversed elements, if the operator accepts them."""
    other = tuple(as_tensor(np.flip(a.value).copy()) if i in chosen else a for i, a in enumerate(args))
    return args if _refusal(op, other, params) else other


def _in_dims(args: tuple, chosen: tuple) -> list[list[int | None]]:
    """Return batch dimensions: first, last, and last in the last input only; None for inputs that are not chosen."""
    front = [0 if i in chosen else None for i in range(len(args))]
    back = [a.ndim if i in chosen else None for i, a in enumerate(args)]
    return [front, back, [*front[: chosen[-1]], back[chosen[-1]], *front[chosen[-1] + 1 :]]]


def check_vmap(op: Op, params: dict, examples: list, dims: list, expected: list) -> None:
    """Compare the operator on a batch of examples, stacked along `dims`, with its results on each."""
    columns = list(zip(*examples, strict=True))
    stacked = [
        column[0] if d is None else as_tensor(np.stack([a.value for a in column], axis=d))
        for column, d in zip(columns, dims, strict=True)
    ]
    f = vmap(lambda *xs: run(op, xs, params), tuple(dims), randomness="same")
    for i, out in enumerate(f(*stacked)):
        alone = [outs[i] for outs in expected]
        what = f"{op.name}: output {i} of a batch, stacked along {dims}"
        assert (out.shape[1:], out.dtype) == (alone[0].shape, alone[0].dtype), (
            f"{what}: {out.aval}, not {alone[0].aval}"
        )
        agree((out,), (np.stack([o.value for o in alone]),), what, 1e-9)


def law_pattern(op: Op, args: tuple, params: dict) -> None:
    """Check that the sparsity pattern of the Jacobian for an input covers all its nonzero entries."""
    f, xs = as_float_map(op, args, params)
    for i, x in enumerate(xs):
        part, unknowns = _restrict_to(f, xs, (i,)), np.eye(x.numel(), dtype=x.dtype)
        with PatternLevel() as level:
            patterns = [level.pattern(out).toarray() for out in part(level.input(x))]
        for j, unit in enumerate(unknowns):
            _, tangents = push(part, (x,), (as_tensor(unit.reshape(x.shape)),))
            for pattern, t in zip(patterns, tangents, strict=True):
                lacks = t is not None and (t.value.ravel() != 0) & ~pattern[:, j]
                assert not np.any(lacks), f"{op.name}: the pattern lacks entries of element {j} of input {i}"


def law_traced(op: Op, args: tuple, params: dict) -> None:
    """Check that the operator's traced graph, run on the same inputs, gives the same result."""
    tensors = tuple(a for a in args if isinstance(a, Tensor))

    def f(*values):
        left = iter(values)
        return run(op, tuple(next(left) if isinstance(a, Tensor) else a for a in args), params)

    if tensors:
        graph = fx.trace(f, *tensors)
        with seeded():
            again = graph(*tensors)
        for traced, direct in zip(again, f(*tensors), strict=True):
            assert_close(traced, direct, rtol=0.0, atol=0.0, equal_nan=True)


def law_memory(op: Op, args: tuple, params: dict) -> None:
    """Check that a rule's result has its own memory or views the cotangent, never an input or output.

    The engine adds to such memory and returns it to users as `.grad`.
    """
    f, xs = as_float_map(op, args, params)
    leaves = tuple(map(leaf, xs))
    outs = f(*leaves)
    if op.composite or not xs or not outs or not outs[0].requires_grad or hasattr(op.definition, "observe"):
        return
    fn, gs = outs[0]._grad_fn, directions(outs, 2)
    g: Any = gs[0] if fn.out_avals is None else _fill_missing(fn, outs, gs)
    for i, edge in enumerate(fn.edges):
        for result in _results(fn, i, g) if edge is not None else ():
            for tensor in (*xs, *outs):
                assert not np.shares_memory(result.value, tensor.value), (
                    f"{op.name}: the cotangent of input {i} is shared"
                )
            if is_fresh(result, g):
                assert not np.shares_memory(result.value, g.value), f"{op.name}: input {i} looks fresh but is g"


def _fill_missing(fn: Any, outs: tuple, gs: tuple) -> tuple:
    """Return a cotangent for every output of a node, zeros for missing ones."""
    full = [as_tensor(np.zeros(aval.shape, aval.dtype)) for aval in fn.out_avals]
    for out, g in zip(outs, gs, strict=True):
        full[out.output_nr] = g
    return tuple(full)


def _results(fn: Any, i: int, g: Any) -> list:
    last = fn.op.last
    cotangents = fn.vjp(last, g)[i - last] if i >= last and fn.op.variadic else fn.vjp(i, g)
    return [] if cotangents is None else [cotangents]


def law_no_silent_zero(op: Op, args: tuple, params: dict) -> None:
    """Check that results without derivatives do not require grad, and that inputs without a rule raise an error."""
    if op.composite:
        return
    for i, a in enumerate(args):
        if not is_float(a):
            continue
        tracked = (*args[:i], leaf(a), *args[i + 1 :])
        if not op.differentiable:
            assert not any(out.requires_grad for out in run(op, tracked, params)), f"{op.name}: requires a gradient"
        elif op.rules[min(i, op.last)] is None and any(map(is_float, run(op, args, params))):
            _assert_raises(op, tracked, params, op.schema.inputs[min(i, op.last)].name)


def _assert_raises(op: Op, args: tuple, params: dict, name: str) -> None:
    try:
        run(op, args, params)
    except NotImplementedError as error:
        message = str(error)
    else:
        raise AssertionError(f"{op.name}: the missing gradient for {name!r} is not refused")
    for word in (op.name, repr(name)):
        assert word in message, f"{op.name}: the refusal does not say {word}: {message}"


# -------------------------------------------------------------------------------------- odd inputs

REFUSALS = (ValueError, IndexError, RuntimeError, TypeError)


def law_empty(op: Op, args: tuple, params: dict) -> None:
    """Check shape rule and cotangents for inputs that are empty along one dimension."""
    sizes = {s for a in args if isinstance(a, Tensor) for s in a.shape}
    for size in sizes:
        _check_variant(op, tuple(_empty_along(a, size) for a in args), params)


def _empty_along(a: Any, size: int) -> Any:
    if not isinstance(a, Tensor):
        return a
    return as_tensor(a.value[tuple(slice(0 if s == size else s) for s in a.shape)].copy())


def _check_variant(op: Op, args: tuple, params: dict) -> bool:
    """Check shape rule and cotangents if the kernel accepts the arguments; return whether it did."""
    try:
        run(op, args, params)
    except REFUSALS:
        return False
    law_shape(op, args, params)
    f, xs = as_float_map(op, args, params)
    for x, g in zip(xs, pull(f, xs, directions(f(*xs), 2)), strict=True):
        assert g is None or g.aval == x.aval, f"{op.name}: the cotangent of {x.aval} is {g.aval}"
    return True


def law_no_dimensions(op: Op, args: tuple, params: dict) -> None:
    """Check shape rule and cotangents for 0-d inputs, if the operator accepts them."""
    first = tuple(
        as_tensor(a.value.ravel()[:1].reshape(())) if isinstance(a, Tensor) and a.value.size else a for a in args
    )
    if _check_variant(op, first, params):
        law_vjp(op, first, params)


def law_strides(op: Op, args: tuple, params: dict) -> None:
    """Check that the same values in other strides give the same result and the same cotangents."""
    for layout in (_with_gaps, np.asfortranarray, _backwards):
        other = tuple(as_tensor(layout(a.value)) if isinstance(a, Tensor) and a.ndim else a for a in args)
        agree(run(op, other, params), run(op, args, params), f"{op.name}: {layout.__name__}", 1e-12)
        (f, xs), (h, ys) = as_float_map(op, args, params), as_float_map(op, other, params)
        gs = directions(f(*xs), 2)
        strided = tuple(as_tensor(layout(g.value)) if g.ndim else g for g in gs)
        expected = dense(pull(f, xs, gs), xs)
        agree(dense(pull(h, ys, strided), ys), expected, f"{op.name}: cotangents, {layout.__name__}", 1e-12)


def _with_gaps(a: np.ndarray) -> np.ndarray:
    wide = np.zeros([2 * s for s in a.shape], a.dtype)
    view = wide[(slice(None, None, 2),) * a.ndim]
    view[...] = a
    return view


def _backwards(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a[::-1])[::-1]


def law_broadcast(op: Op, args: tuple, params: dict) -> None:
    """Check that a pointwise operator's inputs broadcast, each in turn, and that cotangents are reduced."""
    if op.composite or not issubclass(op.definition, Pointwise) or sum(isinstance(a, Tensor) for a in args) < 2:
        return
    for i, a in enumerate(args):
        for narrow in _narrow_variants(a):
            variant = (*args[:i], narrow, *args[i + 1 :])
            law_shape(op, variant, params)
            law_vjp(op, variant, params)


def _narrow_variants(a: Any) -> list:
    """Return the tensor with one dimension fewer, and with size 1 along each."""
    if not isinstance(a, Tensor) or not a.ndim:
        return []
    ones = [as_tensor(a.value.take([0], axis=d)) for d in range(a.ndim) if a.shape[d] > 1]
    return [as_tensor(np.asarray(a.value[0])), *ones]


# -------------------------------------------------------------------------------------------------- dtypes


def law_float32(op: Op, args: tuple, params: dict) -> None:
    """Check that single precision inputs give single precision results and cotangents, unless a dtype is requested."""
    single = tuple(as_tensor(a.value.astype(_SINGLE[a.dtype.kind])) if is_float(a) else a for a in args)
    outs = run(op, single, params)
    law_shape(op, single, params)
    asked = any(isinstance(p, np.dtype) for p in params.values())
    for out, double in zip(outs, run(op, args, params), strict=True):
        if is_float(out) and any(map(is_float, args)):
            assert asked or out.dtype in _SINGLE.values(), f"{op.name}: float32 in, {out.dtype} out"
        agree((out.value,), (double.value,), f"{op.name}: float32 against float64", 2e-4)
    f, xs = as_float_map(op, single, params)
    for x, g in zip(xs, pull(f, xs, directions(f(*xs), 2)), strict=True):
        assert g is None or g.dtype == x.dtype, f"{op.name}: the cotangent of {x.aval} is {g.aval}"


_SINGLE = {"f": np.float32, "c": np.complex64}


def law_promotion(op: Op, args: tuple, params: dict) -> None:
    """Check that the operator promotes operands of one dtype, float32 or float64, to themselves: calls rely on it."""
    if not op.promotes:
        return
    for dtype in (np.float32, np.float64):
        operands = [a.value.astype(dtype) if is_float(a) else a.value if isinstance(a, Tensor) else a for a in args]
        if share_real_dtype(operands, op.masks):
            promoted = op.definition.promote(operands)
            same = all(p is a for p, a in zip(promoted, operands, strict=True))
            assert same, f"{op.name}: operands of {np.dtype(dtype)} are promoted"


def law_mixed_dtypes(op: Op, args: tuple, params: dict) -> None:
    """Check that cotangents have their inputs' dtypes where one input is a 0-d tensor of double precision.

    Such a tensor does not promote the others, but inside of a derivative rule it may meet values that it promotes.
    """
    single = [as_tensor(a.value.astype(_SINGLE[a.dtype.kind])) if is_float(a) else a for a in args]
    if not registry[op.name].public_names or sum(map(is_float, args)) < 2:  # internal operators meet one dtype only
        return
    for i, a in enumerate(args):
        if not is_float(a) or not a.numel():
            continue
        mixed = (*single[:i], as_tensor(np.asarray(a.value.ravel()[0])), *single[i + 1 :])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # losses warn of operands that broadcast
            if _refusal(op, mixed, params):
                continue
            f, xs = as_float_map(op, mixed, params)
            for x, g in zip(xs, pull(f, xs, directions(f(*xs), 2)), strict=True):
                assert g is None or g.aval == x.aval, f"{op.name}: the cotangent of {x.aval} is {g.aval}"


def law_complex(op: Op, args: tuple, params: dict) -> None:
    """Check that complex inputs are refused, or that every derivative is correct for them, in single precision too."""
    if not any(is_float(a) and a.dtype.kind == "f" for a in args):
        return
    args = tuple(_made_complex(a) if is_float(a) else a for a in args)
    refusal = _refusal(op, args, params)
    if refusal:
        assert op.composite or op.name in refusal, f"{op.name}: the refusal of complex numbers says only: {refusal}"
        return
    for law in (law_shape, law_jvp, law_vjp, law_reverse_over_reverse, law_float32, law_views):
        law(op, args, params)


def _refusal(op: Op, args: tuple, params: dict) -> str:
    """Return the message with which an operator refuses a call; "" if it does not."""
    try:
        run(op, args, params)
    except REFUSALS as error:
        return str(error) or type(error).__name__
    return ""


def _made_complex(a: Tensor) -> Tensor:
    """Return complex values with the same real parts, and imaginary parts of similar size in another order."""
    return as_tensor(a.value + 0.5j * a.value.ravel()[::-1].reshape(a.shape))


def law_integers(op: Op, args: tuple, params: dict) -> None:
    """Check the shape rule for integers, if the operator accepts them."""
    for dtype in (np.int64, np.uint8):
        with np.errstate(all="ignore"):  # rounded values may leave the domain
            other = tuple(as_tensor(np.abs(a.value * 3).real.astype(dtype)) if is_float(a) else a for a in args)
            try:
                run(op, other, params)
            except (*REFUSALS, OverflowError):
                continue
            law_shape(op, other, params)


LAWS = {name[4:]: law for name, law in list(globals().items()) if name.startswith("law_")}
LAWS |= {"bfloat16": law_bfloat16, "nested": law_nested, "oracle": law_oracle, "views": law_views, "writes": law_writes}
