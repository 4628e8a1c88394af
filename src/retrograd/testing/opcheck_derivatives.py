"""Checks of an operator's derivatives and batching, against finite differences and loops."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from retrograd.autograd import grad
from retrograd.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from retrograd.core import NotBatchedError, Tensor
from retrograd.func import vmap
from retrograd.ops.as_tensor import as_tensor
from retrograd.testing.calculus import dense, difference, directions, leaf, precision, pull, push
from retrograd.testing.closeness import assert_close
from retrograd.testing.opcheck_values import Close, check_close
from retrograd.testing.probe import Probe

ATOL, RTOL = 1e-5, 1e-3  # of derivatives against differences, as in gradcheck
MANY = 64  # entries; above that gradcheck uses random projections


def _test_points(probe: Probe) -> Iterator[Probe]:
    """Yield calls in double precision at which derivatives are compared: at the given values and at others."""
    wide = probe.in_double_precision()
    if all(np.isfinite(t.value).all() for t in wide.tensors):
        yield from [wide, *wide.perturb()]


def check_gradients(probe: Probe, close: Close, atol: float = ATOL, rtol: float = RTOL) -> None:
    """Check gradients against finite differences, also of second order if the formula can be differentiated."""
    if not _has_formula(probe):
        return
    for call in _test_points(probe):
        f, xs = call.float_map()
        if not xs or not f(*xs):
            return
        leaves = tuple(map(leaf, xs))
        if _is_declared_constant(probe) or not (probe.custom or any(out.requires_grad for out in f(*leaves))):
            return
        options: dict[str, Any] = {"atol": atol, "rtol": rtol, "fast_mode": sum(x.numel() for x in xs) > MANY}
        gradcheck(f, leaves, **options)
        _check_no_writes(call)
        _check_second_order(call, leaves, options)


def _is_declared_constant(probe: Probe) -> bool:
    """Whether all outputs are registered as not differentiable."""
    marks = probe.custom.registrations.differentiable if probe.custom is not None else None
    return marks is not None and not any(marks)


def _has_formula(probe: Probe) -> bool:
    """Whether there is a formula to check, or a tensor that needs one."""
    if probe.custom is None:
        return bool(probe.op.differentiable or probe.op.composite)
    p = probe.custom.registrations
    return probe.by_requires_grad or any(x is not None for x in (p.pull, p.save, p.backward, p.autograd))


def _check_no_writes(probe: Probe) -> None:
    """Check that the formula writes neither to its gradients nor to saved tensors."""
    f, xs = probe.float_map(copy=False)
    gs = directions(f(*xs), 1)
    arrays = [(f"the gradient of output {i}", g) for i, g in enumerate(gs)]
    arrays += [(f"the argument {probe.names[i]!r}", x) for i, x in zip(probe.argnums, xs, strict=True)]
    before = [t.value.copy() for _, t in arrays]
    pull(f, xs, gs)
    for (what, t), old in zip(arrays, before, strict=True):
        assert np.array_equal(t.value, old, equal_nan=True), f"the gradient formula writes to {what}: write to a copy"


def _check_second_order(probe: Probe, leaves: tuple[Tensor, ...], options: dict) -> None:
    """Check second derivatives if there are some; a formula that cannot be differentiated must raise an error."""
    f, _ = probe.float_map()
    try:
        gradgradcheck(f, leaves, **options)
    except GradcheckError as error:
        if _is_recorded(probe):
            raise AssertionError(f"second order: {error}") from None
    except RuntimeError:  # it refuses: nothing is wrong in silence
        pass


def _is_recorded(probe: Probe) -> bool:
    """Whether the formula is recorded: its results depend on the gradients of the outputs."""
    f, xs = probe.float_map()
    leaves = [leaf(x) for x in xs]
    flowing = tuple([out for out in f(*leaves) if out.requires_grad])
    found = grad(flowing, leaves, [leaf(g) for g in directions(flowing, 1)], create_graph=True, allow_unused=True)
    return any(g is not None and g.requires_grad for g in found)


# ------------------------------------------------------------------------------------------------- forward mode


def check_forward(probe: Probe, close: Close, atol: float = ATOL, rtol: float = RTOL) -> None:
    """Check tangents against finite differences, along each input alone and along all."""
    if not (probe.custom or probe.op.differentiable or probe.op.composite):
        return
    for call in _test_points(probe):
        n = len(call.argnums)
        for chosen in [*[(i,) for i in range(n)], tuple(range(n))]:
            try:
                _check_tangents(replace(call, argnums=tuple([call.argnums[i] for i in chosen])), atol, rtol)
            except NotImplementedError:
                return  # an error is fine, a wrong value is not


def _check_tangents(probe: Probe, atol: float, rtol: float) -> None:
    f, xs = probe.float_map()
    along = " and ".join([probe.names[i] for i in probe.argnums])
    ts = directions(xs, 1)
    outs, tangents = push(f, xs, ts)
    expected = difference(f, xs, ts)
    least = precision((*xs, *outs))[1] * 10
    for i in _differentiable_outputs(f, xs):
        out, t = outs[i], tangents[i]
        assert t is None or t.aval == out.aval, f"output {i} is {out.aval}, but its tangent along {along} is {t.aval}"
        given = dense((t,), (out,))[0]
        try:
            assert_close(given.value, expected[i].tolist(), max(rtol, least), max(atol, least), equal_nan=True)
        except AssertionError as error:
            raise AssertionError(
                f"the tangent of output {i} along {along} is not what differences give: {error}"
            ) from None


def _differentiable_outputs(f: Callable, xs: tuple[Tensor, ...]) -> list[int]:
    """Return the outputs with derivatives; all, if there is no gradient formula to ask."""
    try:
        outs = f(*map(leaf, xs))
    except RuntimeError:
        return list(range(len(f(*xs))))
    return [i for i, out in enumerate(outs) if out.requires_grad]


# ------------------------------------------------------------------------------------------------------ batches


def check_batching(probe: Probe, close: Close) -> None:
    """Check that a batch gives the results of each example, for any batched inputs, along any dimension."""
    numbers = range(len(probe.tensors))
    every = [c for k in range(1, len(numbers) + 1) for c in combinations(numbers, k)]
    if len(numbers) > 3:
        every = [*[(i,) for i in numbers], tuple(numbers)]
    for chosen in every:
        if set(probe.mutated) <= set(chosen):  # else vmap says that the examples' results fit nowhere
            _check_batch(probe, chosen, close)


def _check_batch(probe: Probe, chosen: tuple[int, ...], close: Close) -> None:
    other = (
        [p for p in (_replace_chosen(probe, other, chosen) for other in probe.variants()) if p.gives_finite()]
        or [probe]
    )[0]
    examples = [probe, other, probe]
    expected = [example(*example.tensors) for example in examples]
    if len({tuple([t.aval for t in outs]) for outs in expected}) > 1:
        return  # shapes depend on values
    for dims in _in_dims(probe, chosen):
        stacked = [
            column[0] if d is None else as_tensor(np.stack([t.value for t in column], axis=d))
            for column, d in zip(zip(*[e.tensors for e in examples], strict=True), dims, strict=True)
        ]
        try:
            found = vmap(probe, tuple(dims), randomness="same")(*stacked)
        except (NotImplementedError, NotBatchedError):
            return  # an error is fine, a wrong value is not
        for i, out in enumerate(found):
            loop = as_tensor(np.stack([outs[i].value for outs in expected]))
            check_close(
                out, loop, close, f"output {i} of a batch with in_dims {tuple(dims)}, against the examples one by one"
            )


def _replace_chosen(probe: Probe, other: Probe, chosen: tuple[int, ...]) -> Probe:
    """Return the call with the chosen tensors replaced by the other's."""
    pairs = enumerate(zip(probe.tensors, other.tensors, strict=True))
    return probe.with_tensors([b if i in chosen else a for i, (a, b) in pairs])


def _in_dims(probe: Probe, chosen: tuple[int, ...]) -> list[list[int | None]]:
    """Return batch dimensions: first, last, and last in the last input only; None for inputs that are not chosen."""
    front = [0 if i in chosen else None for i in range(len(probe.tensors))]
    back = [t.ndim if i in chosen else None for i, t in enumerate(probe.tensors)]
    last = chosen[-1]
    return [front, back, [*front[:last], back[last], *front[last + 1 :]]]
