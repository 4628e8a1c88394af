"""One step of a graph, and the values that steps hold: nodes within tuples, lists, dicts and slices."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from retrograd.core import Op

if TYPE_CHECKING:
    from retrograd.fx.graph import Graph

KINDS = ("placeholder", "get_attr", "call_function", "output")
RESERVED = ("call_module", "call_method")  # fx's further kinds: a trace sees through modules and methods


class Node:
    """One step of a `Graph`: an input, an attribute of the module, a call of an operator, or the output.

    `op` is the kind of step (see `KINDS`) and `target` what it is about: a placeholder's name, an attribute's
    qualified name, the registered operator.  `args` and `kwargs` hold constants and further nodes.  `meta` is
    for notes: tracing leaves "val", the `Aval` of the result (a tuple of them for several), and
    "stack_trace", the line of the user's code as `file:line in function`.

    >>> from retrograd.core import registry
    >>> from retrograd.fx import Graph
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(registry["mul"], (x, 2.0))
    >>> y.all_input_nodes, list(x.users), y.format_node()
    ([x], [mul], '%mul : [num_users=0] = call_function[target=mul](args = (%x, 2.0), kwargs = {})')
    """

    def __init__(
        self,
        graph: "Graph",
        name: str,
        op: str,
        target: Any,
        args: tuple = (),
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        if op in RESERVED:
            raise NotImplementedError(f"node {name!r}: {op} is not supported yet; call an operator instead")
        if op not in KINDS:
            raise ValueError(f"node {name!r}: op must be one of {', '.join(KINDS)}, got {op!r}")
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._args: tuple = ()
        self._kwargs: dict[str, Any] = {}
        self._inputs: dict[Node, None] = {}
        self._previous = self._next = self  # the graph's places are a ring
        self._set(args, kwargs or {})

    # ------------------------------------------------------------------------------------------- its inputs

    @property
    def args(self) -> tuple:
        """The positional arguments; assign a whole new tuple to change them."""
        return self._args

    @args.setter
    def args(self, value: tuple) -> None:
        self._set(value, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments by name; assign a whole new dict to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value: dict[str, Any]) -> None:
        self._set(self._args, value)

    def _set(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Take new arguments, as copies, and keep the users of old and new inputs up to date."""
        args, kwargs = map_nodes((tuple(args), dict(kwargs)), lambda node: node)
        for node in self._inputs:
            node.users.pop(self, None)
        self._args, self._kwargs = args, kwargs
        self._inputs = dict.fromkeys(nodes_in((args, kwargs)))
        for node in self._inputs:
            node.users[self] = None

    @property
    def all_input_nodes(self) -> list["Node"]:
        """The nodes among the arguments, each once."""
        return list(self._inputs)

    def replace_input_with(self, old: "Node", new: "Node") -> None:
        """Use `new` wherever `old` stands among the arguments."""
        args, kwargs = map_nodes((self._args, self._kwargs), lambda node: new if node is old else node)
        self._set(args, kwargs)

    def replace_all_uses_with(self, new: "Node") -> list["Node"]:
        """Let all users of this node use `new` instead, except `new` itself; returns the users changed."""
        changed = [user for user in self.users if user is not new]
        for user in changed:
            user.replace_input_with(self, new)
        return changed

    # -------------------------------------------------------------------------------------------- its place

    @property
    def next(self) -> "Node":
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> "Node":
        """The node before this one."""
        return self._previous

    def prepend(self, node: "Node") -> None:
        """Move `node` to the place before this one; a ValueError if it is of another graph."""
        if node.graph is not self.graph:
            raise ValueError(f"{self.name}: {node.name} is of another graph; copy it with graph.node_copy")
        if node is not self:
            node._unlink()
            node._link(self._previous, self)

    def append(self, node: "Node") -> None:
        """Move `node` to the place after this one; a ValueError if it is of another graph."""
        if node is not self:
            self._next.prepend(node)

    def _link(self, before: "Node", after: "Node") -> None:
        self._previous, self._next = before, after
        before._next = after._previous = self

    def _unlink(self) -> None:
        self._previous._next, self._next._previous = self._next, self._previous

    # ------------------------------------------------------------------------------------------- what it is

    def is_impure(self) -> bool:
        """Whether the step does more than compute its result, so that it must stay even without users."""
        if self.op == "call_function":
            return self.target.definition.impure or self.target.definition.random
        return self.op in ("placeholder", "output")

    def __repr__(self) -> str:
        return self.name

    def format_node(self) -> str:
        """The node as one line of its graph's text."""
        if self.op == "output":
            return f"return {self._args[0]!r}"
        head = f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={target_name(self.target)}]"
        if self.op != "call_function":
            return head
        return f"{head}(args = {format_value(self._args)}, kwargs = {format_value(self._kwargs)})"


def target_name(target: Any) -> str:
    """A target as text: an operator by its name."""
    return target.name if isinstance(target, Op) else str(target)


def map_leaves(value: Any, function: Callable[[Any], Any]) -> Any:
    """`function(leaf)` in place of every leaf of nested tuples, lists, dicts and slices, which are copied.

    >>> map_leaves(([1], slice(2, 3)), str)
    (['1'], slice('2', '3', 'None'))
    """
    if isinstance(value, tuple):
        members = [map_leaves(v, function) for v in value]
        return type(value)(*members) if hasattr(value, "_fields") else tuple(members)
    if isinstance(value, list):
        return [map_leaves(v, function) for v in value]
    if isinstance(value, dict):
        return {k: map_leaves(v, function) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*[map_leaves(v, function) for v in (value.start, value.stop, value.step)])
    return function(value)


def map_nodes(value: Any, function: Callable[[Node], Any]) -> Any:
    """`function(node)` in place of every node in nested tuples, lists, dicts and slices, which are copied."""
    return map_leaves(value, lambda leaf: function(leaf) if isinstance(leaf, Node) else leaf)


def nodes_in(value: Any) -> Iterator[Node]:
    """Every node in nested tuples, lists, dicts and slices."""
    found: list[Node] = []
    map_nodes(value, found.append)
    return iter(found)


def format_value(value: Any) -> str:
    """A value as text, each node as `%name`."""
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, tuple):
        return f"({', '.join(map(format_value, value))}{',' * (len(value) == 1)})"
    if isinstance(value, list):
        return f"[{', '.join(map(format_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}: {format_value(v)}' for k, v in value.items())}}}"
    if isinstance(value, slice):
        return f"slice({', '.join(map(format_value, (value.start, value.stop, value.step)))})"
    return repr(value)
