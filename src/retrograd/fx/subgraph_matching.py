"""Find subgraphs that match a pattern, and replace them."""

import copy
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from retrograd.core import Op, Tensor
from retrograd.core.schema import REQUIRED
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.node import CALLS, Node, map_nodes
from retrograd.fx.symbolic_tracer import symbolic_trace
from retrograd.fx.traced_writes import insert_copies, mutated_nodes
from retrograd.nn.module import Module

Program = Callable | Graph | GraphModule


# Tensor methods that have another name than the function of the module `operator`.
METHOD_NAMES = {
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
    return [match for match, _ in rewrite_matches(gm, pattern, replacement)]


def rewrite_matches(
    gm: GraphModule,
    pattern: Program,
    replacement: Program | None,
    accepts: Callable[[Match, Graph], bool] = lambda match, pattern: True,
    choose_replacement: Callable[[Match, Graph], Program] | None = None,
    ignore_literals: bool = False,
) -> list[tuple[Match, list[Node]]]:
    """Replace the accepted matches, each by `choose_replacement`'s result if given; return them with new nodes."""
    if not isinstance(gm, GraphModule):
        raise TypeError(f"replace_pattern: expected a graph module, got {type(gm).__name__}; see fx.symbolic_trace")
    if isinstance(pattern, Graph) and not pattern.nodes:
        raise ValueError("replace_pattern: SubgraphMatcher cannot be initialized with an empty pattern; add calls")
    pattern_module = _module(pattern, gm)
    if not all(isinstance(node, Node) and node.op in CALLS for node in results_of(pattern_module.graph)):
        raise ValueError("replace_pattern: every result of the pattern must be that of a call")
    known: dict[int, tuple[Program, GraphModule]] = {}

    def to_graph_module(program: Program) -> GraphModule:
        if id(program) not in known:
            known[id(program)] = program, _module(program, gm)
            _check(pattern_module.graph, known[id(program)][1].graph)
        return known[id(program)][1]

    if replacement is not None:
        to_graph_module(replacement)  # raises if it is invalid
    matcher = Matcher(gm.graph, pattern_module.graph, ignore_literals)
    matches = [match for match in matcher.matches() if accepts(match, pattern_module.graph)]
    programs = [
        choose_replacement(match, pattern_module.graph) if choose_replacement is not None else replacement
        for match in matches
    ]
    pairs = [
        (match, to_graph_module(program))
        for match, program in zip(matches, programs, strict=True)
        if program is not None
    ]
    rewriter = _Rewriter(gm, pattern_module)
    done = [(match, rewriter.replace(match, given)) for match, given in pairs]
    insert_copies(gm.graph, mutated_nodes(gm.graph))
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
        self.position = {node: index for index, node in enumerate(graph.nodes)}

    def is_equal(self) -> bool:
        """Return whether the whole graph equals the pattern, argument by argument."""
        bound: dict[Node, Any] = {}
        if not self._unify(self.pattern.output_node().args, self.graph.output_node().args, bound):
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
            if match is not None and not taken.intersection(_matched_calls(match)):
                taken.update(_matched_calls(match))
                found.append(match)
        return found

    def _match_at(self, node: Node) -> Match | None:
        """Match the pattern with its first result at a node; then its further results."""
        for bound in self._bindings({}, [(self.anchors[0], node)], list(self.anchors[1:])):
            match = Match(node, bound)
            if self._is_contained(match) and self._has_insertion_point(match):
                return match
        return None

    def _bindings(self, bound: dict[Node, Any], pairs: list[tuple], rest: list[Node]) -> Iterator[dict[Node, Any]]:
        """Yield the ways to bind the pattern's nodes such that all pairs and remaining results agree."""
        bound = dict(bound)
        if not all(self._unify(expected, actual, bound) for expected, actual in pairs):
            return
        if not rest:
            yield bound
        elif rest[0] in bound:
            yield from self._bindings(bound, [], rest[1:])
        else:
            # No argument connects this result with those that are bound, so every node is a candidate.
            for node in self.graph.nodes:
                if node not in bound.values():
                    yield from self._bindings(bound, [(rest[0], node)], rest[1:])

    def _unify(self, first: Any, second: Any, bound: dict[Node, Any]) -> bool:
        """Return whether a part of the pattern and of the graph agree, and record the bindings."""
        # A list of open pairs instead of recursion, because patterns may be deep.
        pairs = [(first, second)]
        while pairs:
            expected, actual = pairs.pop()
            if not isinstance(expected, Node):
                inside = [] if self._are_literals(expected, actual) else _members(expected, actual)
                if inside is None:
                    return False
                pairs += inside
            elif expected in bound:
                if bound[expected] is not actual and (isinstance(actual, Node) or not _same(bound[expected], actual)):
                    return False
            else:
                further = self._bind(expected, actual)
                if further is None:
                    return False
                bound[expected] = actual
                pairs += further
        return True

    def _are_literals(self, expected: Any, actual: Any) -> bool:
        """Return whether both are numbers or strings, and literals are ignored."""
        return self.ignore_literals and all(
            isinstance(value, int | float | complex | str) for value in (expected, actual)
        )

    def _bind(self, expected: Node, actual: Any) -> list[tuple] | None:
        """Return the pairs of arguments that must agree if two nodes are to; None if they can't."""
        if expected.op == "placeholder":
            return []
        if not isinstance(actual, Node):
            return None
        if expected.op == "get_attr":
            return [] if actual.op == "get_attr" and self._same_attribute(expected, actual) else None
        if actual.op not in CALLS:
            return None
        (called, arguments), (target, others) = _call(expected), _call(actual)
        if called != target and not self._same_module(expected, actual):
            return None
        return [(arguments, others)]

    def _same_module(self, expected: Node, actual: Node) -> bool:
        if expected.op != "call_module" or actual.op != "call_module":
            return False
        owners = self.pattern.owning_module, self.graph.owning_module
        return None not in owners and _attribute(owners[0], expected) is _attribute(owners[1], actual)

    def _same_attribute(self, expected: Node, actual: Node) -> bool:
        """Return whether two reads give equal values; of graphs without modules, whether the names are equal."""
        owners = self.pattern.owning_module, self.graph.owning_module
        if None in owners:
            return expected.target == actual.target
        return _same(_attribute(owners[0], expected), _attribute(owners[1], actual))

    def _is_contained(self, match: Match) -> bool:
        """Return whether nothing else uses the nodes that the replacement removes."""
        results = [match.nodes_map[node] for node in self.anchors]
        inside = set(_matched_calls(match))
        kept = [node for node in inside if node not in results]
        # Two calls of the pattern may not be bound to one call of the graph: it can be replaced only once.
        return len(inside) == sum(n.op in CALLS for n in match.nodes_map) and all(
            user in inside for node in kept for user in node.users
        )

    def _has_insertion_point(self, match: Match) -> bool:
        """Return whether there is a position after all arguments and before all uses of results."""
        after = [self.position[v] for n, v in match.nodes_map.items() if n.op == "placeholder" and isinstance(v, Node)]
        inside = set(_matched_calls(match))
        users = [user for node in self.anchors for user in match.nodes_map[node].users if user not in inside]
        return max(after, default=-1) < min((self.position[user] for user in users), default=len(self.position))


def _matched_calls(match: Match) -> list[Node]:
    """Return the calls that a match replaces."""
    return [actual for expected, actual in match.nodes_map.items() if expected.op in CALLS]


def _members(expected: Any, actual: Any) -> list[tuple] | None:
    """Return pairs of members of two containers of one kind; none for equal constants; None if they differ."""
    if isinstance(expected, slice) and isinstance(actual, slice):
        return [(expected.start, actual.start), (expected.stop, actual.stop), (expected.step, actual.step)]
    if isinstance(expected, dict) and isinstance(actual, dict):
        return [(expected[key], actual[key]) for key in expected] if expected.keys() == actual.keys() else None
    if isinstance(expected, tuple | list) and isinstance(actual, tuple | list):
        return list(zip(expected, actual, strict=True)) if len(expected) == len(actual) else None
    return [] if not isinstance(actual, Node) and _same(expected, actual) else None


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
        found = getattr(Tensor, METHOD_NAMES.get(name, name), None)
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
        self.position = {node: index for index, node in enumerate(gm.graph.nodes)}
        self.changed: dict[Node, Any] = {}  # values replaced by earlier matches
        self.names: dict[tuple[GraphModule, str], str] = {}  # a replacement's qualified names -> those in the module

    def replace(self, match: Match, replacement: GraphModule) -> list[Node]:
        """Replace one match; return the new nodes."""
        graph, source = self.gm.graph, replacement.graph
        bound = [self._current_value(match.nodes_map.get(argument)) for argument in self.arguments]
        values: dict[Node, Any] = dict(zip(source.find_nodes(op="placeholder"), bound, strict=True))
        with graph.inserting_before(self._insertion_point(match)):
            for node in source.nodes:
                if node.op != "output" and node not in values:
                    values[node] = self._copy(node, values, match.anchor, replacement)
        results = map_nodes(results_of(source), values.__getitem__)
        for anchor, result in zip(self.anchors, results, strict=True):
            self._replace_uses(match.nodes_map[anchor], result)
        # Users first, because a node with users cannot be erased.
        for node in sorted(_matched_calls(match), key=self.position.__getitem__, reverse=True):
            graph.erase_node(node)
        return [values[node] for node in source.nodes if node.op not in ("placeholder", "output")]

    def _current_value(self, value: Any) -> Any:
        # An earlier match may have replaced the value, and a later one its replacement.
        while isinstance(value, Node) and value in self.changed:
            value = self.changed[value]
        return value

    def _insertion_point(self, match: Match) -> Node:
        """Return the first outside use of a result, or the node after the last call, whichever is earlier."""
        inside = set(_matched_calls(match))
        last = max(inside, key=self.position.__getitem__).next
        for node in self.gm.graph.nodes:
            if node is last or (node not in inside and inside.intersection(node.all_input_nodes)):
                return node
        return last

    def _copy(self, node: Node, values: dict[Node, Any], anchor: Node, replacement: GraphModule) -> Node:
        """Return a copy of one node; where the module has operators only, a call of one."""
        copy = self.gm.graph.node_copy(node, values.__getitem__)
        if node.op in ("get_attr", "call_module"):
            copy.target = self._attribute_target(node, replacement)
        op = operator_of(copy) if self.gm.graph.signature is not None else None
        if op is not None:
            copy.op, copy.target = "call_function", op
        for key in ("stack_trace", "nn_module_stack"):
            if key in anchor.meta:
                copy.meta[key] = anchor.meta[key]
        return copy

    def _replace_uses(self, old: Node, new: Any) -> None:
        """Replace all uses by a result of the replacement, which may be a constant."""
        for user in list(old.users):
            user.args, user.kwargs = map_nodes((user.args, user.kwargs), lambda n: new if n is old else n)
        if isinstance(new, Node) and "val" in old.meta:
            new.meta.setdefault("val", old.meta["val"])
        self.changed[old] = new

    def _attribute_target(self, node: Node, replacement: GraphModule) -> str:
        """Return the module's name for an attribute of the replacement: a free one, if it is new."""
        key = replacement, node.target
        if key not in self.names:
            value = _attribute(replacement, node)
            unused = (
                n for n in _name_candidates(node.target) if _lookup(self.gm, n) is None or _lookup(self.gm, n) is value
            )
            self.names[key] = name = next(unused)
            if _lookup(self.gm, name) is None:
                path, _, last = name.rpartition(".")
                setattr(_get_or_add_submodule(self.gm, path), last, value)
        return self.names[key]


def _name_candidates(name: str) -> Iterable[str]:
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


def _get_or_add_submodule(module: Module, path: str) -> Module:
    for part in path.split(".") if path else ():
        if getattr(module, part, None) is None:
            module.add_module(part, Module())
        module = getattr(module, part)
    return module


suggest_in_module(globals())
