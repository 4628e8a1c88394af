"""Buffers: tensors of numbers, such as running statistics, that operators update on the side."""

from retrograd.core import NotBatchedError, at, current
from retrograd.core.tensor import alias
from retrograd.ops.mutate import copy_


def write_statistic(name, x, change, *found):
    """Write `change(x, *found)` into x, which an operator keeps, without derivatives, from whatever level runs it.

    Levels of derivatives between x and the operator are passed, as PyTorch's batch_norm passes them; what differs
    between the examples of a batch can't be written.
    """
    between = _levels_above(x)
    if between is not None:
        try:
            found = tuple([_value_below(t, between) for t in found])
        except NotBatchedError as error:
            raise NotBatchedError(
                f"{name}: vmap can't write what differs between examples to a tensor from outside, of shape {x.shape}; "
                f"map over that tensor too, or run example by example, by vmap(..., fallback='loop')"
            ) from error
    found = tuple([alias(t, None) for t in found])  # without a history, or each result would note that it left that
    with at(_level_of_write(x, between) if between else current().level, False):
        copy_(x, change(x, *found))


def _level_of_write(x, between):
    """Return the level at which to write to x: below those of derivatives, not below observing ones."""
    level = x.level
    for above in reversed(between):
        if not above.observes:
            break
        level = above
    return level


def _levels_above(x):
    """Return the levels from the current one to that of x, which is left out; None if the write is refused there."""
    between, level = [], current().level
    while level is not x.level:
        if level is None or (level.on_write is not None and not level.transparent):
            return None
        between.append(level)
        level = level.parent
    return between


def _value_below(t, levels):
    """Return the value of a tensor below some levels, as a value that is read: without what they track."""
    for level in levels:
        t = level.read(t) if t.level is level else t
    return t
