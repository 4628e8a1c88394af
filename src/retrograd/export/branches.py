"""Merge captures of a module that took different branches on values into one graph, by `cond` nodes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import retrograd.higher_order  # noqa: F401 (registers cond)
from retrograd.core import Aval, Tensor, operator_named
from retrograd.export.size_operators import NUMBERS
from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule, tensor_names
from retrograd.fx.node import Node, map_leaves, map_nodes, nodes_in
from retrograd.fx.operators import GUARD, PICK
from retrograd.fx.signature import Signature
from retrograd.fx.subgraph import SubGraph
from retrograd.fx.traced_writes import USER_INPUT, Mutation

COND, EQ, ALL = map(operator_named, ("higher_order.cond", "eq", "all"))
CONSTANT = "_branch_constant_"
Values = dict[Node, Any]  # a node of a capture -> its node in the merged graph


def merge_branches(captures: Sequence[GraphModule]) -> GraphModule:
    """Return one program for several captures of a module: a `cond` node where they read another value.

    The captures must take the same arguments. The operators that run in all captures stay outside of the `cond`: those
    before the value is read, and those on the same lines at the end. For a value that none of the captures read, the
    program raises RuntimeError with the line, as each capture does. The first capture gets the constants of the others.

    Raises ValueError for captures that differ without having read another value, or whose arguments or results differ.

    >>> import retrograd as rg
    >>> def double_if_positive(x):
    ...     return x * 2 if x.sum() > 0 else x
    >>> merged = merge_branches([rg.fx.trace(double_if_positive, rg.full((2,), value)) for value in (1.0, -1.0)])
    >>> merged(rg.tensor([3.0, -1.0])), merged(rg.tensor([-3.0, 1.0]))
    (tensor([ 6., -2.]), tensor([-3.,  1.]))
    """
    first = captures[0]
    if len(captures) == 1:
        return first
    merger = _Merger(captures)
    graph = Graph()
    graph.signature = merger.signature
    results = merger.emit_all(graph)
    graph.output(results[0] if graph.signature.single else tuple(results))
    graph.lint()
    return GraphModule(first, graph, keep=tensor_names(first))


class Branch(NamedTuple):
    """Operators of one capture that are not merged yet, the merged values that they use, and what they compute."""

    body: list[Node]
    values: Values
    results: list[Any]

    def merged(self, leaf: Any) -> Any:
        """Return a leaf of a node's arguments, or a result, in the merged graph."""
        return self.values[leaf] if isinstance(leaf, Node) else leaf

    def call(self, node: Node) -> tuple:
        """Return a node as data, with the merged values that it uses; KeyError if one is not merged yet."""
        args, kwargs = map_leaves((node.args, node.kwargs), self.merged)
        return node.target, _comparable((args, kwargs))


class _Merger:
    """The merge of captures: the inputs of the graph, then its operators."""

    def __init__(self, captures: Sequence[GraphModule]) -> None:
        self._captures = captures
        _check_arguments([_signature(one) for one in captures])

    @cached_property
    def mutations(self) -> list[Mutation]:
        """The writes of all captures; ValueError if a write is recorded by autograd in one capture only."""
        found: dict[tuple[str, str], Mutation] = {}
        for one in self._captures:
            for mutation in _signature(one).mutations:
                known = found.setdefault(mutation[:2], mutation)
                if known != mutation:
                    raise ValueError(f"branches: one writes to {mutation.target} under no_grad, and another does not")
        return list(found.values())

    @cached_property
    def signature(self) -> Signature:
        """The signature of the merged graph, with the writes of all captures."""
        signatures = [_signature(one) for one in self._captures]
        same = [{leaf: one.mutations[n].target for leaf, n in one._returned_targets.items()} for one in signatures]
        if any(other != same[0] for other in same):
            raise ValueError("branches: one returns a tensor that it writes to, and another does not; return a clone")
        made = copy(signatures[0])
        places = {mutation.target: n for n, mutation in enumerate(self.mutations)}
        made.learn_mutations(self.mutations, {leaf: places[target] for leaf, target in same[0].items()})
        made.knows_sizes = any(one.knows_sizes for one in signatures)
        return made

    def emit_all(self, graph: Graph) -> list[Any]:
        """Add the nodes of all captures to a graph, except the output, and return its results."""
        inputs = self._captures[0].graph.find_nodes(op="placeholder")
        merged = [_copied(graph, node, []) for node in inputs]
        attributes = _Attributes(graph, self._captures[0])
        branches = []
        for one in self._captures:
            values = dict(zip(one.graph.find_nodes(op="placeholder"), merged, strict=True))
            values |= {node: attributes.of(node, one) for node in one.graph.find_nodes(op="get_attr")}
            branches.append(Branch(_operators(one.graph), values, self._results(one, values, attributes)))
        for branch in branches:
            _emit_numbers(graph, branch)
        return _emit(graph, branches)

    def _results(self, one: GraphModule, values: Values, attributes: "_Attributes") -> list[Any]:
        """Return the outputs of a capture, and for a target that only others write to its value before the run."""
        output, signature = one.graph.output_node().args[0], _signature(one)
        outputs = [output] if signature.single else list(output)
        written = {mutation.target: outputs[n] for n, mutation in enumerate(signature.mutations)}
        inputs = {known.name: node for known, node in zip(signature.inputs, values, strict=False)}
        for mutation in self.mutations:
            if mutation.target not in written and mutation.kind == USER_INPUT:
                written[mutation.target] = inputs[mutation.target]
            elif mutation.target not in written:
                node = attributes.named(mutation.target, one)
                values[node] = node
                written[mutation.target] = node
        return [*(written[m.target] for m in self.mutations), *outputs[len(signature.mutations) :]]


class _Attributes:
    """The nodes that read attributes of the module, one for each tensor."""

    def __init__(self, graph: Graph, home: GraphModule) -> None:
        self._graph = graph
        self._home = home
        self._nodes: dict[str, Node] = {}

    def of(self, node: Node, capture: GraphModule) -> Node:
        """Return the node for an attribute that a capture reads."""
        value = _attribute(capture, str(node.target))
        return self._read(self._name_of(str(node.target), value), node.meta)

    def named(self, target: str, capture: GraphModule) -> Node:
        """Return the node for the tensor of that name; ValueError if there is none before the module runs."""
        value = _attribute(capture, target)
        if value is None:
            raise ValueError(f"branches: one assigns {target!r}, where there is no tensor yet, and another does not")
        return self._read(target, {"val": value.aval})

    def _read(self, target: str, meta: Mapping[str, Any]) -> Node:
        if target not in self._nodes:
            self._nodes[target] = self._graph.get_attr(target)
            self._nodes[target].meta = dict(meta)
        return self._nodes[target]

    def _name_of(self, target: str, value: Tensor) -> str:
        """Return the target in the first capture; a constant that it lacks is added under a free name."""
        if _same_tensor(_attribute(self._home, target), value):
            return target
        number = 0
        while not _same_tensor(_attribute(self._home, f"{CONSTANT}{number}"), value):
            if _attribute(self._home, f"{CONSTANT}{number}") is None:
                setattr(self._home, f"{CONSTANT}{number}", value)
            else:
                number += 1
        return f"{CONSTANT}{number}"


# ---------------------------------------------------------------------------------------------------- merging


def _emit(graph: Graph, branches: Sequence[Branch]) -> list[Any]:
    """Add the operators of branches to a graph, and return their common results."""
    start = _emit_common(graph, branches)
    rest = [branch._replace(body=branch.body[start:]) for branch in branches]
    _check_constants(rest)
    if not any(branch.body for branch in rest):
        return _emit_end(graph, rest, {})
    _check_readings(rest)
    end = _common_end(rest)
    middle = [[*branch.body[: len(branch.body) - end]] for branch in rest]
    wanted = _outputs(rest, end)
    outs = _emit_cond(graph, [b._replace(body=m, results=w) for b, m, w in zip(rest, middle, wanted, strict=True)])
    chosen = dict(zip(zip(*wanted, strict=True), outs, strict=False))
    return _emit_end(graph, [b._replace(body=b.body[len(b.body) - end :]) for b in rest], chosen)


def _emit_end(graph: Graph, branches: Sequence[Branch], chosen: dict[tuple, Node]) -> list[Any]:
    """Add the operators that all branches end with, and return the results.

    chosen: the result of `cond` for the values that correspond to each other in the branches.
    """

    def merged(row: tuple) -> Any:
        return chosen[row] if row in chosen else branches[0].merged(row[0])

    for nodes in zip(*[branch.body for branch in branches], strict=True):
        rows = zip(*[nodes_in((node.args, node.kwargs)) for node in nodes], strict=True)
        made = _copied(graph, nodes[0], list(map(merged, rows)))
        for branch, node in zip(branches, nodes, strict=True):
            branch.values[node] = made
    return [merged(row) for row in zip(*[branch.results for branch in branches], strict=True)]


def _emit_common(graph: Graph, branches: Sequence[Branch]) -> int:
    """Add the operators at the beginning that are the same in all branches, and return how many there are."""
    for count, nodes in enumerate(zip(*[branch.body for branch in branches], strict=False)):
        calls = [branch.call(node) for branch, node in zip(branches, nodes, strict=True)]
        if any(call != calls[0] for call in calls):
            return count
        made = _copied(graph, nodes[0], _merged_inputs(branches[0], nodes[0]))
        for branch, node in zip(branches, nodes, strict=True):
            branch.values[node] = made
    return min(len(branch.body) for branch in branches)


def _check_constants(branches: Sequence[Branch]) -> None:
    """Raise ValueError for results that are no tensors and differ between the branches."""
    for row in zip(*[branch.results for branch in branches], strict=True):
        kinds = {isinstance(leaf, Node) for leaf in row}
        if len(kinds) > 1 or (kinds == {False} and any(_comparable(a) != _comparable(row[0]) for a in row)):
            raise ValueError(f"branches: a result that is no tensor must be the same in all branches, got {row}")


def _check_readings(branches: Sequence[Branch]) -> None:
    """Raise ValueError unless the next operator of each branch checks the same value."""
    nodes = [branch.body[0] if branch.body else None for branch in branches]
    first = nodes[0]
    for branch, node in zip(branches, nodes, strict=True):
        if (
            first is None
            or node is None
            or (node.target, first.target) != (GUARD, GUARD)
            or branch.values[node.args[0]] is not branches[0].values[first.args[0]]
        ):
            place = next((str(n.meta.get("stack_trace")) for n in nodes if n is not None), "the end")
            raise ValueError(
                f"branches: the code runs other operators at {place} though it has read the same values before; what "
                f"it decides on must be a value of a tensor"
            )


def _common_end(branches: Sequence[Branch]) -> int:
    """Return how many operators at the end run in all branches, on the same lines and with values of the same types."""
    bodies = [branch.body[1:] for branch in branches]
    count = min(map(len, bodies))
    for back, nodes in enumerate(zip(*map(reversed, bodies), strict=False)):
        if any(_likeness(node) != _likeness(nodes[0]) for node in nodes):
            count = back
            break
    while True:
        places = [{node: n for n, node in enumerate(reversed(body[len(body) - count :]))} for body in bodies]
        wrong = [n for n in range(count) if not _uses_alike([body[-1 - n] for body in bodies], places)]
        for row in zip(*[branch.results for branch in branches], strict=True):
            found = {place.get(node) for place, node in zip(places, row, strict=True)}
            wrong += [n for n in found if n is not None] if len(found) > 1 else []
        if not wrong:
            return count
        count = min(wrong)


def _uses_alike(nodes: Sequence[Node], places: Sequence[Mapping[Node, int]]) -> bool:
    """Whether the same operators use values of the same types, and the same ones among the common operators."""
    for used in zip(*[nodes_in((node.args, node.kwargs)) for node in nodes], strict=True):
        found = {place.get(node) for place, node in zip(places, used, strict=True)}
        avals = [node.meta.get("val") for node in used]
        if len(found) > 1 or any(aval != avals[0] for aval in avals):
            return False
        if found == {None} and not isinstance(avals[0], Aval) and used[0].target not in NUMBERS:
            return False  # results of an operator that has several
    return True


def _outputs(branches: Sequence[Branch], end: int) -> list[list[Any]]:
    """Return, for each branch, the values that its operators at the end and its results take from those before."""
    found: dict[tuple, None] = {}
    used: list[Iterable[Any]] = [branch.results for branch in branches]
    rows = list(zip(*used, strict=True))
    for nodes in zip(*[branch.body[len(branch.body) - end :] for branch in branches], strict=True):
        rows += zip(*[nodes_in((node.args, node.kwargs)) for node in nodes], strict=True)
    after = {node for branch in branches for node in branch.body[len(branch.body) - end :]}
    for row in rows:
        if isinstance(row[0], Node) and not after & {*row}:
            merged = [branch.values.get(leaf) for branch, leaf in zip(branches, row, strict=True)]
            if None in merged or any(m is not merged[0] for m in merged):
                found[row] = None
    return [list(column) for column in zip(*found, strict=True)] or [[] for _ in branches]


def _emit_cond(graph: Graph, branches: Sequence[Branch]) -> list[Node]:
    """Add a `cond` between the branches that read one value and all others, and return its results."""
    if not branches[0].results:  # whatever runs, nothing uses it
        return []
    _check_types(branches)
    guard = branches[0].body[0]
    expected = [_comparable(branch.merged(branch.body[0].args[1])) for branch in branches]
    chosen = [branch for branch, value in zip(branches, expected, strict=True) if value == expected[0]]
    others = [branch for branch, value in zip(branches, expected, strict=True) if value != expected[0]]
    is_bool = isinstance(guard.args[1], bool)
    if is_bool and not guard.args[1]:
        chosen, others = others, chosen
    sides = [_without_guard(chosen), _without_guard(others) if is_bool else others]
    pred = branches[0].values[guard.args[0]] if is_bool else _equals(graph, guard, branches[0])
    operands = _operands(sides)
    functions = {
        name: SubGraph(name, _subgraph(side, operands))
        for name, side in zip(("true_fn", "false_fn"), sides, strict=True)
    }
    cond = graph.call_function(COND, (pred, *operands), functions)
    avals = tuple([result.meta.get("val") for result in branches[0].results])
    cond.meta = {**guard.meta, "val": avals}
    picks = [graph.create_node("call_function", PICK, (cond, n), name=f"{cond.name}_{n}") for n in range(len(avals))]
    for pick, aval in zip(picks, avals, strict=True):
        pick.meta = {**guard.meta, "val": aval}
    return picks


def _without_guard(branches: Sequence[Branch]) -> list[Branch]:
    """Return branches without their first operator, whose value is known to be the expected one."""
    return [branch._replace(body=branch.body[1:]) for branch in branches]


def _equals(graph: Graph, guard: Node, branch: Branch) -> Node:
    """Return a new node: whether a value is the one that a branch has read."""
    value, expected = map_leaves(guard.args, branch.merged)
    pred = graph.call_function(EQ, (value, expected))
    aval = guard.args[0].meta["val"]
    pred.meta = {**guard.meta, "val": Aval(aval.shape, "bool")}
    if aval.shape:
        pred = graph.call_function(ALL, (pred,))
        pred.meta = {**guard.meta, "val": Aval((), "bool")}
    return pred


def _check_types(branches: Sequence[Branch]) -> None:
    """Raise ValueError for results of different shapes or dtypes."""
    for row in zip(*[branch.results for branch in branches], strict=True):
        avals = [leaf.meta.get("val") for leaf in row]
        for node, aval in zip(row, avals, strict=True):
            if aval != avals[0]:
                raise ValueError(
                    f"branches: a result must have the same shape and dtype in all branches, but one is {avals[0]} (at "
                    f"{row[0].meta.get('stack_trace')}) and another {aval} (at {node.meta.get('stack_trace')})"
                )


def _operands(sides: Sequence[Sequence[Branch]]) -> list[Node]:
    """Return the merged values that the branches use, apart from numbers, in the order of the graph."""
    found: set[Node] = set()
    for branch in (branch for side in sides for branch in side):
        for node in _used(branch):
            if node in branch.values:
                found |= set(_tensors_of(branch.values[node]))
    graph = next(iter(found)).graph if found else None
    return [node for node in graph.nodes if node in found] if graph is not None else []


def _used(branch: Branch) -> Iterator[Node]:
    for node in branch.body:
        yield from nodes_in((node.args, node.kwargs))
    yield from (leaf for leaf in branch.results if isinstance(leaf, Node))


def _tensors_of(node: Node) -> Iterator[Node]:
    """Yield the node, or for a number the tensors whose sizes it is computed from."""
    if node.target in NUMBERS:
        for used in nodes_in((node.args, node.kwargs)):
            yield from _tensors_of(used)
    else:
        yield node


def _subgraph(branches: Sequence[Branch], operands: Sequence[Node]) -> Graph:
    """Return the graph of branches as a function of operands."""
    graph = Graph()
    inside: Values = {}
    for number, node in enumerate(operands):
        inside[node] = graph.placeholder(f"operand_{number}")
        inside[node].meta = {"val": node.meta.get("val")}
    inner = []
    for branch in branches:
        used = [node for node in _used(branch) if node in branch.values]
        values = {node: _copy_number(graph, branch.values[node], inside) for node in used}
        inner.append(branch._replace(values=values))
    graph.output(tuple(_emit(graph, inner)))
    return graph


def _copy_number(graph: Graph, node: Node, inside: Values) -> Node:
    """Return a merged value in a sub-graph: an operand, or a number that is computed again."""
    if node not in inside:
        used = [_copy_number(graph, n, inside) for n in nodes_in((node.args, node.kwargs))]
        inside[node] = _copied(graph, node, used)
    found: Node = inside[node]
    return found


# ------------------------------------------------------------------------------------------------------ nodes


def _emit_numbers(graph: Graph, branch: Branch) -> None:
    """Move the nodes that compute sizes from the inputs to the front of a graph, each once."""
    known = {_call_of(node): node for node in graph.nodes if node.target in NUMBERS}
    for node in [node for node in branch.body if node.target in NUMBERS]:
        call = branch.call(node)
        if call not in known:
            known[call] = _copied(graph, node, _merged_inputs(branch, node))
        branch.values[node] = known[call]
        branch.body.remove(node)


def _call_of(node: Node) -> tuple:
    return node.target, _comparable((node.args, node.kwargs))


def _copied(graph: Graph, node: Node, inputs: Iterable[Any]) -> Node:
    """Return a copy of a node in a graph, with other inputs, in the order of `nodes_in`."""
    rest = iter(inputs)
    args, kwargs = map_nodes((node.args, node.kwargs), lambda _: next(rest))
    made = graph.create_node(node.op, node.target, args, kwargs, node.name)
    made.meta = dict(node.meta)
    return made


def _merged_inputs(branch: Branch, node: Node) -> list[Node]:
    return [branch.values[used] for used in nodes_in((node.args, node.kwargs))]


def _operators(graph: Graph) -> list[Node]:
    return graph.find_nodes(op="call_function")


def _likeness(node: Node) -> tuple:
    """Return what operators in different branches must have in common to be merged."""
    args = map_leaves((node.args, node.kwargs), lambda leaf: None if isinstance(leaf, Node) else leaf)
    return node.target, _comparable(args), node.meta.get("stack_trace"), node.meta.get("val")


def _comparable(value: Any) -> Any:
    """Return a value as one that is hashable, and equal for equal types and values; nan equals nan."""
    if isinstance(value, dict):
        return dict, tuple([(key, _comparable(v)) for key, v in value.items()])
    if isinstance(value, (tuple, list)):
        return type(value), *map(_comparable, value)
    if isinstance(value, (int, float, complex)):
        return type(value), repr(value)
    return value


def _signature(capture: GraphModule) -> Signature:
    assert capture.graph.signature is not None, "a captured graph knows its arguments"
    return capture.graph.signature


def _check_arguments(signatures: Sequence[Signature]) -> None:
    """Raise ValueError for captures with other arguments, or with results of another structure."""
    first = signatures[0]
    for other in signatures[1:]:
        if other._specs != first._specs:
            raise ValueError(f"branches: the arguments have the structure {other._specs}, not {first._specs}")
        for known, leaf in zip(first._leaves, other._leaves, strict=True):
            if _comparable(known) != _comparable(leaf):
                raise ValueError(f"branches: {known.name} is {known[1]!r} in one example, and {leaf[1]!r} in another")
        if other._result != first._result:
            raise ValueError(f"branches: one returns the structure {first._result}, and another {other._result}")


def _attribute(module: GraphModule, target: str) -> Any:
    """Return the attribute of a qualified name, or None."""
    value: Any = module
    for name in target.split("."):
        value = getattr(value, name, None)
    return value


def _same_tensor(a: Any, b: Tensor) -> bool:
    return a is b or (isinstance(a, Tensor) and a.aval == b.aval and bool(EQ(a, b).all()))
