"""Cutting a captured graph into stages, given the stage of every operator."""

from collections.abc import Mapping

from retrograd.fx import Graph, GraphModule, Node
from retrograd.pipelining.runtime.stage import PipelineStage, Value
from retrograd.pipelining.split.markers import marker

Assignment = Mapping[Node, int]


def cut(captured: GraphModule, stage_of: Assignment, owners: Assignment | None = None) -> list[PipelineStage]:
    """The stages of a captured model.  Values go straight from the stage that makes them to those that use them.

    The model's outputs are those of the last stage; what an earlier stage made of them passes through it.

    owners: parameters that one stage owns, and others take from it like any value.
    """
    homes = {**stage_of, **(owners or {})}
    count = max(stage_of.values(), default=0) + 1
    parts = [_Part(captured, homes, index) for index in range(count)]
    for node in captured.graph.nodes:
        if node.op == "call_function" and node.target is not marker:
            parts[stage_of[node]].add(node)
    for node in captured.graph.output_node().all_input_nodes:
        parts[-1].take(node)
    for part in parts:
        part.finish(parts[-1])
    return [part.stage() for part in parts]


def check_assignment(graph: Graph, stage_of: Assignment) -> None:
    """Every operator has a stage, none comes before what it uses, and no stage is empty; else a ValueError.

    Raises TypeError for what is no mapping to integers.
    """
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
    found = sorted(set(stage_of.values()))
    if found != list(range(len(found))):
        raise ValueError(f"the split must number its stages 0, 1, ... without gaps, got {found}")


class _Part:
    """A stage in the making: its graph, and what it takes and gives."""

    def __init__(self, captured: GraphModule, homes: Assignment, index: int) -> None:
        self.captured = captured
        self.homes = homes  # the stages of operators and of parameters that have an owner
        self.index = index
        self.body: list[Node] = []
        self.taken: dict[Node, Value] = {}
        self.returned: list[Node] = []

    def add(self, node: Node) -> None:
        """One more operator of this stage."""
        self.body.append(node)
        for argument in node.all_input_nodes:
            self.take(argument)

    def take(self, node: Node) -> None:
        """Make a value available here: taken as an input, unless it is made here or is an attribute."""
        if node.op == "placeholder":
            self.taken[node] = Value(node.name, None)
        elif self.homes.get(node, self.index) != self.index:
            self.taken[node] = Value(node.name, self.homes[node])

    def finish(self, last: "_Part") -> None:
        """Settle what the stage returns: the model's outputs, or what later stages use."""
        if self is last:
            self.returned = list(self.captured.graph.output_node().all_input_nodes)
        else:
            owned = [node for node, home in self.homes.items() if node.op == "get_attr" and home == self.index]
            self.returned = [node for node in (*owned, *self.body) if self._is_used_later(node)]

    def _is_used_later(self, node: Node) -> bool:
        return any(user.op == "output" or self.homes[user] != self.index for user in node.users)

    def stage(self) -> PipelineStage:
        """The finished stage."""
        graph: Graph = Graph()
        here: dict[Node, Node] = {}
        for node, value in self.taken.items():
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
        return PipelineStage(GraphModule(self.captured, graph), self.index, tuple(self.taken.values()), names)
