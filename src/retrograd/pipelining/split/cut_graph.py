"""Cut a captured graph into stages, given the stage of every operator."""

from collections.abc import Mapping
from typing import NamedTuple

from retrograd.fx import Graph, GraphModule, Node
from retrograd.pipelining.runtime.stage import Value
from retrograd.pipelining.split.markers import marker

Assignment = Mapping[Node, int]


class StagePart(NamedTuple):
    """A stage of a captured model: its number, its graph, and the names of the graph's inputs and outputs."""

    stage_index: int
    graph: Graph
    inputs: tuple[Value, ...]
    outputs: tuple[str, ...]


def cut(captured: GraphModule, stage_of: Assignment, count: int, owners: Assignment | None = None) -> list[StagePart]:
    """Return the stages of a captured model.  Values go directly from the producing stage to the users.

    The last stage returns the model's outputs; those that earlier stages produce pass through it.

    count: the number of stages; one without operators passes values on, or takes part in nothing.
    owners: parameters that one stage owns, and others receive from it like any value.
    """
    stage_of_value = {**stage_of, **(owners or {})}
    parts = [_StageBuilder(captured, stage_of_value, index) for index in range(count)]
    for node in captured.graph.nodes:
        if node.op == "call_function" and node.target is not marker:
            parts[stage_of[node]].add(node)
    for node in captured.graph.output_node().all_input_nodes:
        parts[-1].take(node)
    for part in parts:
        part.finish(parts[-1])
    return [part.stage() for part in parts]


def check_assignment(graph: Graph, stage_of: Assignment) -> None:
    """Raise ValueError unless every operator has a stage, none precedes its inputs, and no stage is empty.

    Raises TypeError for anything but a mapping to integers.
    """
    check_order(graph, stage_of)
    found = sorted(set(stage_of.values()))
    if found != list(range(len(found))):
        raise ValueError(f"the split must number its stages 0, 1, ... without gaps, got {found}")


def check_order(graph: Graph, stage_of: Assignment) -> None:
    """Raise the errors of `check_assignment`, except that stages may be empty."""
    if not isinstance(stage_of, Mapping):
        raise TypeError(f"the split must be a mapping from operators to stages, got {type(stage_of).__name__}")
    for node in graph.find_nodes(op="call_function"):
        if node not in stage_of:
            raise ValueError(f"the split gives no stage to {node.name}")
        if not isinstance(stage_of[node], int):
            raise TypeError(f"the split must number its stages 0, 1, ..., got {stage_of[node]!r} for {node.name}")
        for used in node.all_input_nodes:
            if used in stage_of and stage_of[used] > stage_of[node]:
                raise ValueError(
                    f"the split puts {node.name} into stage {stage_of[node]}, but what it uses, {used.name}, into "
                    f"stage {stage_of[used]}"
                )


class _StageBuilder:
    """A stage under construction: its graph, inputs and outputs."""

    def __init__(self, captured: GraphModule, stage_of_value: Assignment, index: int) -> None:
        self.captured = captured
        self.stage_of_value = stage_of_value  # the stages of operators and of owned parameters
        self.index = index
        self.body: list[Node] = []
        self.inputs: dict[Node, Value] = {}
        self.returned: list[Node] = []

    def add(self, node: Node) -> None:
        """Add an operator to this stage."""
        self.body.append(node)
        for argument in node.all_input_nodes:
            self.take(argument)

    def take(self, node: Node) -> None:
        """Make a value available: as an input, unless it is computed here or is an attribute."""
        if node.op == "placeholder":
            self.inputs[node] = Value(node.name, None)
        elif self.stage_of_value.get(node, self.index) != self.index:
            self.inputs[node] = Value(node.name, self.stage_of_value[node])

    def finish(self, last: "_StageBuilder") -> None:
        """Determine the stage's outputs: the model's outputs, or the values that later stages use."""
        if self is last:
            self.returned = list(self.captured.graph.output_node().all_input_nodes)
        else:
            owned = [
                node for node, stage in self.stage_of_value.items() if node.op == "get_attr" and stage == self.index
            ]
            self.returned = [node for node in (*owned, *self.body) if self._is_used_later(node)]

    def _is_used_later(self, node: Node) -> bool:
        return any(user.op == "output" or self.stage_of_value[user] != self.index for user in node.users)

    def stage(self) -> StagePart:
        """Return the finished stage."""
        graph: Graph = Graph()
        here: dict[Node, Node] = {}
        for node, value in self.inputs.items():
            here[node] = graph.placeholder(value.name)
            here[node].meta = dict(node.meta)
        for node in self.body:
            for argument in node.all_input_nodes:
                if argument.op == "get_attr" and argument not in here:
                    here[argument] = graph.node_copy(argument, here.__getitem__)
            here[node] = graph.node_copy(node, here.__getitem__)
        for node in self.returned:
            if node.op == "get_attr" and node not in here:
                here[node] = graph.node_copy(node, here.__getitem__)
        graph.output(tuple(here[node] for node in self.returned))
        graph.lint()
        names = tuple(node.name for node in self.returned)
        return StagePart(self.index, graph, tuple(self.inputs.values()), names)
