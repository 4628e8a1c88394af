"""Random tensors for tests, of any dtype and between two bounds."""

import math
from collections.abc import Sequence
from typing import Any

from retrograd.autograd.grad_mode import no_grad
from retrograd.backend.type_info import finfo, iinfo
from retrograd.core import Tensor, registry
from retrograd.core.dtype import as_dtype, bool_, is_floating, is_signed, opmath_of
from retrograd.foundation.source_location import warn_user
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.ops.functions import functions


def make_tensor(
    *shape: int | Sequence[int],
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return random numbers of a shape, dtype and device, uniform in [low, high).

    Without bounds, floating numbers, and both parts of complex ones, are in [-9, 9), signed integers in [-9, 10),
    unsigned ones in [0, 10), and bools are any; bounds beyond the dtype's are clamped to it.  `noncontiguous` gives
    every second element of a larger tensor, `exclude_zero` replaces zeros by the smallest positive number, or 1.

    Raises ValueError for bounds that are NaN, in the wrong order or outside of the dtype, for integers with
    `requires_grad`, and for `noncontiguous` together with `memory_format`.

    >>> import retrograd as rg
    >>> x = rg.testing.make_tensor(2, 3, dtype=rg.float32, device="cpu", low=0, high=1)
    >>> x.shape, bool((x >= 0).all()), bool((x < 1).all())
    ((2, 3), True, True)
    """
    dtype = as_dtype(dtype)
    real = dtype.kind in "biu"
    if requires_grad and real:
        raise ValueError(
            f"make_tensor: `requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=!s}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "make_tensor: The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    bounds = _bounds(dtype, low, high)
    wide = noncontiguous and math.prod(sizes) > 1  # type: ignore[arg-type]
    with no_grad():
        made = _uniform((*sizes[:-1], 2 * sizes[-1]) if wide else sizes, dtype, device, *bounds)  # type: ignore[operator]
        if exclude_zero:
            made[made == 0] = 1 if real else finfo(dtype).tiny
        if wide:
            made = made[..., ::2]
        elif memory_format is not None:
            made = made.clone(memory_format=memory_format)
    return made.requires_grad_(requires_grad)


def _bounds(dtype: Any, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the bounds of numbers, those that are given clamped to the dtype; ValueError where none fit."""
    integral = dtype.kind in "biu"
    least, most = (0, 2) if dtype == bool_ else (-9 if is_signed(dtype) else 0, 10 if integral else 9)
    low, high = least if low is None else low, most if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"make_tensor: `low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and not integral:
        warn_user(
            "make_tensor: Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is "
            "deprecated; use rg.full",
            FutureWarning,
        )
    elif low >= high:
        raise ValueError(f"make_tensor: `low` must be less than `high`, but got {low} >= {high}")
    limits = finfo(dtype) if not integral else None if dtype == bool_ else iinfo(dtype)
    smallest, end = (0, 2) if limits is None else (limits.min, limits.max + integral)
    if high < smallest or low > end or (integral and low >= end):
        raise ValueError(
            f"make_tensor: The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only "
            f"supports [{smallest}, {end})"
        )
    low, high = max(low, smallest), min(high, end)
    return (math.ceil(low), math.ceil(high)) if integral else (low, high)


def _uniform(sizes: Any, dtype: Any, device: Any, low: float, high: float) -> Tensor:
    if dtype.kind in "biu":
        return functions["randint"](low, high, sizes, device=device, dtype=dtype)
    if dtype.kind == "c":
        part = as_dtype(finfo(dtype).dtype)
        return registry["complex"](_uniform(sizes, part, device, low, high), _uniform(sizes, part, device, low, high))
    if low == high:
        return functions["full"](sizes, low, dtype=dtype, device=device)
    halves = functions["empty"](sizes, dtype=opmath_of(dtype) if is_floating(dtype) else dtype, device=device)
    return halves.uniform_(low / 2, high / 2).mul_(2).to(dtype)  # the width of all numbers would overflow


suggest_in_module(globals())
