"""Programs as data: an ordered list of nodes that call registered operators."""

import builtins
import keyword
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from retrograd.core import Op
from retrograd.fx import codegen
from retrograd.fx.lint import check
from retrograd.fx.node import Node, map_leaves, map_nodes, target_name
from retrograd.fx.operators import GUARD
from retrograd.fx.signature import Signature

# Generated code itself uses these names.
TAKEN = {*dir(builtins), *keyword.kwlist, *keyword.softkwlist, "self", "ops"}


class Graph:
    """A program as an ordered list of nodes: inputs, attributes, calls of operators, and one output.

    Every function from graphs to graphs leaves `lint()` content.  `signature`, if there is one, says how the
    placeholders and the output stand in the arguments and results of the function that was traced.

    >>> from retrograd.core import registry
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(registry["exp"], (x,))
    >>> output = graph.output(y)
    >>> graph.lint()
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %exp : [num_users=1] = call_function[target=exp](args = (%x,), kwargs = {})
        return exp
    """

    def __init__(self) -> None:
        self.signature: Signature | None = None
        self._ring = Node(self, "", "output", "root")  # stands before the first and after the last node
        self._before = self._ring  # where the next node goes
        self._names: set[str] = set()

    # ----------------------------------------------------------------------------------------------- looking

    @property
    def nodes(self) -> "Nodes":
        """The nodes in order; while walking, nodes may be added, moved and erased."""
        return Nodes(self._ring)

    def find_nodes(self, *, op: str, target: Any = None) -> list[Node]:
        """The nodes of one kind, in order; of one target only, if that is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self) -> Node:
        """The output; a RuntimeError if there is none yet."""
        last = self._ring.prev
        if last is self._ring or last.op != "output":
            raise RuntimeError("graph: no output yet; end it with graph.output(...)")
        return last

    @property
    def guards(self) -> list[Node]:
        """The calls that check values which the traced code read: see `retrograd.fx.operators.guard`."""
        return self.find_nodes(op="call_function", target=GUARD)

    def __str__(self) -> str:
        lines = [f"    {node.format_node()}" for node in self.nodes]
        return "\n".join(["graph():", *lines])

    def python_code(self) -> codegen.Code:
        """The graph as the source of a Python function, with what that refers to."""
        return codegen.generate(self)

    def lint(self) -> None:
        """Check that the graph is sound: order, users, names, operators; a RuntimeError says what is not."""
        check(self)

    # ---------------------------------------------------------------------------------------------- building

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple = (),
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
    ) -> Node:
        """A new node at the current place, under `name` or a variant of it that is free."""
        node = Node(self, self._unique(name or target_name(target)), op, target, args, kwargs)
        node._link(self._before.prev, self._before)
        return node

    def placeholder(self, name: str) -> Node:
        """A new input."""
        return self.create_node("placeholder", name)

    def get_attr(self, target: str) -> Node:
        """A parameter, buffer or constant of the module, by qualified name."""
        return self.create_node("get_attr", target)

    def call_function(self, target: Op, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Node:
        """A call of a registered operator, with the arguments that its Python function takes."""
        if not isinstance(target, Op):
            raise TypeError(f"call_function: the target must be a registered operator, got {target!r}")
        return self.create_node("call_function", target, args, kwargs)

    def output(self, result: Any) -> Node:
        """The end: the node that is returned, or a tuple, list or dict of nodes and constants."""
        return self.create_node("output", "output", (result,))

    def erase_node(self, node: Node) -> None:
        """Take out a node; a RuntimeError if another still uses it."""
        if node.graph is not self:
            raise ValueError(f"erase_node: {node.name} is no node of this graph")
        if node.users:
            users = ", ".join(user.name for user in node.users)
            raise RuntimeError(f"erase_node: {node.name} is still used by {users}")
        node.args, node.kwargs = (), {}
        if self._before is node:
            self._before = node.next
        node._unlink()

    @contextmanager
    def inserting_before(self, node: Node) -> Iterator[None]:
        """New nodes go before `node` inside the block."""
        if node.graph is not self:
            raise ValueError(f"inserting: {node.name} is no node of this graph")
        old, self._before = self._before, node
        try:
            yield
        finally:
            self._before = old

    def inserting_after(self, node: Node) -> Any:
        """New nodes go after `node` inside the block, in the order in which they are made."""
        if node.graph is not self:
            raise ValueError(f"inserting: {node.name} is no node of this graph")
        return self.inserting_before(node.next)

    def node_copy(self, node: Node, map_node: Callable[[Node], Any]) -> Node:
        """A copy, in this graph, of another graph's node, its inputs replaced by `map_node`."""
        args, kwargs = map_nodes((node.args, node.kwargs), map_node)
        copy = self.create_node(node.op, node.target, args, kwargs, node.name)
        copy.meta = dict(node.meta)
        return copy

    def graph_copy(self, other: "Graph", values: dict[Node, Any]) -> Any:
        """Copy another graph's nodes, except those in `values`, which these replace; returns what it outputs.

        `values` then maps every node of the other graph, but the output.
        """
        for node in other.nodes:
            if node.op == "output":
                return map_nodes(node.args[0], values.__getitem__)
            if node not in values:
                values[node] = self.node_copy(node, values.__getitem__)
        return None

    def eliminate_dead_code(self) -> bool:
        """Erase what nothing uses, except inputs and impure calls; returns whether there was any."""
        dead = False
        for node in reversed(self.nodes):
            if not node.users and not node.is_impure():
                self.erase_node(node)
                dead = True
        return dead

    def _unique(self, candidate: str) -> str:
        name = base = _snake(candidate)
        number = 0
        if name in self._names:
            base = re.sub(r"_\d+$", "", name)
        while name in self._names or name in TAKEN:
            number += 1
            name = f"{base}_{number}"
        self._names.add(name)
        return name

    def __reduce__(self) -> tuple:
        return _from_rows, (_rows(self), self.signature)


class Nodes:
    """The nodes of a graph in order: iterable from both ends, with a length."""

    def __init__(self, ring: Node) -> None:
        self._ring = ring

    def __iter__(self) -> Iterator[Node]:
        node = self._ring.next
        while node is not self._ring:
            yield node  # which the walker may move or erase: an erased node still knows what came next
            node = node.next

    def __reversed__(self) -> Iterator[Node]:
        node = self._ring.prev
        while node is not self._ring:
            yield node
            node = node.prev

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(list(self))


def _snake(text: str) -> str:
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).lower()
    return f"_{name}" if not name or name[0].isdigit() else name


class _Reference:
    """A node by its number, in a graph's rows."""

    def __init__(self, number: int) -> None:
        self.number = number


def _rows(graph: Graph) -> list[tuple]:
    """The nodes as plain rows, so that however long a graph is, nothing recurses along it."""
    references = {node: _Reference(number) for number, node in enumerate(graph.nodes)}
    return [
        (n.op, n.target, *map_nodes((n.args, n.kwargs), references.__getitem__), n.name, n.meta) for n in graph.nodes
    ]


def _from_rows(rows: list[tuple], signature: Signature | None) -> Graph:
    graph = Graph()
    nodes: list[Node] = []

    def resolve(leaf: Any) -> Any:
        return nodes[leaf.number] if isinstance(leaf, _Reference) else leaf

    for op, target, args, kwargs, name, meta in rows:
        args, kwargs = map_leaves((args, kwargs), resolve)
        nodes.append(graph.create_node(op, target, args, kwargs, name))
        nodes[-1].meta = meta
    graph.signature = signature
    return graph
