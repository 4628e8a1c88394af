"""The tensors from outside that share an array or a version counter: a program for such tensors is for no others.

A write to one of them is a write to the other one, and is recorded for one of them only.
"""

from collections.abc import Iterator
from typing import Any

from retrograd.core.tensor import INFERENCE

# Two tensors, or their .grad, by their numbers, and whether they share only the version counter.
Relation = tuple[int, bool, int, bool, bool]


def find_relations(
    arguments: list[Any], constants: list[Any], grads: dict[int, Any], left: dict[int, Any]
) -> list[Relation]:
    """Return the pairs of tensors that share something, of which one may be another in a later call.

    `grads` are the .grad of tensors before the call, by the ids of these, and `left` the arrays before the call of the
    tensors that have others after it.
    """
    found: list[Relation] = []
    first: dict[tuple[int, bool], tuple[int, bool]] = {}
    for i, is_grad, t in _with_grads([*arguments, *constants], grads):
        may_differ = is_grad or i < len(arguments)
        for shared, by_version in ((left.get(id(t), t.value), False), (t.version, True)):
            if shared is None or shared is INFERENCE:
                continue
            j, of_grad = first.setdefault((id(shared), by_version), (i, is_grad))
            if (j, of_grad) != (i, is_grad) and (not by_version or may_differ or of_grad or j < len(arguments)):
                found.append((j, of_grad, i, is_grad, by_version))
    return found


def relations_hold(relations: list[Relation], tensors: list[Any]) -> bool:
    """Return whether tensors share what they shared; their guards hold, so they have a .grad where they had one."""
    for i, i_grad, j, j_grad, by_version in relations:
        one, other = tensors[i], tensors[j]
        one, other = one._grad if i_grad else one, other._grad if j_grad else other
        if one is None or other is None:
            return False
        same = one.version is other.version is not None if by_version else one.value is other.value
        if not same:
            return False
    return True


def _with_grads(tensors: list[Any], grads: dict[int, Any]) -> Iterator[tuple[int, bool, Any]]:
    """Yield the number of each tensor with the tensor, and then with its .grad."""
    for i, t in enumerate(tensors):
        yield i, False, t
        if grads.get(id(t)) is not None:
            yield i, True, grads[id(t)]
