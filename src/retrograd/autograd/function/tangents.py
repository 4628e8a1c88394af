"""The tangents of the outputs of a user's Function, inside a dual_level."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from retrograd.core import Tensor, current, registry
from retrograd.core.blocks import generator_block
from retrograd.core.dtype import is_differentiable
from retrograd.core.function_node import contains_tensor
from retrograd.ops.mutate import stateful_levels

if TYPE_CHECKING:  # loaded with the first dual_level
    from retrograd.levels.tangent_table import TangentTableLevel


def tangent_levels() -> list["TangentTableLevel"]:
    """Return the active forward levels, from the outermost to the innermost."""
    return [level for level in reversed(stateful_levels()) if not level.observes and not level.paused]


@generator_block
def pause_levels(levels: list["TangentTableLevel"]) -> Iterator[None]:
    """A block without recording, in which these levels ignore operators."""
    for level in levels:
        level.paused = True
    try:
        with current().level.unrecorded():
            yield
    finally:
        for level in levels:
            level.paused = False


def set_output_tangents(
    levels: list["TangentTableLevel"], name: str, jvp: Callable, args: tuple, outputs: list, ctx: Any
) -> None:
    """Set the outputs' tangents at each of these levels: the results of `jvp(ctx, args, tangents)`.

    Raises RuntimeError where it returns too few or too many, a value that is no tensor, or one that does not fit.
    """
    for level in levels:
        tangents = [level.tangent(a) for a in args]
        if all(t is None for t in tangents):
            continue
        for index, a in enumerate(args):
            if tangents[index] is not None and contains_tensor(a, ctx.dirty_tensors):
                tangents[index] = registry["clone"](tangents[index])  # jvp, like forward, may write to its arguments
        with level.below():
            dots = jvp(ctx, args, tangents)
        dots = dots if isinstance(dots, tuple) else (dots,)
        if len(dots) != len(outputs):
            raise RuntimeError(
                f"{name}: Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but "
                f"got {len(dots)})"
            )
        for index, (out, dot) in enumerate(zip(outputs, dots, strict=True)):
            if dot is not None:
                _check_tangent(name, index, out, dot, ctx)
                _check_written_tangent(name, args, tangents, out, dot, ctx)
                _store_tangent(level, name, args, tangents, out, dot, ctx)


def _check_tangent(name: str, index: int, out: Any, dot: Any, ctx: Any) -> None:
    """Raise if a value is no tangent of an output."""
    if not isinstance(dot, Tensor):
        raise RuntimeError(f"{name}: expected Variable or None (got {type(dot).__name__}) for grad output {index}.")
    if not isinstance(out, Tensor) or not is_differentiable(out.dtype) or contains_tensor(out, ctx.non_differentiable):
        raise RuntimeError(
            f"{name}: Function's jvp returned a gradient at position {index}, but the corresponding forward output is "
            f"not a differentiable Tensor. Return None at that position instead"
        )
    if dot.shape != out.shape or dot.dtype != out.dtype:
        raise RuntimeError(
            f"{name}: Trying to set a forward gradient that has a different size than that of the original Tensor, or "
            f"another dtype: Function's jvp returned {dot.aval} at position {index}, but the output is {out.aval}"
        )


def _check_written_tangent(name: str, args: tuple, tangents: list, out: Any, dot: Tensor, ctx: Any) -> None:
    """Raise if forward has written to an input, and jvp did not write to its tangent."""
    for a, tangent in zip(args, tangents, strict=True):
        if a is out and tangent is not None and dot is not tangent and contains_tensor(out, ctx.dirty_tensors):
            raise RuntimeError(
                f"{name}: An inplace custom Function is not modifying the forward mode gradients inplace. If the "
                f"forward is modifying an input inplace, then the jvp function must modify the corresponding gradient "
                f"inplace, and return it"
            )


def _store_tangent(
    level: "TangentTableLevel", name: str, args: tuple, tangents: list, out: Tensor, dot: Tensor, ctx: Any
) -> None:
    """Set the tangent of an output; a view of an input already has it, as the same view of the input's tangent."""
    if out._view is None and not contains_tensor(out, ctx.dirty_tensors):
        level.set_new_tangent(out, dot)
        return
    storage = level.tangent_owner(out)
    shows_input = any(isinstance(a, Tensor) and level.tangent_owner(a) is storage for a in args)
    if not shows_input or contains_tensor(out, ctx.dirty_tensors):
        level.set_tangent(out, dot)
    elif not _is_view_of_one(dot, tangents):
        raise RuntimeError(
            f"{name}: A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning "
            f"a view of the given grad input; return the same view of the input's tangent, t.view_as(t) for an input "
            f"as it is"
        )


def _is_view_of_one(dot: Tensor, tangents: list) -> bool:
    """Return whether a tensor is a view of one of the tangents that jvp got; zeros are made for those that are None."""
    if dot._view is None:
        return False
    bases = [t if t._view is None else t._view.base for t in tangents if isinstance(t, Tensor)]
    return len(bases) < len(tangents) or any(dot._view.base is base for base in bases)
