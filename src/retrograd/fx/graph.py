"""Programs as data: an ordered list of nodes that call operators, functions, methods and modules."""

import builtins
import keyword
import re
from collections.abc import Callable, Iterator
from inspect import Parameter
from typing import TYPE_CHECKING, Any
from weakref import ref

from retrograd.core import Op
from retrograd.core.level import generator_block
from retrograd.fx import codegen
from retrograd.fx.lint import check
from retrograd.fx.node import Node, format_value, map_leaves, map_nodes, target_name, target_text
from retrograd.fx.operators import GUARD
from retrograd.fx.signature import Signature

if TYPE_CHECKING:
    from retrograd.fx.graph_module import GraphModule

# Names that generated code uses itself.
TAKEN = {*dir(builtins), *keyword.kwlist, *keyword.softkwlist, "self", "ops"}


class Graph:
    """A program as an ordered list of nodes: inputs, attributes, calls, and one output.

    Every function from graphs to graphs returns one that passes `lint()`.  `signature`, if there is one, maps the
    arguments and results of the traced function to the placeholders and the output.

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
        self._ring = Node(self, "", "output", "root")  # sentinel before the first and after the last node
        self._before = self._ring  # the node before which the next one is inserted
        self._names: set[str] = set()
        self._numbers: dict[str, int] = {}  # base name -> the last number used with it
        self._owner: ref[GraphModule] | None = None

    # ------------------------------------------------------------------------------------------------ queries

    @property
    def nodes(self) -> "Nodes":
        """The nodes in order; nodes may be added, moved and erased during iteration."""
        return Nodes(self._ring)

    def find_nodes(self, *, op: str, target: Any = None) -> list[Node]:
        """Return the nodes of one kind in order, optionally of one target only."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    @property
    def owning_module(self) -> "GraphModule | None":
        """The graph module that this graph was last assigned to, while it exists."""
        return self._owner() if self._owner is not None else None

    @owning_module.setter
    def owning_module(self, module: "GraphModule | None") -> None:
        self._owner = ref(module) if module is not None else None

    def output_node(self) -> Node:
        """Return the output; raise a RuntimeError if there is none yet."""
        last = self._ring.prev
        if last is self._ring or last.op != "output":
            raise RuntimeError("graph: no output yet; end it with graph.output(...)")
        return last

    @property
    def guards(self) -> list[Node]:
        """The calls that check values read by the traced code: see `retrograd.fx.operators.guard`."""
        return self.find_nodes(op="call_function", target=GUARD)

    def __str__(self) -> str:
        lines = [f"    {node.format_node()}" for node in self.nodes]
        return "\n".join(["graph():", *lines])

    def tabular(self) -> str:
        """Return the nodes as a table: kind, name, target, args and kwargs."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        for n in self.nodes:
            rows.append((n.op, n.name, target_text(n.target), format_value(n.args), format_value(n.kwargs)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        print(self.tabular())

    def python_code(self) -> codegen.Code:
        """Return the graph as the source of a Python function, with its globals."""
        return codegen.generate(self)

    def lint(self) -> None:
        """Check order, users, names and operators; a RuntimeError lists all faults."""
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
        """Insert a new node at the current position, under `name` or a free variant of it."""
        node = Node(self, self._unique(name or target_name(target)), op, target, args, kwargs)
        node._link(self._before.prev, self._before)
        return node

    def placeholder(self, name: str, *, default_value: Any = Parameter.empty) -> Node:
        """Insert an input, optional if it has a default; `*name` and `**name` take all remaining arguments."""
        return self.create_node("placeholder", name, () if default_value is Parameter.empty else (default_value,))

    def get_attr(self, target: str) -> Node:
        """Insert a read of a parameter, buffer or constant of the module, by qualified name."""
        return self.create_node("get_attr", target)

    def call_function(self, target: Op | Callable, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Node:
        """Insert a call of a registered operator, or of any function."""
        if not callable(target):
            raise TypeError(f"call_function: the target must be an operator or a function, got {target!r}")
        return self.create_node("call_function", target, args, kwargs)

    def call_method(self, target: str, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Node:
        """Insert a call of a method of the first argument."""
        return self._call_named("call_method", target, args, kwargs)

    def call_module(self, target: str, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Node:
        """Insert a call of the submodule of that qualified name."""
        return self._call_named("call_module", target, args, kwargs)

    def _call_named(self, op: str, target: str, args: tuple, kwargs: dict[str, Any] | None) -> Node:
        if not isinstance(target, str):
            raise TypeError(f"{op}: the target must be a name, got {target!r}")
        return self.create_node(op, target, args, kwargs)

    def output(self, result: Any) -> Node:
        """Insert the output: a node, or a tuple, list or dict of nodes and constants."""
        return self.create_node("output", "output", (result,))

    def erase_node(self, node: Node) -> None:
        """Remove a node; raise a RuntimeError if another still uses it."""
        if node.graph is not self:
            raise ValueError(f"erase_node: {node.name} is no node of this graph")
        if node.erased:
            raise ValueError(f"erase_node: {node.name} was erased before")
        if node.users:
            users = ", ".join(user.name for user in node.users)
            raise RuntimeError(f"erase_node: {node.name} is still used by {users}")
        node.args, node.kwargs = (), {}
        if self._before is node:
            self._before = node.next
        node._unlink()
        node.erased = True

    def inserting_before(self, node: Node | None = None) -> Any:
        """Insert new nodes before `node` inside the block; None is the beginning."""
        return self._inserting(self._ring.next if node is None else self._checked(node))

    def inserting_after(self, node: Node | None = None) -> Any:
        """Insert new nodes after `node` inside the block, in the order of creation; None is the end."""
        return self._inserting(self._ring if node is None else self._checked(node).next)

    def _checked(self, node: Node) -> Node:
        if node.graph is not self or node.erased:
            raise ValueError(f"inserting: {node.name} is no node of this graph")
        return node

    @generator_block
    def _inserting(self, before: Node) -> Iterator[None]:
        old, self._before = self._before, before
        try:
            yield
        finally:
            while old.erased:
                old = old.next
            self._before = old

    def node_copy(self, node: Node, map_node: Callable[[Node], Any] = lambda node: node) -> Node:
        """Insert a copy of a node of this or another graph, with its inputs replaced by `map_node`."""
        args, kwargs = map_nodes((node.args, node.kwargs), map_node)
        copy = self.create_node(node.op, node.target, args, kwargs, node.name)
        copy.meta = dict(node.meta)
        return copy

    def graph_copy(self, other: "Graph", values: dict[Node, Any]) -> Any:
        """Copy another graph's nodes, except those in `values`, which replaces them; return its output.

        `values` then maps every node of the other graph except the output.
        """
        for node in other.nodes:
            if node.op == "output":
                return map_nodes(node.args[0], values.__getitem__)
            if node not in values:
                values[node] = self.node_copy(node, values.__getitem__)
        return None

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase unused nodes, except inputs and impure calls; return whether there were any.

        `is_impure_node(node)` replaces `Node.is_impure`; inputs and the output are never erased.
        """
        dead = False
        impure = is_impure_node or Node.is_impure
        for node in reversed(self.nodes):
            if not node.users and node.op not in ("placeholder", "output") and not impure(node):
                self.erase_node(node)
                dead = True
        return dead

    def _unique(self, candidate: str) -> str:
        name = base = _snake_case(candidate)
        if name in self._names:
            base = re.sub(r"_\d+$", "", name)
        number = self._numbers.get(base, 0)
        while name in self._names or name in TAKEN:
            number += 1
            name = f"{base}_{number}"
            self._numbers[base] = number
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
            yield node  # may be moved or erased by the caller: an erased node keeps its `next`
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


def _snake_case(text: str) -> str:
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).lower()
    return f"_{name}" if not name or name[0].isdigit() else name


class _Reference:
    """A reference to a node by its index in a graph's rows."""

    def __init__(self, number: int) -> None:
        self.number = number


def _rows(graph: Graph) -> list[tuple]:
    """Return the nodes as plain rows, so that pickling does not recurse along the graph."""
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
