"""Find subgraphs that match a pattern, and replace them."""

import copy
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from retrograd.core import Op, Tensor
from retrograd.core.schema import REQUIRED
from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.node import CALLS, Node, map_nodes
from retrograd.fx.symbolic_tracer import symbolic_trace
from retrograd.fx.traced_writes import read_copies, targets_in
from retrograd.nn.module import Module

Program = Callable | Graph | GraphModule


# Tensor methods that have another name than the function of the module `operator`.
CALLED = {
    "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor", "invert": "bitwise_not",
}  # fmt: skip


class Match(NamedTuple):
    """An occurrence of a pattern: its last node in the graph, and the pattern's nodes with their counterparts."""

    anchor: Node
    nodes_map: dict[Node, Any]


def replace_pattern(gm: GraphModule, pattern: Program, replacement: Program) -> list[Match]:
    """Replace the subgraphs of `gm` that match `pattern` by `replacement`; return the matches.

    Both are functions of the same number of arguments, which are traced with `symbolic_trace`, or graph modules.  An
    argument matches any value, the same at each use.  Everything else must be equal: calls, where `x + y`, `x.add(y)`
    and `rg.add(x, y)` are equal; constants; parameters and other tensors by their values; submodules, which must be
    identical or have the same name.  A subgraph is no match if an inner value has other users, or if one call
    matches two of the pattern.  If matches overlap, the first one in the graph is replaced.

    The module is recompiled, and gets the attributes that the replacement reads.  Raises ValueError for different
    numbers of arguments or results, and for a pattern without calls.

    >>> from retrograd import fx
    >>> module = fx.symbolic_trace(lambda x, y: (x.exp() * y).log())
    >>> matches = fx.replace_pattern(module, lambda a, b: (a.exp() * b).log(), lambda a, b: a + b.log())
    >>> len(matches), [node.name for node in module.graph.nodes]
    (1, ['x', 'y', 'log_1', 'add', 'output'])
    """
    return [match for match, _ in rewritten(gm, pattern, replacement)]


def rewritten(
    gm: GraphModule,
    pattern: Program,
    replacement: Program | None,
    accepts: Callable[[Match, Graph], bool] = lambda match, pattern: True,
    chosen: Callable[[Match, Graph], Program] | None = None,
    ignore_literals: bool = False,
) -> list[tuple[Match, list[Node]]]:
    """Replace the accepted matches, each by `chosen`'s result if given; return them with new nodes."""
    if not isinstance(gm, GraphModule):
        raise TypeError(f"replace_pattern: expected a graph module, got {type(gm).__name__}; see fx.symbolic_trace")
    wanted = _module(pattern, gm)
    if not all(isinstance(node, Node) and node.op in CALLS for node in results_of(wanted.graph)):
        raise ValueError("replace_pattern: every result of the pattern must be that of a call")
    known: dict[int, tuple[Program, GraphModule]] = {}

    def made(program: Program) -> GraphModule:
        if id(program) not in known:
            known[id(program)] = program, _module(program, gm)
            _check(wanted.graph, known[id(program)][1].graph)
        return known[id(program)][1]

    if replacement is not None:
        made(replacement)  # raises if it is invalid
    matches = [m for m in Matcher(gm.graph, wanted.graph, ignore_literals).matches() if accepts(m, wanted.graph)]
    programs = [chosen(match, wanted.graph) if chosen is not None else replacement for match in matches]
    pairs = [(match, made(program)) for match, program in zip(matches, programs, strict=True) if program is not None]
    rewriter = _Rewriter(gm, wanted)
    done = [(match, rewriter.replace(match, given)) for match, given in pairs]
    read_copies(gm.graph, targets_in(gm.graph))
    gm.graph.lint()
    gm.recompile()
    return done


def _module(program: Program, gm: GraphModule) -> GraphModule:
    if isinstance(program, Graph):
        return GraphModule(gm, copy.deepcopy(program))
    return program if isinstance(program, GraphModule) else symbolic_trace(program)


def _check(pattern: Graph, replacement: Graph) -> None:
    counts = [len(graph.find_nodes(op="placeholder")) for graph in (pattern, replacement)]
    if counts[0] != counts[1]:
        raise ValueError(f"replace_pattern: the pattern has {counts[0]} arguments, the replacement {counts[1]}")
    results = [len(results_of(graph)) for graph in (pattern, replacement)]
    if results[0] != results[1]:
        raise ValueError(f"replace_pattern: the pattern has {results[0]} results, the replacement {results[1]}")


def results_of(graph: Graph) -> tuple:
    """Return the results of a graph as a tuple."""
    result = graph.output_node().args[0]
    return tuple(result) if isinstance(result, tuple | list) else (result,)


# ------------------------------------------------------------------------------------------------------- finding


class Matcher:
    """Searches for a pattern in a graph, from the pattern's last result backwards."""

    def __init__(self, graph: Graph, pattern: Graph, ignore_literals: bool = False) -> None:
        self.graph, self.pattern, self.ignore_literals = graph, pattern, ignore_literals
        self.anchors = results_of(pattern)
        self.place = {node: index for index, node in enumerate(graph.nodes)}

    def is_equal(self) -> bool:
        """Return whether the whole graph equals the pattern, argument by argument."""
        bound: dict[Node, Any] = {}
        if not self._agree(self.pattern.output_node().args, self.graph.output_node().args, bound):
            return False
        inputs = [graph.find_nodes(op="placeholder") for graph in (self.pattern, self.graph)]
        return len(inputs[0]) == len(inputs[1]) and all(bound.get(a, b) is b for a, b in zip(*inputs, strict=True))

    def overlapping_matches(self) -> list[Match]:
        """Return all matches, which may share calls."""
        found = [self._match_at(node) for node in self.graph.nodes]
        return [match for match in found if match is not None]

    def matches(self) -> list[Match]:
        """Return all matches, none of which shares a call with another."""
        found: list[Match] = []
        taken: set[Node] = set()
        for node in self.graph.nodes:
            match = self._match_at(node) if node not in taken else None
            if match is not None and not taken.intersection(_inside(match)):
                taken.update(_inside(match))
                found.append(match)
        return found

    def _match_at(self, node: Node) -> Match | None:
        """Match the pattern with its first result at a node; then its further results."""
        for bound in self._bindings({}, [(self.anchors[0], node)], list(self.anchors[1:])):
            match = Match(node, bound)
            if self._is_closed(match) and self._has_position(match):
                return match
        return None

    def _bindings(self, bound: dict[Node, Any], pairs: list[tuple], rest: list[Node]) -> Iterator[dict[Node, Any]]:
        """Yield the ways to bind the pattern's nodes such that all pairs and remaining results agree."""
        bound = dict(bound)
        if not all(self._agree(wanted, there, bound) for wanted, there in pairs):
            return
        if not rest:
            yield bound
        elif rest[0] in bound:
            yield from self._bindings(bound, [], rest[1:])
        else:
            for node in self.graph.nodes:
                if node not in bound.values():
                    yield from self._bindings(bound, [(rest[0], node)], rest[1:])

    def _agree(self, first: Any, second: Any, bound: dict[Node, Any]) -> bool:
        """Return whether a part of the pattern and of the graph agree, and record the bindings."""
        pairs = [(first, second)]
        while pairs:
            wanted, there = pairs.pop()
            if not isinstance(wanted, Node):
                inside = [] if self._are_literals(wanted, there) else _members(wanted, there)
                if inside is None:
                    return False
                pairs += inside
            elif wanted in bound:
                if bound[wanted] is not there and (isinstance(there, Node) or not _same(bound[wanted], there)):
                    return False
            else:
                further = self._bind(wanted, there)
                if further is None:
                    return False
                bound[wanted] = there
                pairs += further
        return True

    def _are_literals(self, wanted: Any, there: Any) -> bool:
        """Return whether both are numbers or strings, and literals are ignored."""
        return self.ignore_literals and all(isinstance(value, int | float | complex | str) for value in (wanted, there))

    def _bind(self, wanted: Node, there: Any) -> list[tuple] | None:
        """Return the pairs of arguments that must agree if two nodes are to; None if they can't."""
        if wanted.op == "placeholder":
            return []
        if not isinstance(there, Node):
            return None
        if wanted.op == "get_attr":
            return [] if there.op == "get_attr" and self._same_attribute(wanted, there) else None
        if there.op not in CALLS:
            return None
        (called, arguments), (target, others) = _call(wanted), _call(there)
        if called != target and not self._same_module(wanted, there):
            return None
        return [(arguments, others)]

    def _same_module(self, wanted: Node, there: Node) -> bool:
        if wanted.op != "call_module" or there.op != "call_module":
            return False
        owners = self.pattern.owning_module, self.graph.owning_module
        return None not in owners and _attribute(owners[0], wanted) is _attribute(owners[1], there)

    def _same_attribute(self, wanted: Node, there: Node) -> bool:
        """Return whether two reads give equal values; of graphs without modules, whether the names are equal."""
        owners = self.pattern.owning_module, self.graph.owning_module
        if None in owners:
            return wanted.target == there.target
        return _same(_attribute(owners[0], wanted), _attribute(owners[1], there))

    def _is_closed(self, match: Match) -> bool:
        """Return whether nothing else uses the nodes that the replacement removes."""
        results = [match.nodes_map[node] for node in self.anchors]
        inside = set(_inside(match))
        kept = [node for node in inside if node not in results]
        return len(inside) == sum(n.op in CALLS for n in match.nodes_map) and all(
            user in inside for node in kept for user in node.users
        )

    def _has_position(self, match: Match) -> bool:
        """Return whether there is a position after all arguments and before all uses of results."""
        after = [self.place[v] for n, v in match.nodes_map.items() if n.op == "placeholder" and isinstance(v, Node)]
        inside = set(_inside(match))
        users = [user for node in self.anchors for user in match.nodes_map[node].users if user not in inside]
        return max(after, default=-1) < min((self.place[user] for user in users), default=len(self.place))


def _inside(match: Match) -> list[Node]:
    """Return the calls that a match replaces."""
    return [there for wanted, there in match.nodes_map.items() if wanted.op in CALLS]


def _members(wanted: Any, there: Any) -> list[tuple] | None:
    """Return pairs of members of two containers of one kind; none for equal constants; None if they differ."""
    if isinstance(wanted, slice) and isinstance(there, slice):
        return [(wanted.start, there.start), (wanted.stop, there.stop), (wanted.step, there.step)]
    if isinstance(wanted, dict) and isinstance(there, dict):
        return [(wanted[key], there[key]) for key in wanted] if wanted.keys() == there.keys() else None
    if isinstance(wanted, tuple | list) and isinstance(there, tuple | list):
        return list(zip(wanted, there, strict=True)) if len(wanted) == len(there) else None
    return [] if not isinstance(there, Node) and _same(wanted, there) else None


def _same(a: Any, b: Any) -> bool:
    """Return whether two constants are equal: tensors of equal values, or equal values of one type."""
    if a is b:
        return True
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.aval == b.aval and bool((a == b).all().item())
    return type(a) is type(b) and not isinstance(a, Module) and bool(a == b)


def _attribute(module: Any, node: Node) -> Any:
    path, _, name = node.target.rpartition(".")
    return getattr(module.get_submodule(path), name)


def _call(node: Node) -> tuple[Any, Any]:
    """Return a node's callee and arguments: by name for operators, in whatever form the call is written."""
    op = operator_of(node)
    if op is None:
        return (node.op, node.target), (node.args, node.kwargs)
    given = op.schema.given(node.args, node.kwargs)
    defaults = dict.fromkeys(given, REQUIRED) | {p.name: p.default for p in op.schema.parameters}
    return op, {name: v for name, v in given.items() if isinstance(v, Node) or not _same(v, defaults[name])}


def operator_of(node: Node) -> Op | None:
    """Return the registered operator of a call with tensor arguments, such as `x + y` or `x.add(y)`."""
    found: Any = None
    if node.op == "call_method":
        found = getattr(Tensor, node.target, None)
    elif isinstance(node.target, Op):
        found = node.target
    elif getattr(node.target, "__module__", "") == operator.add.__module__:
        name = node.target.__name__
        found = getattr(Tensor, CALLED.get(name, name), None)
    if not isinstance(found, Op):
        return None
    try:
        found.schema.given(node.args, node.kwargs)
    except TypeError:
        return None
    return found


# ----------------------------------------------------------------------------------------------------- replacing


class _Rewriter:
    """Inserts copies of the replacement into a graph."""

    def __init__(self, gm: GraphModule, pattern: GraphModule) -> None:
        self.gm = gm
        self.arguments = pattern.graph.find_nodes(op="placeholder")
        self.anchors = results_of(pattern.graph)
        self.place = {node: index for index, node in enumerate(gm.graph.nodes)}
        self.changed: dict[Node, Any] = {}  # values replaced by earlier matches
        self.names: dict[tuple[GraphModule, str], str] = {}  # a replacement's qualified names -> those in the module

    def replace(self, match: Match, replacement: GraphModule) -> list[Node]:
        """Replace one match; return the new nodes."""
        graph, source = self.gm.graph, replacement.graph
        bound = [self._replaced(match.nodes_map.get(argument)) for argument in self.arguments]
        values: dict[Node, Any] = dict(zip(source.find_nodes(op="placeholder"), bound, strict=True))
        with graph.inserting_before(self._where(match)):
            for node in source.nodes:
                if node.op != "output" and node not in values:
                    values[node] = self._copy(node, values, match.anchor, replacement)
        results = map_nodes(results_of(source), values.__getitem__)
        for anchor, result in zip(self.anchors, results, strict=True):
            self._put(match.nodes_map[anchor], result)
        for node in sorted(_inside(match), key=self.place.__getitem__, reverse=True):
            graph.erase_node(node)
        return [values[node] for node in source.nodes if node.op not in ("placeholder", "output")]

    def _replaced(self, value: Any) -> Any:
        while isinstance(value, Node) and value in self.changed:
            value = self.changed[value]
        return value

    def _where(self, match: Match) -> Node:
        """Return the first outside use of a result, or the node after the last call, whichever is earlier."""
        inside = set(_inside(match))
        last = max(inside, key=self.place.__getitem__).next
        for node in self.gm.graph.nodes:
            if node is last or (node not in inside and inside.intersection(node.all_input_nodes)):
                return node
        return last

    def _copy(self, node: Node, values: dict[Node, Any], anchor: Node, replacement: GraphModule) -> Node:
        """Return a copy of one node; where the module has operators only, a call of one."""
        copy = self.gm.graph.node_copy(node, values.__getitem__)
        if node.op in ("get_attr", "call_module"):
            copy.target = self._adopted(node, replacement)
        op = operator_of(copy) if self.gm.graph.signature is not None else None
        if op is not None:
            copy.op, copy.target = "call_function", op
        for key in ("stack_trace", "nn_module_stack"):
            if key in anchor.meta:
                copy.meta[key] = anchor.meta[key]
        return copy

    def _put(self, old: Node, new: Any) -> None:
        """Replace all uses by a result of the replacement, which may be a constant."""
        for user in list(old.users):
            user.args, user.kwargs = map_nodes((user.args, user.kwargs), lambda n: new if n is old else n)
        if isinstance(new, Node) and "val" in old.meta:
            new.meta.setdefault("val", old.meta["val"])
        self.changed[old] = new

    def _adopted(self, node: Node, replacement: GraphModule) -> str:
        """Return the module's name for an attribute of the replacement: a free one, if it is new."""
        key = replacement, node.target
        if key not in self.names:
            value = _attribute(replacement, node)
            fitting = (n for n in _names(node.target) if _lookup(self.gm, n) is None or _lookup(self.gm, n) is value)
            self.names[key] = name = next(fitting)
            if _lookup(self.gm, name) is None:
                path, _, last = name.rpartition(".")
                setattr(_home(self.gm, path), last, value)
        return self.names[key]


def _names(name: str) -> Iterable[str]:
    """Yield a name and variants of it, without end."""
    yield name
    number = 0
    while True:
        number += 1
        yield f"{name}_{number}"


def _lookup(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def _home(module: Module, path: str) -> Module:
    for part in path.split(".") if path else ():
        if getattr(module, part, None) is None:
            module.add_module(part, Module())
        module = getattr(module, part)
    return module
