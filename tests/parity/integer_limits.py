"""Integer operators at the limits of their dtypes: the operands, and where both libraries differ."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import retrograd as rg
from retrograd.core import registry
from retrograd.ops.family import AlongDims, Reduction
from retrograd.testing import run, samples_of

from .special_values import is_pointwise
from .test_ops_parity import call_torch

# Where PyTorch divides the smallest number by -1, which the processor answers with a signal that ends the process.
TRAPS = {
    "trunc": lambda x, y: (x == x.min()) & (y == -1),
    "lcm": lambda x, y: (x == x.min()) | (y == y.min()),
}
REFUSALS = (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError, OverflowError)


def limits(dtype: str) -> np.ndarray:
    """Return the smallest and the largest values of a dtype, and those around 0."""
    if dtype == "bool":
        return np.array([False, True])
    info = np.iinfo(dtype)
    near = [n for n in (-2, -1, 0, 1, 2) if n >= info.min]
    return np.unique(np.array([info.min, info.min + 1, *near, info.max - 1, info.max], dtype))


def is_tested(name: str) -> bool:
    """Return whether an operator is elementwise, a reduction or a scan."""
    op = registry[name]
    return issubclass(op.definition, Reduction | AlongDims) or is_pointwise(op)


def cases(name: str, dtype: str) -> Iterator[tuple[tuple, dict]]:
    """Yield calls on all combinations of the limits, one for each set of params in the operator's samples."""
    seen = []
    for args, params in samples_of(registry[name]):
        if any(isinstance(a, float) for a in args):
            continue  # a fraction next to integers: that is promotion, and has tests of its own
        kinds = tuple(a.dtype.kind if isinstance(a, rg.Tensor) else repr(a) for a in args)
        if (kinds, repr(params)) not in seen:
            seen.append((kinds, repr(params)))
            new = _elementwise(args, dtype) if is_pointwise(registry[name]) else _cycled(args, dtype)
            trap = TRAPS.get("trunc" if params.get("rounding_mode") == "trunc" else name)
            yield (
                (
                    _without_traps(new, trap)
                    if trap and len(new) == 2 and all(isinstance(a, rg.Tensor) for a in new)
                    else new
                ),
                params,
            )


def _elementwise(args: tuple, dtype: str) -> tuple:
    """Return operands that combine all limits, one combination per index; with masks and integer tensors."""
    at = [i for i, a in enumerate(args) if isinstance(a, rg.Tensor)]
    axes = [limits("bool" if args[i].dtype.kind == "b" else dtype) for i in at]
    if len(at) > 2:
        axes = [axis if axis.dtype == bool else axis[[0, *range(2, axis.size, 2)]] for axis in axes]
    mesh = np.meshgrid(*axes, indexing="ij")
    new = dict(zip(at, [rg.tensor(np.ascontiguousarray(m.reshape(-1))) for m in mesh], strict=True))
    return tuple(new.get(i, a) for i, a in enumerate(args))


def _without_traps(args: tuple, trap: Any) -> tuple:
    """Return two operands without the pairs for which PyTorch kills the process."""
    x, y = (a.numpy() for a in args)
    kept = ~trap(x, y) if x.dtype.kind == "i" else np.ones(x.shape, bool)
    return rg.tensor(x[kept]), rg.tensor(y[kept])


def _nonzero(args: tuple) -> tuple:
    """Return two operands without those pairs that divide by 0."""
    kept = args[1].numpy() != 0
    return tuple(rg.tensor(a.numpy()[kept]) if isinstance(a, rg.Tensor) else a for a in args)


def _cycled(args: tuple, dtype: str) -> tuple:
    """Return operands of the same shapes with the limits in turn."""
    return tuple(
        rg.tensor(np.resize(limits(dtype), a.shape)) if isinstance(a, rg.Tensor) and a.dtype.kind in "fc" else a
        for a in args
    )


def difference(name: str, args: tuple, params: dict, to_torch: Any) -> list[str]:
    """Return where the results of one call differ, in dtype, value or refusal."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        theirs = _attempt(lambda: call_torch(name, to_torch(args), {k: to_torch(v) for k, v in params.items()}))
        ours = _attempt(lambda: run(registry[name], args, params))
    if isinstance(theirs, Exception):
        if isinstance(ours, ZeroDivisionError) and "ZeroDivisionError" in str(theirs):
            return difference(name, _nonzero(args), params, to_torch)
        both = isinstance(ours, REFUSALS) or not isinstance(ours, Exception)
        return [] if both else [f"an internal error: {ours!r}"]
    if isinstance(ours, Exception):
        return [f"refused: {ours!r}"]
    found = []
    for a, b in zip(ours, theirs, strict=True):
        if not isinstance(b, torch.Tensor):
            continue
        mine, its = a.detach().numpy(), b.numpy(force=True)
        if mine.dtype != its.dtype or mine.shape != its.shape:
            found.append(f"{mine.dtype}{mine.shape}, PyTorch {its.dtype}{its.shape}")
        elif (wrong := np.flatnonzero(~_equal(mine, its))).size:
            found += [_description(args, mine, its, i) for i in wrong[:4]]
    return found


def _attempt(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return error


def _equal(mine: np.ndarray, its: np.ndarray) -> np.ndarray:
    if mine.dtype.kind not in "fc":
        return mine == its
    with np.errstate(all="ignore"):
        return np.isclose(mine, its, rtol=1e-5, atol=1e-30, equal_nan=True)


def _description(args: tuple, mine: np.ndarray, its: np.ndarray, i: int) -> str:
    operands = [a.numpy().reshape(-1) if isinstance(a, rg.Tensor) else a for a in args]
    at = [a[i] if isinstance(a, np.ndarray) and a.size == mine.size else a for a in operands]
    return f"at {at}: {mine.reshape(-1)[i]}, PyTorch {its.reshape(-1)[i]}"
