"""Operators of neural network layers: embedding, losses, dropout, bags."""

from typing import Any

from retrograd.core import Op, call, registry
from retrograd.nested.buffer import remove_holes, values, wrap_buffer_like
from retrograd.nested.buffer_layout import get_layout, is_nested
from retrograd.nested.dispatch import rule_for
from retrograd.ops.create import as_tensor
from retrograd.ops.losses import weighted_mean


@rule_for("lookup")
def embedding(op: Op, args: tuple, params: dict) -> Any:
    """Look up the rows of a table for indices of any structure."""
    weight, ids = args
    if is_nested(weight):
        return NotImplemented
    ids = remove_holes(ids)
    return wrap_buffer_like(get_layout(ids), call(op, (weight, values(ids)), params))


@rule_for("sum_rows")
def embedding_backward(op: Op, args: tuple, params: dict) -> Any:
    """Sum the rows of all components that have the same index."""
    src, ids = args
    if not is_nested(src) or not is_nested(ids):
        return NotImplemented
    src, ids = remove_holes(src), remove_holes(ids)
    return call(op, (values(src), values(ids)), params) if _have_same_rows(src, ids) else NotImplemented


@rule_for("dropout", "alpha_dropout")
def dropout(op: Op, args: tuple, params: dict) -> Any:
    """Drop elements of the buffer independently."""
    x = remove_holes(args[0])
    return wrap_buffer_like(get_layout(x), call(op, (values(x),), params))


@rule_for("class_loss", "class_gather")
def class_loss(op: Op, args: tuple, params: dict) -> Any:
    """Compute a loss of class scores, last dimension, on the buffers, if scores and targets have one structure."""
    if not all(map(is_nested, args)):
        return NotImplemented
    x, target = map(remove_holes, args)
    if get_layout(x).ragged.stop == x.ndim or not _have_same_rows(x, target):
        return NotImplemented
    return wrap_buffer_like(get_layout(target), call(op, (values(x), values(target)), params))


@rule_for("mean_class_loss")
def mean_class_loss(op: Op, args: tuple, params: dict) -> Any:
    """Divide the sum of the losses of all components by the number of targets that count."""
    x, target = args
    if not is_nested(x) or not is_nested(target):
        return NotImplemented
    loss = registry["class_loss"](x, target, **params)
    return weighted_mean(loss, registry["ne"](target, params["ignore_index"]))


@rule_for("embedding_bag")
def embedding_bag(op: Op, args: tuple, params: dict) -> Any:
    """Reduce each component as a bag of row indices, as between two offsets of a plain tensor."""
    ids, weight, offsets, factors = args
    if not is_nested(ids) or is_nested(weight) or offsets is not None or params["include_last_offset"]:
        return NotImplemented
    ids = remove_holes(ids)
    layout = get_layout(ids)
    if layout.ndim != 2 or layout.num_ragged != 1 or not (factors is None or _have_same_rows(factors, ids)):
        return NotImplemented
    starts = as_tensor(layout.structure.offsets[:-1])
    factors = None if factors is None else values(remove_holes(factors))
    return call(op, (values(ids), weight, starts, factors), params)


def _have_same_rows(x: Any, other: Any) -> bool:
    """Whether two tensors are nested with the same rows; one may have further dimensions."""
    return is_nested(x) and get_layout(remove_holes(x))._replace(ndim=other.ndim) == get_layout(remove_holes(other))
