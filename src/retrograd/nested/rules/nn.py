"""Operators of neural network layers: embedding, losses, dropout, bags."""

from typing import Any

from retrograd.core import Op, call
from retrograd.nested.buffer import like, packed, values
from retrograd.nested.buffer_layout import is_nested, layout
from retrograd.nested.dispatch import composed
from retrograd.ops.create import as_tensor


@composed("lookup")
def embedding(op: Op, args: tuple, params: dict) -> Any:
    """Look up the rows of a table for indices of any structure."""
    weight, ids = args
    if is_nested(weight):
        return NotImplemented
    ids = packed(ids)
    return like(layout(ids), call(op, (weight, values(ids)), params))


@composed("sum_rows")
def embedding_backward(op: Op, args: tuple, params: dict) -> Any:
    """Sum the rows of all components that have the same index."""
    src, ids = args
    if not is_nested(src) or not is_nested(ids):
        return NotImplemented
    src, ids = packed(src), packed(ids)
    return call(op, (values(src), values(ids)), params) if _alike(src, ids) else NotImplemented


@composed("dropout", "alpha_dropout")
def dropout(op: Op, args: tuple, params: dict) -> Any:
    """Drop elements of the buffer independently."""
    x = packed(args[0])
    return like(layout(x), call(op, (values(x),), params))


@composed("class_loss", "class_gather")
def class_loss(op: Op, args: tuple, params: dict) -> Any:
    """Compute a loss of class scores, last dimension, on the buffers, if scores and targets have one structure."""
    if not all(map(is_nested, args)):
        return NotImplemented
    x, target = map(packed, args)
    if layout(x).ragged.stop == x.ndim or not _alike(x, target):
        return NotImplemented
    return like(layout(target), call(op, (values(x), values(target)), params))


@composed("embedding_bag")
def embedding_bag(op: Op, args: tuple, params: dict) -> Any:
    """Reduce each component as a bag of row indices, as between two offsets of a plain tensor."""
    ids, weight, offsets, factors = args
    if not is_nested(ids) or is_nested(weight) or offsets is not None or params["include_last_offset"]:
        return NotImplemented
    ids = packed(ids)
    known = layout(ids)
    if known.ndim != 2 or known.several != 1 or not (factors is None or _alike(factors, ids)):
        return NotImplemented
    starts = as_tensor(known.structure.offsets[:-1])
    factors = None if factors is None else values(packed(factors))
    return call(op, (values(ids), weight, starts, factors), params)


def _alike(x: Any, other: Any) -> bool:
    """Whether two tensors are nested with the same rows; one may have further dimensions."""
    return is_nested(x) and layout(packed(x))._replace(ndim=other.ndim) == layout(packed(other))
