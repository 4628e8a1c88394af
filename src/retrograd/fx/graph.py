"""Programs as data: an ordered list of nodes that call operators, functions, methods and modules."""

import copy
import typing
from collections.abc import Callable, Iterator
from inspect import Parameter
from typing import TYPE_CHECKING, Any
from weakref import ref

from retrograd.core import Op
from retrograd.core.blocks import generator_block
from retrograd.foundation.source_location import warn_user
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.fx.codegen import CodeGen, PythonCode, Transform
from retrograd.fx.lint import check, find_attribute
from retrograd.fx.namespace import Namespace, snake_case
from retrograd.fx.node import Node, NodeError, format_value, map_arg, map_leaves, map_nodes, target_name, target_text
from retrograd.fx.operators import GUARD
from retrograd.fx.pytree_codegen import PyTreeCodeGen, PyTreeInfo
from retrograd.fx.signature import Signature

if TYPE_CHECKING:
    from retrograd.fx.graph_module import GraphModule

__all__ = ["CodeGen", "Graph", "PythonCode"]

_PyTreeCodeGen, _PyTreeInfo = PyTreeCodeGen, PyTreeInfo  # the names by which PyTorch's programs import them


class Graph:
    """A program as an ordered list of nodes: inputs, attributes, calls, and one output.

    Every function from graphs to graphs returns one that passes `lint()`.  `signature`, if there is one, maps the
    arguments and results of the traced function to the placeholders and the output.  `tracer_cls` and `tracer_extras`
    are kept for the tracer that made the graph; `owning_module` is the module whose graph this becomes.

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

    def __init__(
        self,
        owning_module: "GraphModule | None" = None,
        tracer_cls: type | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self.signature: Signature | None = None
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._root = Node(self, "", "output", "root")  # sentinel before the first and after the last node
        self._positions: dict[Node, int] | None = None  # of the nodes, while none is added, moved or erased
        self._insertion_point = self._root  # the node before which the next one is inserted
        self._namespace = Namespace()
        self._owner: ref[GraphModule] | None = None
        self.owning_module = owning_module

    # ------------------------------------------------------------------------------------------------ queries

    @property
    def nodes(self) -> "Nodes":
        """The nodes in order; nodes may be added, moved and erased during iteration."""
        return Nodes(self._root)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """Return the nodes of one kind, optionally of one target only; in order, whether `sort` or not."""
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
        last = self._root.prev
        if last is self._root or last.op != "output":
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

    def python_code(self, root_module: str = "self") -> PythonCode:
        """Return the graph as the source of a Python function, with its globals.

        `root_module` is the name of the function's first parameter, of which attributes are read.
        """
        return self._codegen.python_code(self.nodes, root_module)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Generate the code with another `CodeGen`, from the next `GraphModule.recompile()` on."""
        self._codegen = codegen

    @suggest_keywords
    def on_generate_code(self, make_transformer: Callable[[Transform | None], Transform]) -> Any:
        """Transform the lines of the function's body whenever code is generated.

        `make_transformer` is called with the present transformation, or None; it returns a function from a list of
        lines, each with its line break and without indentation, to another.  As a context manager, the result restores
        the former transformation at the end of the block.

        >>> from retrograd import fx
        >>> module = fx.symbolic_trace(lambda x: x + 1)
        >>> with module.graph.on_generate_code(lambda current: lambda body: ["print(x)\\n", *body]):
        ...     code = module.recompile()
        >>> module(3)
        3
        4
        """
        previous = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(previous)
        return self._restore_transform(previous)

    @generator_block
    def _restore_transform(self, previous: Transform | None) -> Iterator[None]:
        try:
            yield
        finally:
            self._codegen._body_transformer = previous

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of the placeholders for arguments of the generated function."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Return the result of the generated function for the value of the output node."""
        return self._codegen.process_outputs(out)

    def lint(self) -> None:
        """Check order, users, names and operators; a RuntimeError lists all faults."""
        check(self)

    # ---------------------------------------------------------------------------------------------- building

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Insert a new node at the current position, under `name` or a free variant of it.

        `type_expr` is the annotation of its result.
        """
        name = self._namespace.create_name(snake_case(target_name(target)) if name is None else name)
        node = Node(self, name, op, target, () if args is None else args, kwargs, type_expr)
        node._notify("_create_node_hooks", node)
        node._link(self._insertion_point.prev, self._insertion_point)
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = Parameter.empty) -> Node:
        """Insert an input, optional if it has a default; `*name` and `**name` take all remaining arguments."""
        args = () if default_value is Parameter.empty else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Insert a read of a parameter, buffer or constant of the module, by qualified name.

        Warns if the graph's module has nothing of that name.
        """
        if self.owning_module is not None and find_attribute(self.owning_module, qualified_name) is None:
            warn_user(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule: it has no "
                f"{qualified_name!r}. Add it before the graph runs, as by GraphModule.add_submodule."
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self,
        the_function: Op | Callable,
        args: tuple | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Insert a call of a registered operator, or of any function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Insert a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Insert a call of the submodule of that qualified name.

        Warns if the graph's module has no such submodule.
        """
        if self.owning_module is not None and find_attribute(self.owning_module, module_name) is None:
            warn_user(
                "Attempted to insert a call_module Node with no underlying reference in the owning GraphModule: it has "
                f"no {module_name!r}. Call GraphModule.add_submodule before."
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Insert the output: a node, or a tuple, list or dict of nodes and constants."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node; raise a RuntimeError if another still uses it, or it is of another graph.

        Warns if it was removed before.
        """
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase.name} from wrong graph!")
        if to_erase.users:
            users = ", ".join(user.name for user in to_erase.users)
            raise RuntimeError(
                f"Tried to erase Node {to_erase.name} but it still had {len(to_erase.users)} users in the graph: "
                f"{users}"
            )
        if to_erase._erased:
            warn_user(f"erase_node({to_erase.name}) on an already erased node")
            return
        to_erase._notify("_erase_node_hooks", to_erase)
        to_erase.args, to_erase.kwargs = (), {}
        if self._insertion_point is to_erase:
            self._insertion_point = to_erase.next
        to_erase._unlink()
        to_erase._erased = True

    def inserting_before(self, n: Node | None = None) -> Any:
        """Insert new nodes before `n` inside the block; None is the beginning."""
        return self._insert_before(self._root.next if n is None else self._check_owned(n))

    def inserting_after(self, n: Node | None = None) -> Any:
        """Insert new nodes after `n` inside the block, in the order of creation; None is the end."""
        return self._insert_before(self._root if n is None else self._check_owned(n).next)

    def _check_owned(self, node: Node) -> Node:
        if node.graph is not self or node._erased:
            raise NodeError(
                f"inserting: {node.name} is no node of this graph: Node to insert before or after is not in graph."
            )
        return node

    @generator_block
    def _insert_before(self, before: Node) -> Iterator[None]:
        old, self._insertion_point = self._insertion_point, before
        try:
            yield
        finally:
            # The node may have been erased in the block; an erased node keeps its successor.
            while old._erased:
                old = old.next
            self._insertion_point = old

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Insert a copy of a node of this or another graph, with its inputs replaced by `arg_transform`."""
        args, kwargs = map_nodes((node.args, node.kwargs), arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = dict(node.meta)
        return copied

    def graph_copy(self, g: "Graph", val_map: dict[Node, Any], return_output_node: bool = False) -> Any:
        """Copy another graph's nodes, except those in `val_map`, which replaces them; return its output.

        `val_map` then maps every node of the other graph except the output.  With `return_output_node` the result is a
        pair of the output's value and `g`'s output node.
        """
        for node in g.nodes:
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            if node not in val_map:
                val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase unused nodes, except inputs and impure calls; return whether there were any.

        `is_impure_node(node)` replaces `Node.is_impure`; inputs and the output are never erased.
        """
        changed = False
        impure = is_impure_node or Node.is_impure
        for node in reversed(self.nodes):
            if not node.users and node.op not in ("placeholder", "output") and not impure(node):
                self.erase_node(node)
                changed = True
        return changed

    def __deepcopy__(self, memo: dict[int, Any]) -> "Graph":
        copied = memo[id(self)] = type(self)(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        nodes: dict[Node, Any] = {}
        for node in self.nodes:
            nodes[node] = memo[id(node)] = copied.node_copy(node, nodes.__getitem__)
        copied.signature = copy.deepcopy(self.signature, memo)
        copied._codegen = copy.deepcopy(self._codegen, memo)
        return copied

    def __reduce__(self) -> tuple:
        # A class that is defined in a function cannot be pickled by name.
        shared = None if self._tracer_cls is None or is_local(self._tracer_cls) else self._tracer_cls
        state = {"signature": self.signature, "_codegen": self._codegen, "_tracer_extras": self._tracer_extras}
        return _from_rows, (_to_rows(self), {**state, "_tracer_cls": shared})


class Nodes:
    """The nodes of a graph in order: iterable from both ends, with a length."""

    def __init__(self, root: Node) -> None:
        self._root = root

    def __iter__(self) -> Iterator[Node]:
        node = self._root.next
        while node is not self._root:
            yield node  # may be moved or erased by the caller: an erased node keeps its `next`
            node = node.next

    def __reversed__(self) -> Iterator[Node]:
        node = self._root.prev
        while node is not self._root:
            yield node
            node = node.prev

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(list(self))


class _Reference:
    """A reference to a node by its index in a graph's rows."""

    def __init__(self, number: int) -> None:
        self.number = number


def _to_rows(graph: Graph) -> list[tuple]:
    """Return the nodes as plain rows, so that pickling does not recurse along the graph."""
    references = {node: _Reference(number) for number, node in enumerate(graph.nodes)}
    return [
        (
            n.op,
            n.target,
            *map_nodes((n.args, n.kwargs), references.__getitem__),
            n.name,
            _picklable_annotation(n.type),
            n.meta,
        )
        for n in graph.nodes
    ]


def _picklable_annotation(annotation: Any) -> Any:
    """Return an annotation if it can be stored, else None."""
    return None if any(map(is_local, (annotation, *typing.get_args(annotation)))) else annotation


def is_local(definition: Any) -> bool:
    """Return whether a class or function is defined within a function, so that it has no name to store."""
    return "<locals>" in getattr(definition, "__qualname__", "")


def _from_rows(rows: list[tuple], state: dict[str, Any]) -> Graph:
    graph = Graph()
    nodes: list[Node] = []

    def resolve(leaf: Any) -> Any:
        return nodes[leaf.number] if isinstance(leaf, _Reference) else leaf

    for op, target, args, kwargs, name, annotation, meta in rows:
        args, kwargs = map_leaves((args, kwargs), resolve)
        nodes.append(graph.create_node(op, target, args, kwargs, name, annotation))
        nodes[-1].meta = meta
    vars(graph).update(state)
    return graph
