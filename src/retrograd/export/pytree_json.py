"""The structure of nested containers as JSON, read without imports."""

from collections import OrderedDict, defaultdict, deque
from typing import Any

import optree

from retrograd.fx.dataclass_pytrees import is_dataclass
from retrograd.interop.json_values import MAX_DEPTH, Codec, StorageError, expect, members, text
from retrograd.interop.stored_names import class_name, find_class
from retrograd.utils.treespec_json import FACTORIES, LEAF

_codec = Codec()


def write_tree(spec: Any) -> Any:
    """Return an optree structure as JSON."""
    return _write(optree.tree_unflatten(spec, [LEAF] * spec.num_leaves), 0)


def read_tree(data: Any) -> Any:
    """Return the structure encoded by JSON; StorageError if invalid, or if it has classes unknown to this process."""
    try:
        tree = _read(data, 0)
        return optree.tree_structure(tree)
    except StorageError:
        raise
    except Exception as error:  # a class's own function may raise anything for the file's content
        raise StorageError(f"the structure is invalid: {error}") from error


def _write(value: Any, depth: int) -> Any:
    if value is LEAF:
        return "*"
    if depth > MAX_DEPTH:
        raise StorageError(f"containers are nested more than {MAX_DEPTH} deep")
    if is_dataclass(value):
        raise StorageError(f"a {type(value).__name__} can't be stored: its class is not registered with optree")
    children, metadata, _, _ = optree.tree_flatten_one_level(value)
    parts = [_write(child, depth + 1) for child in children]
    if type(value) in _WRITERS:
        tag, description = _WRITERS[type(value)]
        return {tag: [description(value, metadata), parts]}
    if optree.is_namedtuple(value):
        return {"namedtuple": [[*class_name(type(value)), list(type(value)._fields)], parts]}
    if optree.register_pytree_node.get(type(value)) is None:
        raise StorageError(f"a {type(value).__name__} can't be stored: its class is not registered with optree")
    return {"class": [[*class_name(type(value)), _codec.write(metadata)], parts]}


def _factory(kind: Any) -> str | None:
    if kind is not None and FACTORIES.get(getattr(kind, "__name__", "")) is not kind:
        raise StorageError(f"a defaultdict of {kind!r} can't be stored, only one of {', '.join(FACTORIES)}")
    return None if kind is None else kind.__name__


_WRITERS: dict[type, Any] = {  # the tag, and the data needed in addition to the children
    type(None): ("none", lambda value, metadata: None),
    tuple: ("tuple", lambda value, metadata: None),
    list: ("list", lambda value, metadata: None),
    dict: ("dict", lambda value, metadata: _codec.write(list(metadata))),
    OrderedDict: ("ordered dict", lambda value, metadata: _codec.write(list(metadata))),
    defaultdict: ("default dict", lambda value, metadata: [_factory(metadata[0]), _codec.write(list(metadata[1]))]),
    deque: ("deque", lambda value, metadata: metadata),
}


def _read(data: Any, depth: int) -> Any:
    if data == "*":
        return LEAF
    if depth > MAX_DEPTH:
        raise StorageError(f"containers are nested more than {MAX_DEPTH} deep")
    expect(type(data) is dict and len(data) == 1, "a container", data)
    [(tag, inner)] = data.items()
    description, parts = members(inner, 2, "a container and its members")
    children = [_read(part, depth + 1) for part in members(parts, None, "members of a container")]
    expect(tag in _READERS, "a known kind of container", tag)
    return _READERS[tag](description, children)


def _sequence(description: Any, children: list) -> list:
    expect(description is None, "null", description)
    return children


def _none(description: Any, children: list) -> None:
    expect(description is None and not children, "no members in None", description)


def _items(description: Any, children: list) -> list:
    """Return pairs of keys and members of a dict."""
    keys = [_codec.read(key) for key in members(description, len(children), "a key for each member")]
    expect(len(dict.fromkeys(keys)) == len(keys), "keys, each once", description)
    return list(zip(keys, children, strict=True))


def _default_dict(description: Any, children: list) -> defaultdict:
    factory, keys = members(description, 2, "a factory and keys")
    expect(factory is None or (type(factory) is str and factory in FACTORIES), "the factory of a defaultdict", factory)
    return defaultdict(None if factory is None else FACTORIES[factory], _items(keys, children))


def _deque(description: Any, children: list) -> deque:
    valid = description is None or (type(description) is int and len(children) <= description < 2**31)
    expect(valid, "the length of a deque", description)
    return deque(children, description)


def _namedtuple(description: Any, children: list) -> Any:
    module, name, names = members(description, 3, "a class and its fields")
    found = find_class(text(module, "a module"), text(name, "a class"))
    if not optree.is_namedtuple_class(found):
        raise StorageError(f"there is no namedtuple {module}.{name}: import the module that defines it before loading")
    expect(list(found._fields) == names and len(names) == len(children), f"the fields of {name}", names)
    return found(*children)


def _custom_node(description: Any, children: list) -> Any:
    module, name, metadata = members(description, 3, "a class and its metadata")
    found = find_class(text(module, "a module"), text(name, "a class"))
    entry = optree.register_pytree_node.get(found) if isinstance(found, type) else None
    if entry is None or found in _WRITERS:
        raise StorageError(
            f"the class {module}.{name} is not registered: import the module that calls optree.register_pytree_node "
            f"for it before loading"
        )
    return entry.unflatten_func(_codec.read(metadata), children)


_READERS: dict[str, Any] = {
    "none": _none,
    "tuple": lambda description, children: tuple(_sequence(description, children)),
    "list": _sequence,
    "dict": lambda description, children: dict(_items(description, children)),
    "ordered dict": lambda description, children: OrderedDict(_items(description, children)),
    "default dict": _default_dict,
    "deque": _deque,
    "namedtuple": _namedtuple,
    "class": _custom_node,
}
