"""The law of writes: an in-place write after a call is an error in the backward pass, or changes no gradient."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, Literal

import numpy as np

from retrograd.autograd import set_grad_enabled
from retrograd.core import Op, Tensor
from retrograd.core import dtype as dtypes
from retrograd.core.tensor import version_of
from retrograd.core.views import COPIED
from retrograd.ops.as_tensor import as_tensor
from retrograd.testing.calculus import agree, dense, directions, gradients, is_float, leaf, run


def law_writes(op: Op, args: tuple, params: dict) -> None:
    """Check that a write to an input or output after the call is refused, or that gradients stay correct.

    A recorded write multiplies by two, and so doubles the cotangents of the outputs that share the memory; a write
    under no_grad changes no gradient.
    """
    if not (op.differentiable or op.composite):
        return
    rules = [True] * len(args) if op.composite else [op.rules[min(i, op.last)] for i in range(len(args))]
    argnums = tuple(i for i, a in enumerate(args) if is_float(a) and rules[i])
    for target in _targets(args, run(op, args, params)):
        for recorded in (True, False):
            _check_write(op, args, params, argnums, target, recorded)


def law_views(op: Op, args: tuple, params: dict) -> None:
    """Check that an output that shares memory with an input or another output shares its version counter."""
    orders: tuple[Literal["C", "F"], ...] = ("C", "F")
    for order in orders:
        inputs = tuple(as_tensor(np.array(a.value, order=order)) if isinstance(a, Tensor) else a for a in args)
        try:
            outs = run(op, inputs, params)
        except (RuntimeError, ValueError):  # memory in this order cannot be viewed as requested
            continue
        tensors = [a for a in (*inputs, *outs) if isinstance(a, Tensor)]
        for a, b in combinations(tensors, 2):
            if np.shares_memory(a.value, b.value):
                assert version_of(a) is version_of(b), f"{op.name}: shared memory of shapes {a.shape} and {b.shape}"


def _targets(args: tuple, outs: tuple) -> Iterator[tuple[str, int]]:
    """Yield every tensor that can be written to after the call: ("input", i) or ("output", i)."""
    for what, tensors in (("input", args), ("output", outs)):
        yield from ((what, i) for i, a in enumerate(tensors) if isinstance(a, Tensor))


def _check_write(op: Op, args: tuple, params: dict, argnums: tuple, target: tuple[str, int], recorded: bool) -> None:
    leaves, inputs, outs = call_on_leaves(op, args, params, argnums)
    written = (inputs if target[0] == "input" else outs)[target[1]]
    changed = [is_changed_by_write(out, written) for out in outs if is_float(out)]
    floats = tuple(filter(is_float, outs))
    gs = directions(floats, 2)
    try:
        double(written, recorded)
        found = gradients(floats, leaves, gs)
    except (RuntimeError, NotImplementedError):
        return
    leaves, _, outs = call_on_leaves(op, args, params, argnums)
    doubled = tuple(g * 2 if recorded and s else g for g, s in zip(gs, changed, strict=True))
    expected = gradients(tuple(filter(is_float, outs)), leaves, doubled)
    what = f"{op.name}: gradients after a {'' if recorded else 'no_grad '}write to {target[0]} {target[1]}"
    agree(dense(found, tuple(leaves)), dense(expected, tuple(leaves)), what, 1e-12)


def is_changed_by_write(out: Any, written: Any) -> bool:
    """Whether a write changes an output: it shares the memory, or is a copy linked to its base."""
    follows = out._view is not None and out._view.creation_meta == COPIED and version_of(out) is version_of(written)
    return follows or np.shares_memory(out.value, written.value)


def call_on_leaves(op: Op, args: tuple, params: dict, argnums: tuple) -> tuple[list, tuple, tuple]:
    """Return leaves for the wanted inputs, the inputs, computed from these or copied, and the outputs."""
    leaves = [leaf(args[i]) for i in argnums]
    inputs = [a.clone() if isinstance(a, Tensor) else a for a in args]
    for i, x in zip(argnums, leaves, strict=True):
        inputs[i] = x * 1
    return leaves, tuple(inputs), run(op, tuple(inputs), params)


def double(tensor: Any, recorded: bool) -> None:
    """Write to a tensor: multiply floats by two, add one to integers, negate booleans."""
    with set_grad_enabled(recorded):
        if dtypes.is_differentiable(tensor.dtype):
            tensor.mul_(2)
        elif tensor.dtype == dtypes.bool_:
            tensor.logical_not_()
        else:
            tensor.add_(1)
