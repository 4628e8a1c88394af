"""Forward mode: the level of `jvp`, which computes tangents together with values."""

import threading
from collections.abc import Callable
from typing import Any

from retrograd.core import Op, Tensor, current, registry
from retrograd.core.dispatch import call_fast
from retrograd.core.dtype import is_differentiable
from retrograd.core.level import tags_at, values_at, wrap_result
from retrograd.core.state import thread_values
from retrograd.core.tensor import make
from retrograd.levels.outer_grads import OuterGradLevel
from retrograd.levels.unwrap import value_at
from retrograd.ops.jvp_rules import tangent


class _ForwardMode(threading.local):
    """Whether forward mode is on, on this thread, outside dual levels."""

    on = True


forward_mode = _ForwardMode()
thread_values.append(forward_mode)


class DualLevel(OuterGradLevel):
    """A tensor's tag is its tangent, a tensor of the parent level; None stands for zero.

    Its program may switch forward mode off, for this level only.
    """

    wrapper = "GradTrackingTensor"
    own_mode, forward_mode = False, True
    grads_differ = True
    on = True

    def __init__(self, function: Callable | None = None) -> None:
        self.function = function

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """Run the operator on the values, and its jvp rule on the tangents."""
        primals = values_at(self, args)
        tangents = tags_at(self, args) if self.on and op.differentiable else None
        out = call_fast(op, primals, params)
        if tangents is None:
            return wrap_result(self, out, None)
        dots = output_tangents(op, primals, tangents, out, params)
        if not isinstance(out, tuple):
            return make(out, self, dots)
        return tuple([make(o, self, t) if isinstance(o, Tensor) else o for o, t in zip(out, dots, strict=True)])

    def vjp_below(self, pullback: Callable, roots: list, cotangents: list, inputs: list) -> list:
        """Return the cotangents, from the graph of the values, with their tangents as tags."""
        values, seeds, below = ([value_at(self, t) for t in ts] for ts in (roots, cotangents, inputs))
        # The tangent of a cotangent has two parts, by the product rule: the cotangents pulled back through the graph
        # of the tangents, and the tangents of the cotangents pulled back through the graph of the values.
        moved = [(r.tag, g) for r, g in zip(roots, seeds, strict=True) if _has_tangent(self, r)]
        moved += [(v, g.tag) for v, g in zip(values, cotangents, strict=True) if _has_tangent(self, g)]
        found = pullback(values, seeds, below)
        tangents = pullback([r for r, _ in moved], [g for _, g in moved], below) if moved else [None] * len(below)
        return [_make_dual_cotangent(self, g, t) for g, t in zip(found, tangents, strict=True)]


def forward_mode_switch() -> Any:
    """Return the object whose `on` is whether forward mode is on: the innermost dual level, else the thread's."""
    level = current().level
    while level is not None and not isinstance(level, DualLevel):
        level = level.parent
    return forward_mode if level is None else level


def output_tangents(op: Op, primals: tuple, tangents: tuple, out: Any, params: dict) -> Any:
    """Return the tangent of an operator's result, or a tuple of one for each of several; None stands for zero.

    All levels of forward mode call this function: no other code differentiates operators in forward mode.
    """
    if not isinstance(out, tuple):
        return tangent(op, primals, tangents, out, params) if is_differentiable(out.dtype) else None
    dots = tangent(op, primals, tangents, out, params)
    pairs = zip(out, dots, strict=True)
    return tuple([t if isinstance(o, Tensor) and is_differentiable(o.dtype) else None for o, t in pairs])


def tangent_of(level: DualLevel, out: Tensor) -> Tensor:
    """Return the tangent of a tensor one level below, zeros if it has none."""
    if out.level is level and out.tag is not None:
        return out.tag
    zeros: Tensor = registry["zeros_like"](value_at(level, out))
    return zeros


def _has_tangent(level: DualLevel, x: Tensor) -> bool:
    return x.level is level and x.tag is not None


def _make_dual_cotangent(level: DualLevel, g: Tensor | None, t: Tensor | None) -> Tensor | None:
    """Return a cotangent with its tangent; None stands for zero, and if both are None the result is None."""
    if g is None and t is None:
        return None
    return make(registry["zeros_like"](t) if g is None else g, level, t)
