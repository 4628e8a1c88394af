"""The checks of `Graph.lint`."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from retrograd.autograd.function.base import FunctionOp
from retrograd.core import Op, registry
from retrograd.fx.node import Node, map_nodes, nodes_in
from retrograd.nn.module import Module

if TYPE_CHECKING:
    from retrograd.fx.graph import Graph

SNAKE_CASE = re.compile(r"[a-z_][a-z0-9_]*")


def check(graph: "Graph") -> None:
    """Raise a RuntimeError that lists all faults of a graph, one per line."""
    problems = [problem for rule in RULES for problem in rule(graph)]
    if problems:
        raise RuntimeError("lint: the graph is not sound:\n  " + "\n  ".join(problems))


def _order(graph: "Graph") -> Iterator[str]:
    """Check that inputs come first, one output comes last, and every node comes after its inputs."""
    earlier: dict[Node, None] = {}
    for node in graph.nodes:
        if node.graph is not graph:
            yield f"Node {node.name!r} does not belong to this Graph"
        for used in nodes_in((node.args, node.kwargs)):
            if used.graph is not graph:
                yield (
                    f"Argument {used.name!r} of Node {node.name!r} does not belong to this Graph; when copying nodes, "
                    f"replace their arguments by the `arg_transform` of node_copy"
                )
            elif used not in earlier:
                yield f"Argument {used.name!r} of Node {node.name!r} was used before it has been defined"
        earlier[node] = None
    kinds = [node.op for node in graph.nodes]
    if kinds and (kinds.count("output") != 1 or kinds[-1] != "output"):
        yield f"expected one output, as the last node, got {kinds.count('output')}"


def _users(graph: "Graph") -> Iterator[str]:
    """Check that the users of a node are the nodes that have it among their arguments."""
    actual: dict[Node, set[Node]] = {node: set() for node in graph.nodes}
    for node in graph.nodes:
        for used in nodes_in((node.args, node.kwargs)):
            actual.get(used, set()).add(node)
    for node, users in actual.items():
        if users != set(node.users):
            yield f"{node.name}.users is {list(node.users)}, but {sorted(u.name for u in users)} use it"


def _names(graph: "Graph") -> Iterator[str]:
    """Check that names are unique and in snake_case."""
    earlier = set()
    for node in graph.nodes:
        if not SNAKE_CASE.fullmatch(node.name):
            yield f"the name {node.name!r} is not in snake_case"
        if node.name in earlier:
            yield f"Node redefined name {node.name}"
        earlier.add(node.name)


def _targets(graph: "Graph") -> Iterator[str]:
    """Check that called operators are registered and get valid arguments, and that other targets have valid types."""
    for node in graph.nodes:
        if node.op != "call_function":
            if not isinstance(node.target, str):
                yield f"{node.name}: the target of {node.op} must be a string, got {node.target!r}"
            elif node.op == "call_method" and not node.args:
                yield f"{node.name} calls the method {node.target} of nothing: it has no arguments"
        elif not callable(node.target):
            yield f"{node.name} calls {node.target!r}, which is no operator or function"
        elif not isinstance(node.target, Op) or isinstance(node.target, FunctionOp):
            continue
        elif registry.get(node.target.name) is not node.target:
            yield f"{node.name} calls {node.target!r}, which is no registered operator"
        else:
            yield from _arguments(node)


def _attributes(graph: "Graph") -> Iterator[str]:
    """Check that the module that runs the graph has the attributes that it reads and calls."""
    owner: Any = graph.owning_module
    for node in graph.nodes if owner is not None else ():
        if node.op in ("get_attr", "call_module") and isinstance(node.target, str):
            found = find_attribute(owner, node.target)
            if found is None:
                yield f"Node {node.name} target {node.target} references nonexistent attribute of the module"
            elif node.op == "call_module" and not isinstance(found, Module):
                yield f"Node {node.name} target {node.target} does not reference an nn.Module"


def find_attribute(owner: Any, target: str) -> Any:
    """Return the attribute of that qualified name; None if there is none."""
    for name in target.split("."):
        owner = getattr(owner, name, None)
    return owner


def _arguments(node: Node) -> Iterator[str]:
    args, kwargs = map_nodes((node.args, node.kwargs), _placeholder_value)
    try:
        node.target.schema.bind(args, kwargs)
    except TypeError as error:
        yield f"{node.name}: {error}"


def _placeholder_value(node: Node) -> Any:
    """Return a value that schemas accept for a node's result: avals for several results, a number for sizes."""
    val = node.meta.get("val")
    if isinstance(node.target, Op) and node.target.schema.returns in ("int", "float"):
        return 1
    if val is None:
        return _Unknown()
    return val if isinstance(val, tuple) and val else node


class _Unknown:
    """A value of unknown type, which schemas accept everywhere."""

    @classmethod
    def __tensor_function__(cls, func: Any, types: tuple, args: tuple, kwargs: dict[str, Any]) -> Any:
        return NotImplemented


def _signature(graph: "Graph") -> Iterator[str]:
    """Check that the signature has a leaf for every placeholder."""
    count = len(graph.find_nodes(op="placeholder"))
    if graph.signature is not None and len(graph.signature.inputs) != count:
        yield f"the signature has {len(graph.signature.inputs)} inputs, but there are {count} placeholders"


RULES = (_order, _users, _names, _targets, _attributes, _signature)
