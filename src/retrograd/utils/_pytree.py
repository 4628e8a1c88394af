"""Functions on pytrees; the names are those of `torch.utils._pytree`. None is a leaf, and dicts keep their order."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeAlias

import optree
from optree import (
    PyTreeSpec,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
)

from . import treespec_json
from .treespec_json import WAY as _WAY
from .treespec_json import treespec_dumps, treespec_loads

__all__ = [
    "Context", "GetAttrKey", "KeyEntry", "KeyPath", "LeafSpec", "MappingKey", "PyTree", "PyTreeSpec", "SequenceKey",
    "TreeSpec", "arg_tree_leaves", "is_constant_class", "is_namedtuple", "is_namedtuple_class",
    "is_namedtuple_instance", "is_structseq", "is_structseq_class", "is_structseq_instance", "key_get", "keystr",
    "register_constant", "register_dataclass", "register_pytree_node", "tree_all", "tree_all_only", "tree_any",
    "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves",
    "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path",
    "tree_structure", "tree_unflatten", "treespec_dict", "treespec_dumps", "treespec_leaf", "treespec_loads",
    "treespec_pprint", "treespec_tuple",
]  # fmt: skip

Context: TypeAlias = Any
PyTree: TypeAlias = Any
TreeSpec = PyTreeSpec
Leaf: TypeAlias = Callable[[Any], bool] | None  # a function that says of a subtree whether it counts as a leaf

_NAMESPACE = _WAY["namespace"]  # in which optree keeps the order of dicts
_ORDERED = optree.dict_insertion_ordered(True, namespace=_NAMESPACE)
_ORDERED.__enter__()  # for the whole process, because all threads share this setting


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """The position of a child in a sequence; printed as `[1]`."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Sequence) -> Any:
        """Return the child of a sequence at this position."""
        return sequence[self.idx]


@dataclass(frozen=True, slots=True)
class MappingKey:
    """The position of a child in a mapping; printed as `['key']`."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Mapping) -> Any:
        """Return the child of a mapping at this position."""
        return mapping[self.key]


@dataclass(frozen=True, slots=True)
class GetAttrKey:
    """The position of a child that is an attribute, as in named tuples; printed as `.name`."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Return the child of an object at this position."""
        return getattr(obj, self.name)


KeyEntry: TypeAlias = SequenceKey | MappingKey | GetAttrKey
KeyPath: TypeAlias = tuple[KeyEntry, ...]


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable, Any]],
    unflatten_fn: Callable[[list, Any], Any],
    *,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[KeyEntry, Any]], Any]] | None = None,
    **names: Any,
) -> None:
    """Register a class as a kind of inner node, for these functions and for all transforms.

    flatten_fn: returns the children of an object and whatever else is needed to rebuild it; unflatten_fn: rebuilds it.
    flatten_with_keys_fn: returns pairs of a position and a child instead of the children, for paths; by default the
    children are numbered.  serialized_type_name: a name for `treespec_dumps`, with `to_dumpable_context` and
    `from_dumpable_context`, by default those of `json`.  Further keywords are ignored.  ValueError if the class is
    registered.

    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> register_pytree_node(Pair, lambda pair: ([pair.a, pair.b], None), lambda children, _: Pair(*children))
    >>> tree_leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    everywhere: Any = optree.registry.__GLOBAL_NAMESPACE
    register: Any = optree.register_pytree_node
    flatten: Callable = flatten_fn
    if flatten_with_keys_fn is not None:

        def flatten(obj: Any) -> tuple[list, Any, list]:
            children, context = flatten_with_keys_fn(obj)
            return [child for _, child in children], context, [key for key, _ in children]

    register(cls, flatten, lambda context, children: unflatten_fn(list(children), context), namespace=everywhere)
    if names.get("serialized_type_name") is not None:
        ways = names.get("to_dumpable_context"), names.get("from_dumpable_context")
        treespec_json.register(cls, names["serialized_type_name"], unflatten_fn, *ways)


_register_pytree_node = register_pytree_node  # the name that libraries import


def register_dataclass(
    cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None, **names: Any
) -> None:
    """Register a dataclass as a kind of inner node, whose children are its fields that are not None.

    field_names: the fields that are children, by default those of `__init__`; drop_field_names: the others, which get
    their defaults again. ValueError if both together are not the fields of `__init__`.

    >>> from dataclasses import dataclass, fields, is_dataclass
    >>> @dataclass
    ... class Point:
    ...     x: int
    ...     y: int
    >>> register_dataclass(Point)
    >>> tree_map(lambda v: v + 1, Point(1, 2))
    Point(x=2, y=3)
    """
    dropped = drop_field_names or []
    fields_of_init = [field.name for field in fields(cls) if field.init] if is_dataclass(cls) else None
    if field_names is None:
        if fields_of_init is None:
            raise ValueError(f"register_dataclass: field_names must be specified, because {cls} is no dataclass")
        field_names = fields_of_init
    elif fields_of_init is not None and {*field_names, *dropped} != {*fields_of_init}:
        raise ValueError(
            f"register_dataclass: {cls} has the fields {fields_of_init}, but field_names and drop_field_names are "
            f"{[*field_names, *dropped]}"
        )

    def flatten_with_keys(obj: Any) -> tuple[list[tuple[KeyEntry, Any]], Context]:
        found = [(name, getattr(obj, name)) for name in field_names]
        children: list[tuple[KeyEntry, Any]] = [(GetAttrKey(name), v) for name, v in found if v is not None]
        return children, ([name for name, v in found if v is not None], [name for name, v in found if v is None])

    def flatten(obj: Any) -> tuple[list, Context]:
        children, context = flatten_with_keys(obj)
        return [child for _, child in children], context

    def unflatten(children: Iterable, context: Context) -> Any:
        given, absent = context
        return cls(**dict(zip(given, children, strict=True)), **dict.fromkeys(absent))

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=flatten_with_keys, **names)


def register_constant(cls: type) -> None:
    """Register a class whose objects belong to the structure of a pytree and have no leaves.

    Structures are equal only if these objects are: TypeError for a class without `__eq__` or `__hash__` of its own.

    >>> class Mode(str):
    ...     pass
    >>> register_constant(Mode)
    >>> tree_leaves([Mode("fast"), 1])
    [1]
    """
    if cls.__eq__ is object.__eq__:  # type: ignore[comparison-overlap]
        raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `__eq__`, got {cls}")
    if cls.__hash__ is None:
        raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `__hash__`, got {cls}")
    register_pytree_node(cls, lambda obj: ([], obj), lambda _, obj: obj, flatten_with_keys_fn=lambda obj: ([], obj))
    _CONSTANTS.add(cls)


def is_constant_class(cls: type) -> bool:
    """Return whether a class was registered by `register_constant`."""
    return cls in _CONSTANTS


_CONSTANTS: set[type] = set()


def tree_flatten(tree: PyTree, is_leaf: Leaf = None) -> tuple[list, Any]:
    """Return the leaves of a pytree and its structure.

    >>> leaves, spec = tree_flatten({"b": 1, "a": (2, None)})
    >>> leaves, tree_unflatten([5, 6, 7], spec)
    ([1, 2, None], {'b': 5, 'a': (6, 7)})
    """
    return optree.tree_flatten(tree, is_leaf, **_WAY)


def tree_unflatten(leaves: Iterable, treespec: Any) -> PyTree:
    """Return the pytree of a structure with these leaves; ValueError if their number is another."""
    return optree.tree_unflatten(treespec, leaves)


def tree_iter(tree: PyTree, is_leaf: Leaf = None) -> Iterator:
    """Return an iterator over the leaves."""
    return iter(optree.tree_iter(tree, is_leaf, **_WAY))


def tree_leaves(tree: PyTree, is_leaf: Leaf = None) -> list:
    """Return the leaves."""
    return optree.tree_leaves(tree, is_leaf, **_WAY)


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list:
    """Return the leaves of arguments and of keyword arguments.

    >>> arg_tree_leaves(1, [2], last=3)
    [1, 2, 3]
    """
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_iter(tree)]


def tree_structure(tree: PyTree, is_leaf: Leaf = None) -> Any:
    """Return the structure."""
    return optree.tree_structure(tree, is_leaf, **_WAY)


def tree_is_leaf(tree: PyTree, is_leaf: Leaf = None) -> bool:
    """Return whether a pytree is one leaf."""
    return optree.tree_is_leaf(tree, is_leaf, **_WAY)


def LeafSpec() -> Any:
    """Return the structure of one leaf."""
    return optree.treespec_leaf(**_WAY)


treespec_leaf = LeafSpec


def treespec_tuple(iterable: Iterable = (), /) -> Any:
    """Return the structure of a tuple from those of its members.

    >>> treespec_tuple([LeafSpec(), LeafSpec()]) == tree_structure((1, 2))
    True
    """
    return optree.treespec_tuple(iterable, **_WAY)


def treespec_dict(mapping: Mapping | Iterable = (), /, **kwargs: Any) -> Any:
    """Return the structure of a dict from those of its values.

    >>> treespec_dict({"a": LeafSpec()}) == tree_structure({"a": 1})
    True
    """
    return optree.treespec_dict(mapping, **_WAY, **kwargs)


def treespec_pprint(treespec: Any) -> str:
    """Return the structure in the form of its pytree, with * for each leaf.

    >>> print(treespec_pprint(tree_structure({"a": [1, 2], "b": None})))
    {'a': [*, *], 'b': *}
    """
    return repr(tree_unflatten([treespec_json.LEAF] * treespec.num_leaves, treespec))


def tree_map(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: Leaf = None) -> PyTree:
    """Return the pytree of the function's results for the leaves, and those at the same positions of further pytrees.

    >>> tree_map(lambda x, y: x + y, {"b": 1, "a": (2, 3)}, {"b": 10, "a": (20, 30)})
    {'b': 11, 'a': (22, 33)}
    """
    return optree.tree_map(func, tree, *rests, is_leaf=is_leaf, **_WAY)


def tree_map_(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: Leaf = None) -> PyTree:
    """Call a function for the leaves, as `tree_map` does, and return the first pytree."""
    return optree.tree_map_(func, tree, *rests, is_leaf=is_leaf, **_WAY)


def tree_map_only(type_or_types_or_pred: Any, /, func: Callable, tree: PyTree, is_leaf: Leaf = None) -> PyTree:
    """Return the pytree in which a function has replaced the leaves of some types, or those that a predicate accepts.

    >>> tree_map_only(int, lambda x: -x, [1, "two", 3])
    [-1, 'two', -3]
    """
    return tree_map(_only(type_or_types_or_pred, func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, /, func: Callable, tree: PyTree, is_leaf: Leaf = None) -> PyTree:
    """Call a function for the leaves of some types, as `tree_map_only` does, and return the pytree."""
    return tree_map_(_only(type_or_types_or_pred, func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Leaf = None) -> bool:
    """Return whether a predicate accepts all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Leaf = None) -> bool:
    """Return whether a predicate accepts any leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: Leaf = None) -> bool:
    """Return whether a predicate accepts all leaves of some types."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: Leaf = None) -> bool:
    """Return whether a predicate accepts any leaf of some types."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def _only(chosen: Any, func: Callable) -> Callable:
    """Return a function that applies `func` to leaves of the chosen types, or that a predicate accepts."""
    if isinstance(chosen, type | tuple) or hasattr(chosen, "__args__"):
        return lambda leaf: func(leaf) if isinstance(leaf, chosen) else leaf
    return lambda leaf: func(leaf) if chosen(leaf) else leaf


def tree_flatten_with_path(tree: PyTree, is_leaf: Leaf = None) -> tuple[list[tuple[KeyPath, Any]], Any]:
    """Return pairs of a path and a leaf of a pytree, and its structure.

    >>> paths, spec = tree_flatten_with_path({"b": [1, 2]})
    >>> [(keystr(path), leaf) for path, leaf in paths]
    [("['b'][0]", 1), ("['b'][1]", 2)]
    """
    accessors, leaves, spec = optree.tree_flatten_with_accessor(tree, is_leaf, **_WAY)
    return [(tuple(map(_key, path)), leaf) for path, leaf in zip(accessors, leaves, strict=True)], spec


def tree_leaves_with_path(tree: PyTree, is_leaf: Leaf = None) -> list[tuple[KeyPath, Any]]:
    """Return pairs of a path and a leaf of a pytree."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: Leaf = None) -> PyTree:
    """Return what `tree_map` does, with a function that is given the path of each leaf first.

    >>> tree_map_with_path(lambda path, x: f"{keystr(path)}={x}", {"b": (1, 2)})
    {'b': ("['b'][0]=1", "['b'][1]=2")}
    """
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(other) for other in rests]
    return tree_unflatten([func(*pair, *rest) for pair, *rest in zip(found, *others, strict=True)], spec)


def keystr(kp: KeyPath) -> str:
    """Return the text of a path, such as `['b'][0].x`."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Return what is at a path in an object.

    >>> key_get({"b": (1, 2)}, (MappingKey("b"), SequenceKey(1)))
    2
    """
    for key in kp:
        obj = key.get(obj)
    return obj


def _key(entry: Any) -> Any:
    """Return PyTorch's form of a position in optree."""
    if isinstance(entry, optree.NamedTupleEntry):
        return GetAttrKey(entry.field)
    if isinstance(entry, optree.MappingEntry):
        return MappingKey(entry.entry)
    return SequenceKey(entry.entry) if isinstance(entry.entry, int) else entry.entry


# Libraries register their own kinds of dicts by these three, private as they are in PyTorch.
def _dict_flatten(d: dict) -> tuple[list, Context]:
    """Return the values of a dict and its keys."""
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict) -> tuple[list[tuple[MappingKey, Any]], Context]:
    """Return pairs of a position and a value of a dict, and its keys."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_unflatten(values: Iterable, context: Context) -> dict:
    """Return the dict of some values and keys."""
    return dict(zip(context, values, strict=True))
