"""The law of bfloat16: the operator computes in float32, and rounds its result once."""

import warnings
from typing import Any

import numpy as np

from retrograd.autograd.graph import saved_tensors_hooks
from retrograd.core import Op, Tensor
from retrograd.core.dtype import as_dtype, float16, float32, is_bfloat16
from retrograd.ops.as_tensor import as_tensor
from retrograd.testing.calculus import as_float_map, directions, is_float, pull, run
from retrograd.testing.writes_law import law_views

REFUSALS = (ValueError, IndexError, RuntimeError, TypeError)
UNIT = 2.0**-8  # the largest relative error of rounding to bfloat16
UNITS = 6  # units of the largest entry that results and gradients of composites may be off, by repeated rounding
RULE_UNITS = 2  # units of the largest term that the gradients of one operator may be off: a rule rounds a few times
PROBES = 8  # choices of signs for which the terms of a gradient are added


def law_bfloat16(op: Op, args: tuple, params: dict) -> None:
    """Check that results and cotangents of bfloat16 inputs are bfloat16, and those of float32 rounded.

    One operator rounds once, so it gives the same bits. An operator may refuse bfloat16 if it refuses float16.
    """
    if not any(map(is_float, args)) or any(is_float(a) and a.dtype.kind == "c" for a in args):
        return
    half = tuple(rounded(a) if is_float(a) else a for a in args)
    wide = tuple(_converted(a, float32) if is_float(a) else a for a in half)
    try:
        expected = run(op, wide, params)
    except REFUSALS:  # rounded values may leave the domain
        return
    try:
        found = run(op, half, params)
    except REFUSALS:
        assert _refuses(op, tuple(_converted(a, float16) if is_float(a) else a for a in wide), params), (
            f"{op.name}: bfloat16 is refused, float16 is not"
        )
        return
    asked = any(isinstance(p, np.dtype) for p in params.values())
    for out, e in zip(found, expected, strict=True):
        if not asked and e.dtype == float32:
            assert is_bfloat16(out.dtype), f"{op.name}: bfloat16 in, {out.dtype} out"
        _check_rounding(f"{op.name}: the result", out, e, UNITS * op.composite)
    law_views(op, half, params)
    _check_cotangents(op, half, wide, params)


def rounded(x: Tensor) -> Tensor:
    """Return a tensor of the same values in bfloat16."""
    return _converted(x, as_dtype("bfloat16"))


def _converted(x: Tensor, dtype: Any) -> Tensor:
    return as_tensor(x.value.astype(dtype))


def _refuses(op: Op, args: tuple, params: dict) -> bool:
    try:
        run(op, args, params)
    except REFUSALS:
        return True
    return False


def _check_cotangents(op: Op, half: tuple, wide: tuple, params: dict) -> None:
    f, xs = as_float_map(op, half, params)
    if not xs:
        return
    exact, ys = as_float_map(op, wide, params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # losses warn of operands that broadcast
        gs = directions(f(*xs), 2)
        wide_gs = tuple(_converted(g, out.dtype) for g, out in zip(gs, exact(*ys), strict=True))
        sizes, spreads = _sizes_of_terms(exact, ys, wide_gs), _with_rounded_saves(exact, ys, wide_gs)
        units = UNITS if op.composite else RULE_UNITS
        found, expected = pull(f, xs, gs), pull(exact, ys, wide_gs)
        for x, g, e, size, moved in zip(xs, found, expected, sizes, spreads, strict=True):
            if g is not None and e is not None:
                assert g.dtype == x.dtype, f"{op.name}: the cotangent of {x.aval} is {g.aval}"
                saved = 2 * np.abs(moved.value.astype(np.float64) - e.value.astype(np.float64))
                _check_rounding(f"{op.name}: the cotangent", g, e, units, size, saved)


def _with_rounded_saves(f: Any, xs: tuple, gs: tuple) -> tuple:
    """Return the cotangents in float32, computed from saved values that are rounded to bfloat16.

    Their distance from those of exact saved values is the error that no rule avoids: softmax's rule multiplies by
    1 - p, of which few digits are left where p is near 1.  Rules that differentiate formulas save tensors of a
    transform, which stay as they are.
    """

    def pack(x: Tensor) -> Tensor:
        return _converted(rounded(x), float32) if x.dtype == float32 and x.level is None else x

    with saved_tensors_hooks(pack, lambda x: x):
        return pull(f, xs, gs)


def _sizes_of_terms(f: Any, xs: tuple, gs: tuple) -> list[float]:
    """Return for each input the largest entry of the cotangents of `gs` with any signs.

    An entry is a sum of one term for each output. Where they cancel, its rounding error is that of the terms, which
    do not cancel for all signs.
    """
    sizes = [0.0] * len(xs)
    for seed in range(PROBES):
        rng = np.random.default_rng(seed)
        signed = tuple(as_tensor(g.value * rng.choice(np.asarray([-1, 1], g.dtype), g.shape)) for g in gs)
        for i, found in enumerate(pull(f, xs, signed)):
            if found is not None:
                sizes[i] = max(sizes[i], _largest(found.value))
    return sizes


def _largest(values: np.ndarray) -> float:
    """Return the largest magnitude of the finite entries; 0 if there are none."""
    values = np.abs(values.astype(np.float64))
    return values.max(initial=0.0, where=np.isfinite(values))


def _check_rounding(
    what: str, out: Tensor, expected: Tensor, units: float, size: float = 0.0, saved: Any = 0.0
) -> None:
    """Check a result against that of float32: equal when rounded, or off by these units of its largest entry at most.

    `size` is that of the terms which the entries are sums of, if it is larger; `saved` the error of each entry by the
    rounding of what it is computed from.
    """
    found, exact = out.value.astype(np.float64), expected.value.astype(out.dtype).astype(np.float64)
    if units == 0:
        np.testing.assert_array_equal(found, exact, what)
        return
    with np.errstate(invalid="ignore"):
        same = (found == exact) | (np.isnan(found) & np.isnan(exact))
        near = np.abs(found - exact) <= units * UNIT * max(_largest(exact), size) + saved
    assert (same | near).all(), f"{what}: got {found.tolist()}, rounding float32 gives {exact.tolist()}"
