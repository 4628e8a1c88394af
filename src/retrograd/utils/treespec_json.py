"""The structure of a pytree as PyTorch's JSON: `treespec_dumps` and `treespec_loads` of `utils._pytree`."""

import json
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import optree

PROTOCOL = 1
WAY: dict[str, Any] = {"none_is_leaf": True, "namespace": "retrograd.utils"}
LEAF = type("Leaf", (), {"__repr__": lambda self: "*"})()
FACTORIES = {kind.__name__: kind for kind in (list, dict, set, tuple, int, float, str, bool)}  # of a defaultdict


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of inner node: its name, and functions between its metadata and JSON."""

    name: str
    write: Callable[[Any], Any]
    read: Callable[[Any, list], Any]


def _keys(context: str, children: list) -> list[tuple]:
    return list(zip(json.loads(context), children, strict=True))


def _write_default_dict(metadata: Any) -> dict:
    factory, keys = metadata
    name = getattr(factory, "__name__", None)
    if factory is not None and FACTORIES.get(name or "") is not factory:
        raise NotImplementedError(
            f"a defaultdict of {factory!r} can't be serialized, only one of {', '.join(FACTORIES)}"
        )
    return {"default_factory_module": factory and "builtins", "default_factory_name": name, "dict_context": list(keys)}


def _read_default_dict(context: dict, children: list) -> defaultdict:
    name = context["default_factory_name"]
    if name is not None and (context["default_factory_module"] != "builtins" or name not in FACTORIES):
        raise NotImplementedError(f"a defaultdict of {name} can't be deserialized, only one of {', '.join(FACTORIES)}")
    factory = None if name is None else FACTORIES[name]
    return defaultdict(factory, zip(context["dict_context"], children, strict=True))


KINDS: dict[type, Kind] = {
    tuple: Kind("builtins.tuple", lambda _: "null", lambda _, children: tuple(children)),
    list: Kind("builtins.list", lambda _: "null", lambda _, children: children),
    dict: Kind(
        "builtins.dict", lambda keys: json.dumps(list(keys)), lambda keys, children: dict(_keys(keys, children))
    ),
    OrderedDict: Kind(
        "collections.OrderedDict",
        lambda keys: json.dumps(list(keys)),
        lambda keys, children: OrderedDict(_keys(keys, children)),
    ),
    defaultdict: Kind("collections.defaultdict", _write_default_dict, _read_default_dict),
    deque: Kind("collections.deque", json.dumps, lambda size, children: deque(children, json.loads(size))),
}


def register(
    cls: type,
    name: str,
    unflatten_fn: Callable,
    to_dumpable_context: Callable | None = None,
    from_dumpable_context: Callable | None = None,
) -> None:
    """Add a class to those whose structures can be serialized; an earlier class of that name is no longer read."""
    write, load = to_dumpable_context or json.dumps, from_dumpable_context or json.loads
    KINDS[cls] = Kind(name, write, lambda context, children: unflatten_fn(children, load(context)))


def treespec_dumps(treespec: Any, protocol: int | None = None) -> str:
    """Return the structure of a pytree as JSON, in the form that PyTorch reads and writes.

    TypeError for another object, ValueError for another protocol than 1, NotImplementedError for a class that was
    registered without `serialized_type_name`.

    >>> from retrograd.utils import _pytree
    >>> treespec_dumps(_pytree.tree_structure((1, 2)))[:41]
    '[1, {"type": "builtins.tuple", "context":'
    """
    if not isinstance(treespec, optree.PyTreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    if protocol not in (None, PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{PROTOCOL}]")
    return json.dumps([PROTOCOL, _write(optree.tree_unflatten(treespec, [LEAF] * treespec.num_leaves))])


def treespec_loads(serialized: str) -> Any:
    """Return the structure of a pytree from its JSON; nothing is imported for it.

    ValueError for another protocol than 1, NotImplementedError for a class that is not registered here.

    >>> from retrograd.utils import _pytree
    >>> spec = _pytree.tree_structure({"a": [1, (2, 3)]})
    >>> treespec_loads(treespec_dumps(spec)) == spec
    True
    """
    protocol, schema = json.loads(serialized)
    if protocol != PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{PROTOCOL}]")
    return optree.tree_structure(_read(schema), **WAY)


def _write(value: Any) -> dict:
    if value is LEAF:
        return {"type": None, "context": None, "children_spec": []}
    kind = KINDS.get(type(value))
    if kind is None:
        raise NotImplementedError(
            f"a {type(value).__name__} can't be serialized: register its class by register_pytree_node with "
            "serialized_type_name="
        )
    children, metadata, _, _ = optree.tree_flatten_one_level(value, **WAY)
    return {"type": kind.name, "context": kind.write(metadata), "children_spec": [_write(child) for child in children]}


def _read(schema: dict) -> Any:
    if schema["type"] is None:
        return LEAF
    children = [_read(child) for child in schema["children_spec"]]
    for kind in reversed(KINDS.values()):
        if kind.name == schema["type"]:
            return kind.read(schema["context"], children)
    raise NotImplementedError(f"Deserializing {schema['type']} in pytree is not registered.")
