"""Attributes by qualified name, and graphs split by the tags of nodes."""

from typing import Any

from retrograd.fx.graph_module import GraphModule
from retrograd.fx.node import CALLS, Node
from retrograd.fx.passes.split_module import split_by_names

__all__ = ["getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: Any, name: str) -> Any:
    """Return the attribute of a qualified name; None if a part of it is missing.

    >>> import retrograd as rg
    >>> getattr_recursive(rg, "nn.Linear").__name__
    'Linear'
    """
    for part in name.split("."):
        if not hasattr(obj, part):
            return None
        obj = getattr(obj, part)
    return obj


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Set the attribute of a qualified name; raise AttributeError if a part of the path is missing."""
    *path, name = attr.split(".")
    for part in path:
        obj = getattr(obj, part)
    setattr(obj, name, value)


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> GraphModule | tuple[GraphModule, dict[str, str]]:
    """Return a module with a submodule for each tag, named by it, in the order of `tags`.

    Every call has one of the tags as its attribute `tag`.  With `return_fqn_mapping` the second result has the new
    qualified name of each submodule and attribute, by the old one; with `return_tuple` the submodules always return
    tuples.  `GraphModuleCls` is the class of the result.  Raises ValueError for a call without one of the tags, and
    RuntimeError if a part needs values of a later one.

    >>> from retrograd import fx
    >>> module = fx.symbolic_trace(lambda x: x.exp() + 1)
    >>> for node in module.graph.nodes:
    ...     node.tag = "red" if node.name == "exp" else "blue"
    >>> [name for name, _ in split_by_tags(module, ["red", "blue"]).named_children()]
    ['red', 'blue']
    """
    names: dict[str, str] = {}
    found = split_by_names(gm, {n: _tag(n, tags) for n in gm.graph.nodes if n.op in CALLS}, tags, names, return_tuple)
    if GraphModuleCls is not GraphModule:
        found = GraphModuleCls(found, found.graph)
    return (found, {old: new for new, old in names.items()}) if return_fqn_mapping else found


def _tag(node: Node, tags: list[str]) -> str:
    tag = getattr(node, "tag", None)
    if tag not in tags:
        raise ValueError(f"split_by_tags: the tag of {node.name} is {tag!r}, which is none of {tags}")
    return tag
