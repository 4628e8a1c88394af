"""Cotangents of a `Function`: those of its outputs given to backward, and the gradients that it returns checked."""

from collections.abc import Sequence
from typing import Any

from retrograd.autograd.function.context import FunctionCtx
from retrograd.core import Tensor, registry
from retrograd.core.errors import OperandTypeError
from retrograd.core.hooks import conjugate
from retrograd.ops.family import cast_to, sum_to


def align_with_outputs(cotangents: Sequence, ctx: FunctionCtx) -> Sequence:
    """Return cotangents in the positions that their tensors had among the results of forward."""
    if len(cotangents) == ctx._num_returned:
        return cotangents
    row: list = [None] * ctx._num_returned
    for (index, _, _), g in zip(ctx._outputs, cotangents, strict=True):
        row[index] = g
    return row


def zero_cotangent(index: int, shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Return the cotangent zero of an output."""
    return registry["zeros"](shape, dtype=dtype)


def check_gradient(name: str, index: Any, result: Any, shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Return a user's gradient reduced to the input's shape, in its dtype unless that is None; conjugated."""
    if not isinstance(result, Tensor):
        raise OperandTypeError(
            f"{name} returned a wrong gradient at position {index}: expected Variable or None (got "
            f"{type(result).__name__})"
        )
    if result.shape != shape and not _expandable(shape, result.shape):
        raise RuntimeError(
            f"{name} returned an invalid gradient at index {index} - got {list(result.shape)} but expected "
            f"shape compatible with {list(shape)}"
        )
    if dtype is None:
        dtype = result.dtype
    if result.dtype != dtype and result.dtype.kind == "c" and dtype.kind != "c":
        raise RuntimeError(
            f"{name} returned an invalid gradient at index {index}: expected {dtype} but got {result.dtype}"
        )
    return cast_to(sum_to(conjugate(result), shape), dtype)


def _expandable(shape: tuple[int, ...], larger: tuple[int, ...]) -> bool:
    """Return whether a gradient of the larger shape can be summed to an input of `shape`."""
    lead = len(larger) - len(shape)
    return lead >= 0 and all(s in (1, n) for s, n in zip(shape, larger[lead:], strict=True))
