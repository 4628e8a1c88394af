"""Operators as maps between floating tensors, and their derivatives: by rules and by finite differences."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from retrograd.core import Op, Tensor, current
from retrograd.core import dtype as dtypes
from retrograd.core.engine import edge_of, pullback
from retrograd.core.tensor import alias, make
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.levels import DualLevel
from retrograd.ops.as_tensor import as_tensor
from retrograd.ops.generator import reseeded
from retrograd.testing.closeness import array_of, assert_close


def seeded() -> AbstractContextManager[None]:
    """Run the block with seed 0, then continue with the default generator as it was."""
    return reseeded(0)


def run(op: Op, args: tuple, params: dict) -> tuple:
    """Return the operator's outputs as a tuple, called as a user would; every call draws the same random values."""
    with seeded():
        out = op(*args) if op.simple else op(**op.schema.group(args), **params)
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


def is_float(value: Any) -> bool:
    """Whether a value is a tensor of floating or complex dtype."""
    return isinstance(value, Tensor) and dtypes.is_differentiable(value.dtype)


def replace_floats(args: tuple, xs: tuple) -> tuple:
    """Return the arguments with their floating tensors replaced by `xs`."""
    left = iter(xs)
    return tuple(next(left) if is_float(a) else a for a in args)


def as_float_map(op: Op, args: tuple, params: dict) -> tuple[Callable, tuple]:
    """Return the operator as a map from its floating inputs to its floating outputs, and the inputs.

    An operator without derivatives has no inputs as such a map.  One may define `constrain(*inputs)`, which maps any
    inputs to its domain (a Hermitian matrix), and `observe(*outputs)`, the determined part of its outputs
    (not the phases of eigenvectors): then the map is from constrained inputs to observed outputs.
    """
    if not (op.differentiable or op.composite):
        return lambda: (), ()
    constrain = getattr(op.definition, "constrain", _identity)
    observe = getattr(op.definition, "observe", _identity)

    def f(*xs):
        return tuple(filter(is_float, observe(*run(op, replace_floats(args, constrain(*xs)), params))))

    return f, tuple(a for a in args if is_float(a))


def _identity(*tensors):
    return tensors


def directions(tensors: tuple, seed: int) -> tuple:
    """Return a random tensor for each, of its shape and dtype."""
    rng = np.random.default_rng(seed)

    def direction(t):
        parts = [rng.uniform(-1, 1, t.shape) for _ in range(1 + (t.dtype.kind == "c"))]
        return as_tensor(np.asarray(parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1], t.dtype))

    return tuple(map(direction, tensors))


def pull(f: Callable, xs: tuple, gs: tuple, *, argnums: tuple[int, ...] | None = None) -> tuple:
    """Return the cotangents of `f` at `xs` for the output cotangents `gs`; None for unused inputs.

    `argnums` are the inputs that require gradients (default: all).
    """
    argnums = tuple(range(len(xs))) if argnums is None else argnums
    xs = tuple(leaf(x) if i in argnums else x for i, x in enumerate(xs))
    return gradients(f(*xs), [xs[i] for i in argnums], gs)


def leaf(x: Tensor) -> Tensor:
    """Return the same value as a leaf that requires grad, at any level."""
    leaf = alias(x, None)
    leaf._requires_grad = True  # at any level, tangents and all
    return leaf


def gradients(outs: tuple, xs: list, gs: tuple, *, create_graph: bool = False) -> tuple:
    """Return cotangents of tensors in the graph of `outs`."""
    connected = [(out, g) for out, g in zip(outs, gs, strict=True) if out.requires_grad]
    edges = [edge_of(x) for x in xs]
    found = pullback(
        [edge_of(out) for out, _ in connected],
        [g for _, g in connected],
        level=current().level,
        inputs=edges,
        create_graph=create_graph,
        retain_graph=create_graph,
    )
    return tuple(found.get(edge if isinstance(edge, Tensor) else (edge, number)) for edge, number in edges)


def push(f: Callable, xs: tuple, ts: tuple) -> tuple[tuple, tuple]:
    """Return the outputs of `f` at `xs`, and their tangents along `ts`, None if there is none."""
    with DualLevel() as level:
        outs = f(*[make(x, level, t) for x, t in zip(xs, ts, strict=True)])
    return tuple(o.value if o.level is level else o for o in outs), tuple(
        o.tag if o.level is level else None for o in outs
    )


def difference(f: Callable, xs: tuple, ts: tuple) -> tuple[np.ndarray, ...]:
    """Return the derivative of `f` at `xs` along `ts`, by central differences of fourth order."""
    step = precision((*xs, *f(*xs)))[0]

    def at(k):
        shifted = [
            as_tensor(np.asarray(x.value + (k * step * t.value).astype(x.dtype))) for x, t in zip(xs, ts, strict=True)
        ]
        return [out.value.astype("c16" if out.dtype.kind == "c" else "f8") for out in f(*shifted)]

    return tuple(
        (8 * (p1 - m1) - (p2 - m2)) / (12 * step) for p1, m1, p2, m2 in zip(at(1), at(-1), at(2), at(-2), strict=True)
    )


def precision(tensors: tuple) -> tuple[float, float]:
    """Return the step of differences, and the resulting tolerance, for the least precise dtype among these."""
    return (1e-4, 1e-8) if all(dtypes.real_of(t.dtype).itemsize >= 8 for t in tensors) else (2.0**-5, 1e-4)


def inner(us: tuple, vs: tuple) -> float:
    """Return the real inner product of cotangents and tangents, with None as zero."""
    return sum(float((array_of(u) * array_of(v)).sum().real) for u, v in zip(us, vs, strict=True) if u is not None)


def dense(gs: tuple, like: tuple) -> tuple:
    """Replace None by zeros."""
    return tuple(as_tensor(np.zeros(x.shape, x.dtype)) if g is None else g for g, x in zip(gs, like, strict=True))


def agree(actual: tuple, expected: tuple, what: str, tolerance: float) -> None:
    """Check closeness relative to the larger of 1 and the largest expected entry."""
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        found, wanted = array_of(a), array_of(e)
        if _all_near(found, wanted, tolerance):
            continue
        scale = max(1.0, float(np.abs(wanted).max(initial=0.0, where=np.isfinite(wanted))))
        try:
            assert_close(found, wanted.tolist(), rtol=0.0, atol=tolerance * scale, equal_nan=True)
        except AssertionError as error:
            raise AssertionError(f"{what}, number {i}: {error}") from None


def _all_near(found: np.ndarray, wanted: np.ndarray, tolerance: float) -> bool:
    """Whether floats surely agree, decided in a tenth of the time of `assert_close`, which decides where this is False.

    It is also False for other dtypes, and for infinite, missing and huge values.
    """
    if found.shape != wanted.shape or not {found.dtype.char, wanted.dtype.char} <= set("fdFD"):
        return False
    largest = float(np.abs(wanted).max(initial=0.0))
    return largest < 1e20 and bool(np.abs(found - wanted).max(initial=0.0) <= tolerance * max(1.0, largest))


suggest_in_module(globals())
