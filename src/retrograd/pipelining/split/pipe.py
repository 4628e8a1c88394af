"""Turn a model into stages: capture one run, cut the graph, find the loss."""

import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from retrograd.fx import Graph, GraphModule, Node, Signature, map_nodes, trace
from retrograd.nn import Module
from retrograd.pipelining.runtime.stage import PipelineStage
from retrograd.pipelining.split.backward_graph import pipe_graph, submodule_name
from retrograd.pipelining.split.cut_graph import Assignment, check_assignment, cut
from retrograd.pipelining.split.devices import place
from retrograd.pipelining.split.loss import find_loss
from retrograd.pipelining.split.markers import Spec, marked, marker
from retrograd.pipelining.split.mutations import make_explicit, place_writes, result_of, signature_of
from retrograd.pipelining.split.partition import partition
from retrograd.pipelining.split.shared_parameters import MultiUseParamSpec, owners, replicated

PACKAGE = __name__.partition(".")[0]  # not by file, since file names of compiled modules are relative
Policy = Callable[[GraphModule], Assignment]


class PipeInfo(NamedTuple):
    """A summary of a pipe: the graph that calls its stages, their number, and whether it has a backward part."""

    graph: Graph
    num_stages: int
    has_loss_and_backward: bool


class Pipe:
    """A model cut into stages.  Can be called like the model; the stages share its parameters.

    `captured` is the model before the cut.  `split_gm` has the stages as submodules and a graph that calls them;
    if the model returns its loss, the graph includes the backward pass: see `DetachExecutor`, which runs it.
    `replicated_params` are the parameters that several stages have: for each, its name by stage.

    >>> import retrograd as rg
    >>> from retrograd.pipelining import SplitPoint
    >>> model = rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.ReLU(), rg.nn.Linear(8, 2))
    >>> pipe = pipeline(model, (rg.ones(3, 4),), split_spec={"2": SplitPoint.BEGINNING})
    >>> pipe.num_stages, pipe(rg.ones(3, 4)).shape
    (2, (3, 2))
    """

    def __init__(self, captured: GraphModule, stages: Sequence[PipelineStage], loss: Node | None = None) -> None:
        self.captured = captured
        self.stages = list(stages)
        self.has_loss_and_backward = loss is not None
        self.loss_name = None if loss is None else loss.name
        modules = {submodule_name(stage.index): stage.module for stage in stages}
        self.split_gm = GraphModule(modules, pipe_graph(captured, stages, loss))
        self.replicated_params = replicated([self.get_stage_module(stage.index) for stage in stages])

    @staticmethod
    def from_tracing(
        mod: Module,
        example_args: Sequence[Any],
        example_kwargs: Mapping[str, Any] | None = None,
        split_policy: Policy | None = None,
        **options: Any,
    ) -> "Pipe":
        """Capture a module on examples and cut it: at marks and annotations, or by the policy.

        The other options and errors are those of `pipeline`.

        >>> import retrograd as rg
        >>> model = rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.Linear(8, 2))
        >>> Pipe.from_tracing(model, (rg.ones(3, 4),), split_policy=split_into_equal_size(2)).num_stages
        2
        """
        return pipeline(mod, example_args, example_kwargs, split_policy=split_policy, **options)

    @property
    def num_stages(self) -> int:
        """Return the number of stages."""
        return len(self.stages)

    def get_stage_module(self, stage_idx: int) -> Any:
        """Return the module of one stage; ValueError if there is no such stage."""
        if not isinstance(stage_idx, int) or stage_idx not in range(self.num_stages):
            raise ValueError(f"stage {stage_idx!r} does not exist: there are stages 0 to {self.num_stages - 1}")
        return self.stages[stage_idx].module

    def build_stage(self, stage_index: int, device: Any = "cpu", group: Any = None) -> PipelineStage:
        """Return one stage, on a device, for the ranks of a group, independent of the pipe and other stages.

        Raises ValueError if there is no such stage, and RuntimeError if there is no such device.
        """
        module = place(self.get_stage_module(stage_index), device)
        known = self.stages[stage_index]
        options = {"num_stages": self.num_stages, "device": device, "group": group}
        return PipelineStage(module, stage_index, known.inputs, known.outputs, **options)

    def info(self) -> PipeInfo:
        """Return the graph that calls the stages, their number, and whether the graph has a backward part."""
        return PipeInfo(self.split_gm.graph, self.num_stages, self.has_loss_and_backward)

    def carried(self) -> dict[tuple[int, int], list[str]]:
        """Return the names of the values on each edge (from_stage, to_stage) of the stage graph."""
        edges: dict[tuple[int, int], list[str]] = {}
        for stage in self.stages:
            for value in stage.inputs:
                if value.stage is not None:
                    edges.setdefault((value.stage, stage.index), []).append(value.name)
        return edges

    def print_readable(self) -> str:
        """Print and return every stage, and the graph that calls them, as Python code."""
        parts = [(str(stage), self.get_stage_module(stage.index)) for stage in self.stages]
        text = "\n".join(f"# {title}\n{module.code}" for title, module in [*parts, ("The pipe", self.split_gm)])
        print(text)
        return text

    def inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tensors among the model's arguments by name, to run the stages separately.

        Raises ValueError for arguments unlike those of the capture, and RuntimeError for a model
        that writes to its inputs, which is supported only when the whole pipe is called.
        """
        written = ", ".join(repr(mutation.target) for mutation in self._signature.mutations)
        if written:
            raise RuntimeError(
                f"pipeline: the model writes to its input {written}; a Pipe that is called does so, stages that "
                f"run by themselves, on micro-batches, do not: clone in the model what it writes to"
            )
        return self._named(self._signature.flatten(tuple(args), dict(kwargs)))

    def output(self, values: Mapping[str, Any]) -> Any:
        """Return the model's output from the outputs of the last stage by name."""
        return self._signature.restore(self._returned(values))

    def _named(self, tensors: Sequence[Any]) -> dict[str, Any]:
        names = [node.name for node in self.captured.graph.find_nodes(op="placeholder")]
        return dict(zip(names, tensors, strict=True))

    def _returned(self, values: Mapping[str, Any]) -> Any:
        return map_nodes(self.captured.graph.output_node().args[0], lambda node: values[node.name])

    @property
    def knows_sizes(self) -> bool:
        """Whether it accepts only arguments with the same sizes, including symbolic ones."""
        return self._signature.knows_sizes

    @property
    def _signature(self) -> Signature:
        return signature_of(self.captured)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run all stages in order, as the model would; a loss is returned without a backward pass.

        The model's writes to its inputs happen after all stages have run.
        """
        inputs = self._signature.flatten(args, kwargs)
        values = self._named(inputs)
        for stage in self.stages:
            taken = [values[v.name] for v in stage.inputs]
            values.update(zip(stage.outputs, stage.module(*taken), strict=True))
        return self._signature.finish(self._returned(values), inputs, self.captured)


def split_into_equal_size(stages: int) -> Policy:
    """Return a policy for `pipeline` that makes stages of about equal work with little communication.

    Work is estimated from shapes (see `Definition.work`), so that the same model is cut the same way everywhere.

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
    split_spec: Spec | None = None,
    split_policy: Policy | None = None,
    *,
    multi_use_param_spec: MultiUseParamSpec | None = None,
    loss_spec: Any = None,
) -> Pipe:
    """Capture one run of the module on a microbatch and cut it into stages.

    The boundaries are those that `pipe_split()` marks in the model's code together with those of `split_spec`
    (submodule path -> SplitPoint) and of `annotate_split_points`, or else those of `split_policy`.  The module
    itself is not changed.

    multi_use_param_spec: how to treat parameters that several stages use, see `MultiUseParameterConfig`.
    loss_spec: marks the loss in the output, see `find_loss`; None: the module's own `loss_spec`, or
     the entry "loss" if the output is a dict.

    Raises ValueError for a policy together with a spec or with marks in the code and for anything but a
    SplitPoint, AttributeError for a path that does not exist, TypeError for arguments of another type, and
    RuntimeError for a model that cannot be captured or that writes in a way stages cannot, and for a loss that differs
    from the spec.
    """
    if not isinstance(module, Module):
        raise TypeError(f"pipeline: expected a Module, got {type(module).__name__}")
    if not isinstance(mb_args, (tuple, list)):
        raise TypeError(f"pipeline: mb_args must be a tuple or list of arguments, got {type(mb_args).__name__}")
    if split_spec is not None and split_policy is not None:
        raise ValueError("pipeline: give split_spec or split_policy, not both")
    captured = _capture(module, mb_args, mb_kwargs or {}, split_spec or {})
    return _assemble(captured, split_policy, multi_use_param_spec, _loss_spec(module, loss_spec))


def _capture(module: Module, args: Sequence[Any], kwargs: Mapping[str, Any], split_spec: Spec) -> GraphModule:
    with marked(module, split_spec):
        try:
            return trace(module, *args, **kwargs)
        except Exception as cause:
            place = _line_in(cause.__traceback__)
            raise RuntimeError(
                f"pipeline: {type(module).__name__} could not be captured{f' at {place}' if place else ''}: "
                f"{type(cause).__name__}: {cause}\nLikely causes:\n"
                "  - the model does not run on these arguments; try module(*mb_args, **mb_kwargs)\n"
                "  - the arguments hold NumPy arrays; pass tensors, see rg.as_tensor\n"
                "  - the code computes with NumPy or another library in between; use retrograd's operators, or make an "
                "operator of it\n"
                "  - the code changes a tensor's shape, or something else that a graph can't hold"
            ) from cause


def _line_in(traceback: TracebackType | None) -> str:
    """Return the innermost line of a traceback outside this package and Python's standard library."""
    place = ""
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_globals.get("__name__", "").partition(".")[0] not in (PACKAGE, *sys.stdlib_module_names):
            place = f"{frame.f_code.co_filename}:{traceback.tb_lineno} in {frame.f_code.co_name}"
        traceback = traceback.tb_next
    return place


def _loss_spec(module: Module, given: Any) -> Any:
    return getattr(module, "loss_spec", None) if given is None else given


def _assemble(
    captured: GraphModule, policy: Policy | None, multi_use: MultiUseParamSpec | None, loss_spec: Any
) -> Pipe:
    if policy is None:
        chosen: Assignment = _assignment(captured.graph)
    elif any(node.target is marker for node in captured.graph.nodes):
        raise ValueError(
            "pipeline: the model's code marks stages with pipe_split(), and split_policy would ignore them; "
            "remove the marks or the policy"
        )
    else:
        chosen = policy(captured)
    check_assignment(captured.graph, chosen)
    stage_of = dict(chosen)
    place_writes(make_explicit(captured), stage_of)
    stages = cut(captured, stage_of, owners(captured, stage_of, multi_use))
    return Pipe(captured, stages, find_loss(result_of(captured), loss_spec))


def _assignment(graph: Graph) -> dict[Node, int]:
    """Return the stage of every operator: the number of boundaries before it that have operators on both sides."""
    stage_of: dict[Node, int] = {}
    stage, begun, ended = 0, False, False
    for node in graph.find_nodes(op="call_function"):
        if node.target is marker:
            ended = begun
        else:
            stage, begun, ended = stage + ended, True, False
        stage_of[node] = stage
    return stage_of
