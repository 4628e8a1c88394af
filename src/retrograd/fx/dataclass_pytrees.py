"""Dataclasses among arguments and results, as pytrees; and checks for objects that hide traced values."""

import dataclasses
from collections import deque
from collections.abc import ItemsView, KeysView, ValuesView
from types import ModuleType
from typing import Any, cast

import optree

from retrograd.core import Tensor
from retrograd.fx.immutable_collections import EVERYWHERE
from retrograd.nn.module import Module

CONTAINERS = (set, frozenset, deque, KeysView, ValuesView, ItemsView)


class Fields:
    """The fields of a dataclass instance, which is rebuilt when a pytree is unflattened."""

    def __init__(self, record: Any) -> None:
        self.kind = type(record)
        self.names = tuple([f.name for f in dataclasses.fields(record) if f.init])
        self.values = tuple([with_fields(getattr(record, name)) for name in self.names])


def _rebuild(kind: tuple, values: Any) -> Any:
    cls, names = kind
    return cls(**dict(zip(names, values, strict=True)))


_register: Any = optree.register_pytree_node
_register(Fields, lambda v: (v.values, (v.kind, v.names)), _rebuild, namespace=EVERYWHERE)


def with_fields(tree: Any) -> Any:
    """Return a tree with dataclass instances replaced by their fields, unless optree knows their class."""
    return optree.tree_map(lambda leaf: Fields(leaf) if is_dataclass(leaf) else leaf, tree)


def is_dataclass(value: Any) -> bool:
    """Return whether a value is a dataclass instance."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def members(value: Any) -> list:
    """Return the members of a set or of a user's object; none for modules, classes and functions."""
    if isinstance(value, CONTAINERS):
        return list(value)
    if isinstance(value, Module | Tensor | type | ModuleType) or callable(value):
        return []
    return list(getattr(value, "__dict__", {}).values())


def check_no_hidden_tensors(leaf: Any) -> None:
    """Raise TypeError for an object that contains traced tensors, because a graph cannot rebuild it."""
    contained: list = [] if isinstance(leaf, Tensor) else optree.tree_leaves(cast(Any, members(leaf)))
    if any(isinstance(x, Tensor) and x.level is not None for x in contained):
        raise TypeError(
            f"trace: the code returns a {type(leaf).__name__} with a traced tensor inside; return tensors in tuples, "
            f"lists, dicts, named tuples or dataclasses"
        )
