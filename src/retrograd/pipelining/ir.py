"""From a model to its stages: mark the boundaries, capture one run, cut the graph."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any, NamedTuple

from retrograd.fx import Graph, GraphModule, Node, Signature, map_nodes, trace
from retrograd.nn import Module
from retrograd.pipelining.marker import marker, pipe_split
from retrograd.pipelining.partition import partition
from retrograd.pipelining.stage import PipelineStage, Value

Assignment = Mapping[Node, int]


class SplitPoint(Enum):
    """Where a boundary lies: before a submodule runs, or after it."""

    BEGINNING = "beginning"
    END = "end"


class PipeInfo(NamedTuple):
    """What a pipe is, in short."""

    graph: Graph
    num_stages: int


class Pipe:
    """A model cut into stages.  Runs as a whole when called like the model; the stages share its parameters.

    >>> import retrograd as rg
    >>> model = rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.ReLU(), rg.nn.Linear(8, 2))
    >>> pipe = pipeline(model, (rg.ones(3, 4),), split_spec={"2": SplitPoint.BEGINNING})
    >>> pipe.num_stages, pipe(rg.ones(3, 4)).shape
    (2, (3, 2))
    """

    def __init__(self, captured: GraphModule, stages: Sequence[PipelineStage]) -> None:
        self.captured = captured
        self.stages = list(stages)

    @property
    def num_stages(self) -> int:
        """The number of stages."""
        return len(self.stages)

    def get_stage_module(self, index: int) -> Any:
        """The module of one stage; a ValueError where there is no such stage."""
        if not 0 <= index < self.num_stages:
            raise ValueError(f"stage {index} does not exist: there are stages 0 to {self.num_stages - 1}")
        return self.stages[index].module

    def info(self) -> PipeInfo:
        """The graph and the number of stages."""
        return PipeInfo(self.captured.graph, self.num_stages)

    def carried(self) -> dict[tuple[int, int], list[str]]:
        """What travels along each edge (from_stage, to_stage) of the stage graph: names of values."""
        edges: dict[tuple[int, int], list[str]] = {}
        for stage in self.stages:
            for value in stage.inputs:
                if value.stage is not None:
                    edges.setdefault((value.stage, stage.index), []).append(value.name)
        return edges

    def print_readable(self) -> str:
        """Print and return every stage as Python code."""
        text = "\n".join(f"# {stage}\n{stage.module.code}" for stage in self.stages)  # type: ignore[attr-defined]
        print(text)
        return text

    def inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The tensors among the model's arguments, by the names that the stages know them by.

        Raises ValueError for arguments unlike those that the model was captured with.
        """
        names = [node.name for node in self.captured.graph.find_nodes(op="placeholder")]
        return dict(zip(names, self._signature.flatten(tuple(args), dict(kwargs)), strict=True))

    def output(self, values: Mapping[str, Any]) -> Any:
        """The model's output from the outputs of the last stage by name."""
        returned = self.captured.graph.output_node().args[0]
        return self._signature.restore(map_nodes(returned, lambda node: values[node.name]))

    @property
    def knows_sizes(self) -> bool:
        """Whether it is for arguments with the same sizes only, those included that are no numbers."""
        return self._signature.knows_sizes

    @property
    def _signature(self) -> Signature:
        assert self.captured.graph.signature is not None, "a captured graph knows its arguments"
        return self.captured.graph.signature

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run all stages, one after the other, as the model would."""
        values = self.inputs(args, kwargs)
        for stage in self.stages:
            taken = [values[v.name] for v in stage.inputs]
            values.update(zip(stage.outputs, stage.module(*taken), strict=True))
        return self.output(values)


def split_into_equal_size(stages: int) -> Callable[[GraphModule], Assignment]:
    """A policy for `pipeline`: as many stages, of about equal work, with little to send between them.

    Work is counted from shapes (see `Definition.work`), so that the same model is cut the same way everywhere.

    >>> import retrograd as rg
    >>> model = rg.nn.Sequential(*[rg.nn.Linear(4, 4) for _ in range(4)])
    >>> pipeline(model, (rg.ones(2, 4),), split_policy=split_into_equal_size(2)).num_stages
    2
    """
    return lambda captured: partition(captured.graph, stages)


def pipeline(
    module: Module,
    mb_args: Sequence[Any],
    mb_kwargs: Mapping[str, Any] | None = None,
    split_spec: Mapping[str, SplitPoint] | None = None,
    split_policy: Callable[[GraphModule], Assignment] | None = None,
) -> Pipe:
    """Capture one run of the module on a micro-batch and cut it into stages.

    The boundaries are those that `pipe_split()` marks in the model's code together with those of `split_spec`
    (submodule path -> SplitPoint), or else those that `split_policy` finds.  The module itself is not changed.

    Raises ValueError for a policy together with a spec or with marks in the code and for a kind that is no
    SplitPoint, AttributeError for a path that does not exist.
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError("pipeline: give split_spec or split_policy, not both")
    with _marked(module, split_spec or {}):
        captured = trace(module, *mb_args, **(mb_kwargs or {}))
    if split_policy is None:
        return Pipe(captured, cut(captured, _assignment(captured.graph)))
    if any(node.target is marker for node in captured.graph.nodes):
        raise ValueError(
            "pipeline: the model's code marks stages with pipe_split(), and split_policy would ignore them; "
            "remove the marks or the policy"
        )
    return Pipe(captured, cut(captured, split_policy(captured)))


@contextmanager
def _marked(module: Module, split_spec: Mapping[str, SplitPoint]) -> Iterator[None]:
    """Boundaries before and after submodules, for as long as the block lasts."""
    for path, point in split_spec.items():
        if not isinstance(point, SplitPoint):
            raise ValueError(f"split_spec[{path!r}]: expected SplitPoint.BEGINNING or SplitPoint.END, got {point!r}")
    places = [(module.get_submodule(path), point) for path, point in split_spec.items()]
    handles = []
    try:
        for submodule, point in places:
            if point is SplitPoint.BEGINNING:
                handles.append(submodule.register_forward_pre_hook(lambda module, args: pipe_split()))
            else:
                handles.append(submodule.register_forward_hook(lambda module, args, output: pipe_split()))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _assignment(graph: Graph) -> dict[Node, int]:
    """The stage of every operator: the number of boundaries before it."""
    stage_of, stage = {}, 0
    for node in graph.nodes:
        if node.op == "call_function":
            stage += node.target is marker
            stage_of[node] = stage
    return stage_of


def cut(captured: GraphModule, stage_of: Assignment) -> list[PipelineStage]:
    """The stages of a captured model.  Values go straight from the stage that makes them to those that use them.

    The model's outputs are those of the last stage; what an earlier stage made of them passes through it.
    """
    _check_assignment(captured.graph, stage_of)
    count = max(stage_of.values(), default=0) + 1
    parts = [_Part(captured, stage_of, index) for index in range(count)]
    for node in captured.graph.nodes:
        if node.op == "call_function" and node.target is not marker:
            parts[stage_of[node]].add(node)
    for node in captured.graph.output_node().all_input_nodes:
        parts[-1].take(node)
    for part in parts:
        part.finish(parts[-1])
    return [part.stage() for part in parts]


def _check_assignment(graph: Graph, stage_of: Assignment) -> None:
    """Every operator has a stage, none comes before what it uses, and no stage is empty; else a ValueError."""
    for node in graph.find_nodes(op="call_function"):
        if node not in stage_of:
            raise ValueError(f"the split gives no stage to {node.name}")
        for used in node.all_input_nodes:
            if stage_of.get(used, 0) > stage_of[node]:
                raise ValueError(
                    f"the split puts {node.name} into stage {stage_of[node]}, but what it uses, {used.name}, into "
                    f"stage {stage_of[used]}"
                )
    found = sorted(set(stage_of.values()))
    if found != list(range(len(found))):
        raise ValueError(f"the split must number its stages 0, 1, ... without gaps, got {found}")


class _Part:
    """A stage in the making: its graph, and what it takes and gives."""

    def __init__(self, captured: GraphModule, stage_of: Assignment, index: int) -> None:
        self.captured = captured
        self.stage_of = stage_of
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
        elif node.op == "call_function" and self.stage_of[node] != self.index:
            self.taken[node] = Value(node.name, self.stage_of[node])

    def finish(self, last: "_Part") -> None:
        """Settle what the stage returns: the model's outputs, or what later stages use."""
        if self is last:
            self.returned = list(self.captured.graph.output_node().all_input_nodes)
        else:
            self.returned = [node for node in self.body if self._is_used_later(node)]

    def _is_used_later(self, node: Node) -> bool:
        return any(user.op == "output" or self.stage_of[user] != self.index for user in node.users)

    def stage(self) -> PipelineStage:
        """The finished stage."""
        graph, here = Graph(), {}
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
