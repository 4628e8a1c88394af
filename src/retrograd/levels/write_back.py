"""Writes of a transformed program to its arguments, which reach the caller's tensors when the program has returned."""

from retrograd.core import Tensor
from retrograd.core.tensor import alias, count_of
from retrograd.core.views import base_of


def was_written(inside: Tensor) -> bool:
    """Return whether a program wrote to a tensor that a level made for an argument."""
    return count_of(inside) > 0


def written_value(inside: Tensor) -> Tensor:
    """Return the value of an argument one level below, in the shape that the caller gave; its level must be active.

    The program may have changed the shape in place, as by `x.unsqueeze_(0)`: those steps are undone.
    """
    if inside._view is not None:  # an in-place view operator without an inverse made it a view of its former self
        inside = base_of(inside._view)
    steps = () if inside.version is None else inside.version.inverses or ()
    now = alias(inside, None)
    now.version = None
    for moved, (op, params) in reversed(steps):
        if moved() is inside:
            now = op(now, **params)
    value: Tensor = now.value
    return value
