"""Convert graph nodes to rows of JSON and back, with full validation of the file."""

import keyword
import re
from collections.abc import Iterable
from typing import Any

import retrograd.higher_order  # noqa: F401 (registers the operators of control flow)
from retrograd.autograd.function import Function
from retrograd.autograd.function.base import FunctionOp
from retrograd.core import Aval, Op, registry
from retrograd.core.schema import REQUIRED, Schema
from retrograd.export.function_names import function_name, read_function, write_function
from retrograd.export.signature_json import read_signature, write_signature
from retrograd.fx import Graph, Node, map_nodes
from retrograd.fx.immutable_collections import immutable_dict, immutable_list
from retrograd.fx.lint import SNAKE_CASE
from retrograd.fx.namespace import RESERVED
from retrograd.fx.node import map_leaves
from retrograd.fx.subgraph import SubGraph
from retrograd.interop.json_values import (
    ENCODINGS,
    LISTS,
    Codec,
    Encoding,
    StorageError,
    add_encoding,
    error_context,
    expect,
    fields,
    members,
    text,
)
from retrograd.interop.stored_names import read_schema

KINDS = ("placeholder", "get_attr", "call_function", "output")
MAX_NODES = 5_000_000
MAX_NESTING = 20  # of sub-graphs
_PLACEHOLDER = re.compile(r"\*{0,2}[^\W\d]\w*")


# ------------------------------------------------------------------------------------------------- writing


def write_graph(graph: Graph, nesting: int = 0) -> dict[str, Any]:
    """Return a graph as JSON; a StorageError names a node that cannot be stored."""
    codec = Codec(nesting=nesting)
    operators = _write_operators([node.target for node in graph.nodes if isinstance(node.target, Op)])
    signature = None
    if graph.signature is not None:
        with error_context("the signature"):
            signature = write_signature(graph.signature, codec)
    rows = [_write_node(node, codec) for node in graph.nodes]
    return {"operators": dict(sorted(operators.items())), "signature": signature, "nodes": rows}


def _write_operators(called: list[Op]) -> dict[str, Any]:
    """Return the schemas of operators by name, and users' Functions by name."""
    functions: dict[str, FunctionOp] = {}
    for op in called:
        if isinstance(op, FunctionOp) and functions.setdefault(function_name(op), op) is not op:
            raise StorageError(f"it calls two Functions that are both called {function_name(op)}")
    written = {name: write_function(op) for name, op in functions.items()}
    return written | {op.name: str(op.schema) for op in called if not isinstance(op, FunctionOp)}


def _write_node(node: Node, codec: Codec) -> dict[str, Any]:
    with error_context(node.name):
        return {
            "name": node.name,
            "op": node.op,
            "target": _write_target(node),
            "args": [codec.write(a) for a in node.args],
            "kwargs": {k: codec.write(v) for k, v in node.kwargs.items()},
            "meta": _write_meta(node.meta, codec),
        }


def _write_target(node: Node) -> str:
    if node.op not in KINDS:
        raise StorageError(f"{node.op} can't be stored, only calls of operators; fx.trace makes such a graph")
    target: Any = node.target
    if node.op != "call_function":
        return str(target)
    if isinstance(target, FunctionOp):
        return function_name(target)
    name: str = target.name if isinstance(target, Op) else ""
    if registry.get(name) is not target:
        raise StorageError(f"it calls {target!r}, which is no registered operator")
    return name


def _write_meta(meta: dict[str, Any], codec: Codec) -> dict[str, Any]:
    """Return the metadata of a node that is plain data; other metadata is valid in this process only."""
    kept = {}
    for key, value in meta.items():
        try:
            kept[str(key)] = codec.write(map_leaves(value, _single_line))
        except StorageError:
            continue
    return kept


def _single_line(value: Any) -> Any:
    if type(value) is not str:
        return value
    return "".join(c if c.isprintable() else " " for c in value)[:10_000]


# ------------------------------------------------------------------------------------------------- reading


def read_graph(data: Any, functions: Iterable[type[Function]] = (), nesting: int = 0) -> Graph:
    """Return the graph encoded by JSON, linted; a StorageError names the invalid position.

    `functions` are users' Functions that it may call, in addition to those of imported modules.
    """
    operators, signature, rows = fields(data, "a graph", operators=dict, signature=(dict, type(None)), nodes=list)
    expect(len(rows) <= MAX_NODES, f"at most {MAX_NODES} nodes", len(rows))
    reader = _Reader(operators, Codec(nesting=nesting, functions=functions))
    for number, row in enumerate(rows):
        with error_context(f"node {number}"):
            reader.read(row)
    with error_context("the signature"):
        reader.graph.signature = None if signature is None else read_signature(signature, reader.codec)
    _check_inputs_and_output(reader.graph)
    try:
        reader.graph.lint()
    except Exception as error:  # arguments may be anything that JSON allows
        raise StorageError(str(error)) from None
    return reader.graph


class _Reader:
    """Creates the nodes of one graph in order."""

    def __init__(self, operators: dict[str, Any], codec: Codec) -> None:
        self.graph = Graph()
        self.codec = codec
        codec.node_named = self._node_named
        stored = {name: data for name, data in operators.items() if type(data) is dict}
        self._functions = {name: read_function(data, codec.functions) for name, data in stored.items()}
        self._schemas = {name: read_schema(name, data) for name, data in operators.items() if name not in stored}
        self._nodes: dict[str, Node] = {}

    def _node_named(self, name: str) -> Node:
        if name not in self._nodes:
            raise StorageError(f"there is no node {name!r} before this one")
        return self._nodes[name]

    def read(self, row: Any) -> None:
        """Add a node."""
        name, op, target, args, kwargs, meta = fields(
            row, "a node", name=str, op=str, target=str, args=list, kwargs=dict, meta=dict
        )
        self._check_name(name)
        with error_context(name):
            expect(op in KINDS, f"one of {', '.join(KINDS)}", op)
            for key in kwargs:
                expect(key.isidentifier() and not keyword.iskeyword(key), "the name of an argument", key)
            given = tuple([self.codec.read(a) for a in args]), {k: self.codec.read(v) for k, v in kwargs.items()}
            called, args_now, kwargs_now = getattr(self, f"_read_{op}")(target, *given)
            node = self.graph.create_node(op, called, args_now, kwargs_now, name)
            node.meta = self._read_meta(meta)
            expect(node.name == name, "a name that is free", name)
        self._nodes[name] = node

    def _check_name(self, name: str) -> None:
        expect(len(name) <= 1000 and SNAKE_CASE.fullmatch(name) and name not in RESERVED, "a name in snake_case", name)
        if name in self._nodes:
            raise StorageError(f"two nodes are called {name!r}")

    def _read_placeholder(self, target: str, args: tuple, kwargs: dict) -> tuple:
        expect(len(target) <= 1000 and _PLACEHOLDER.fullmatch(target), "the name of an input", target)
        expect(len(args) <= 1 and not kwargs, "at most a default", args)
        found: list[Node] = []
        map_nodes(args, found.append)
        expect(not found, "a default without nodes", args)
        return target, args, kwargs

    def _read_get_attr(self, target: str, args: tuple, kwargs: dict) -> tuple:
        expect(not args and not kwargs, "no arguments", args)
        return target, args, kwargs

    def _read_output(self, target: str, args: tuple, kwargs: dict) -> tuple:
        expect(target == "output" and len(args) == 1 and not kwargs, "one output", args)
        return target, args, kwargs

    def _read_call_function(self, target: str, args: tuple, kwargs: dict) -> tuple:
        if target in self._functions:
            return self._functions[target], args, kwargs
        expect(target in self._schemas, "an operator that the file gives the schema of", target)
        return registry[target], *_upgrade_call(self._schemas[target], registry[target].schema, args, kwargs)

    def _read_meta(self, data: dict[str, Any]) -> dict[str, Any]:
        meta = {text(key, "a name of a note"): self.codec.read(value) for key, value in data.items()}
        map_leaves(list(meta.values()), _check_meta_value)
        expect("val" not in meta or _is_aval(meta["val"]), "shapes and dtypes", data)
        expect(type(meta.get("stack_trace", "")) is str, "a line of code", data)
        return meta


def _check_meta_value(value: Any) -> None:
    expect(type(value) is not Node, "no node in a note", value)
    if type(value) is str:
        text(value, "a note")


def _is_aval(value: Any) -> bool:
    return all(map(_is_aval, value)) if type(value) is tuple else value is None or type(value) is Aval


def _upgrade_call(old: Schema, new: Schema, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Translate a call by an operator's old schema to its present schema, with the old defaults."""
    if old is new:
        return args, kwargs
    try:
        given = old.given(args, kwargs)
    except TypeError as error:
        raise StorageError(str(error)) from None
    defaults = {p.name: p.default for p in old.parameters if p.default is not REQUIRED}
    for parameter in new.parameters:
        name = parameter.name
        if name not in given and name in defaults and repr(defaults[name]) != repr(parameter.default):
            given[name] = defaults[name]
    return (), given


def _check_inputs_and_output(graph: Graph) -> None:
    """Check that the graph's inputs and outputs agree with its signature."""
    nodes = list(graph.nodes)
    expect(nodes and nodes[-1].op == "output", "an output as the last node", nodes[-1:])
    signature = graph.signature
    if signature is None:
        return
    inputs = [node.meta.get("val") for node in graph.find_nodes(op="placeholder")]
    expect(len(inputs) == len(signature.inputs), "a placeholder for each input of the signature", len(inputs))
    for expected, val in zip(signature.inputs, inputs, strict=True):
        expect(val is None or val == expected.aval, f"{expected.aval} for the input {expected.name}", val)
    returned, count = nodes[-1].args[0], len(signature.mutations) + signature._result.num_leaves
    fits = signature.single or (isinstance(returned, tuple) and len(returned) == count)
    expect(fits, f"{count} results, as the signature says", returned)


# --------------------------------------------------------------------------------------------- sub-graphs


def _write_subgraph(codec: Codec, value: SubGraph, depth: int) -> list:
    return [value.name, write_graph(value.graph, _next_nesting(codec))]


def _read_subgraph(codec: Codec, data: Any, depth: int) -> SubGraph:
    name, stored = members(data, 2, "the name and the graph of a function")
    expect(type(name) is str and SNAKE_CASE.fullmatch(name) and len(name) <= 100, "the name of a function", name)
    with error_context(name):
        graph = read_graph(stored, codec.functions, _next_nesting(codec))
        expect(graph.signature is None and not graph.find_nodes(op="get_attr"), "inputs only", name)
        expect(type(graph.output_node().args[0]) is tuple, "a tuple of results", name)
    return SubGraph(name, graph)


def _next_nesting(codec: Codec) -> int:
    """Return the nesting of a sub-graph in a codec's graph."""
    expect(codec.nesting < MAX_NESTING, f"functions nested at most {MAX_NESTING} deep", codec.nesting)
    return codec.nesting + 1


def _read_node(codec: Codec, data: Any, depth: int) -> Node:
    expect(type(data) is str and codec.node_named is not None, "no reference to a node", data)
    assert codec.node_named is not None
    node: Node = codec.node_named(data)
    return node


LISTS.add(immutable_list)
ENCODINGS[immutable_dict] = ENCODINGS[dict]
add_encoding(Node, Encoding("node", lambda codec, value, depth: value.name, _read_node))
add_encoding(SubGraph, Encoding("function", _write_subgraph, _read_subgraph))
