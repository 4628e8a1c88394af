"""The tensors from outside that share an array, memory or a version counter: a program for such is for no others.

A write to one of them is a write to the other one, and is recorded for one of them only.
"""

from collections.abc import Iterator
from typing import Any

from retrograd.backend import array_programs
from retrograd.core.tensor import INFERENCE

ARRAY, MEMORY, VERSION = "array", "memory", "version counter"
# Two tensors, or their .grad, by their numbers, and what they share.
Relation = tuple[int, bool, int, bool, str]


def find_relations(
    arguments: list[Any], constants: list[Any], grads: dict[int, Any], left: dict[int, Any]
) -> list[Relation]:
    """Return the pairs of tensors that share something, of which one may be another in a later call.

    `grads` are the .grad of tensors before the call, by the ids of these, and `left` the arrays before the call of the
    tensors that have others after it.
    """
    found: list[Relation] = []
    first: dict[tuple[Any, str], tuple[int, bool]] = {}
    for i, is_grad, t in _with_grads([*arguments, *constants], grads):
        may_differ = is_grad or i < len(arguments)
        array, version = left.get(id(t), t.value), t.version
        keys = [(id(array), ARRAY), (array_programs.place_of(array), MEMORY), (id(version), VERSION)]
        for key, shared in keys[:2] if version is None or version is INFERENCE else keys:
            if key is None:
                continue
            j, of_grad = first.setdefault((key, shared), (i, is_grad))
            is_other = (j, of_grad) != (i, is_grad)
            if is_other and (shared is not VERSION or may_differ or of_grad or j < len(arguments)):
                found.append((j, of_grad, i, is_grad, shared))
    return found


def relations_hold(relations: list[Relation], tensors: list[Any]) -> bool:
    """Return whether tensors share what they shared; their guards hold, so they have a .grad where they had one."""
    for i, i_grad, j, j_grad, shared in relations:
        one, other = tensors[i], tensors[j]
        one, other = one._grad if i_grad else one, other._grad if j_grad else other
        if one is None or other is None:
            return False
        if not _share(one, other, shared):
            return False
    return True


def _share(one: Any, other: Any, shared: str) -> bool:
    if shared is VERSION:
        return one.version is other.version is not None
    return one.value is other.value or (shared is MEMORY and array_programs.is_alias(one.value, other.value))


def _with_grads(tensors: list[Any], grads: dict[int, Any]) -> Iterator[tuple[int, bool, Any]]:
    """Yield the number of each tensor with the tensor, and then with its .grad."""
    for i, t in enumerate(tensors):
        yield i, False, t
        if grads.get(id(t)) is not None:
            yield i, True, grads[id(t)]
