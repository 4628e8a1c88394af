"""A model cut into stages: the module that runs all stages, and returns single ones."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import optree

from retrograd.core.blocks import generator_block
from retrograd.foundation.own_attributes import stored_attributes
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.fx import Graph, GraphModule, map_nodes
from retrograd.fx.graph_module import extract, tensor_names
from retrograd.nn import Module
from retrograd.pipelining.runtime.executor import DetachExecutor
from retrograd.pipelining.split.capture import CaptureInput, Policy, Split, split_in_both_modes, split_once
from retrograd.pipelining.split.devices import move_to_device
from retrograd.pipelining.split.loss import find_loss
from retrograd.pipelining.split.markers import Spec
from retrograd.pipelining.split.modal_module import ModalGraphModule
from retrograd.pipelining.split.mutations import result_of, signature_of
from retrograd.pipelining.split.partition import partition
from retrograd.pipelining.split.pipe_stage import PipeStage, check_no_writes, read_ports, stage_calls, value_name
from retrograd.pipelining.split.shared_parameters import MultiUseParamSpec, replicated


class PipeInfo(NamedTuple):
    """A summary of a pipe: the graph that calls its stages, their number, and whether it has a backward part.

    graphs: the graph by mode, True for training, if there is more than one.
    """

    graph: Graph
    num_stages: int
    has_loss_and_backward: bool
    graphs: Mapping[bool, Graph] | None = None


class _TensorLink(NamedTuple):
    """A tensor's two owners, in a stage and in the pipe, and its name in both."""

    stage: Module
    pipe: Module
    name: str


class _PipeState(NamedTuple):
    """The content of a pipe."""

    split_gm: GraphModule
    stages: list[PipeStage]
    has_loss_and_backward: bool
    loss_spec: Any
    replicated: list[dict[int, str]]
    captured: GraphModule | None
    links: list[_TensorLink]


class Pipe(Module):
    """A model cut into stages: a module with the model's own parameters, buffers and names.

    split_gm: calls the stages, its submodules, in order; if `has_loss_and_backward`, its graph includes the backward
    pass, see `executor`.  loss_spec: marks the loss in the output, see `find_loss`; None: the entry "loss" of a dict.

    A call runs all stages and returns a tuple of the model's results, flat, as in PyTorch.  The stages share the
    model's parameters.  `train()` and `eval()` also choose what the stages do, if the model was captured for both.
    Several batch sizes run, unless the model computes with the size in a way that a graph cannot hold.

    `replicated_params` are the parameters that several stages have: for each, its name by stage.

    >>> import retrograd as rg
    >>> from retrograd.pipelining import SplitPoint, pipeline
    >>> model = rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.Dropout(0.5), rg.nn.Linear(8, 2))
    >>> pipe = pipeline(model, (rg.ones(3, 4),), split_spec={"2": SplitPoint.BEGINNING})
    >>> [out.shape for out in pipe(rg.ones(7, 4))], list(pipe.state_dict()) == list(model.state_dict())
    ([(7, 2)], True)
    """

    def __init__(
        self, split_gm: GraphModule, num_stages: int, has_loss_and_backward: bool, loss_spec: Any = None
    ) -> None:
        super().__init__()
        stages = _stages_of(split_gm)
        if len(stages) != num_stages:
            raise ValueError(f"Pipe: num_stages is {num_stages}, but the graph calls {len(stages)} stages")
        shared = replicated([stage.submod for stage in stages])
        loss = bool(has_loss_and_backward)
        # One attribute: the model's own names, whatever they are, are attributes of the pipe, too.
        stored_attributes(self)["_state"] = _PipeState(split_gm, stages, loss, loss_spec, shared, None, [])
        for stage in stages:
            self._register_tensors(stage.submod)
        self._link_tensors()
        self.training = split_gm.training

    @staticmethod
    def of_split(split: Split) -> "Pipe":
        """Return the pipe of a captured model, with all its tensors in their order, also those that no stage uses."""
        pipe = Pipe(split.split_gm, len(stage_calls(split.split_gm.graph)), split.has_loss, split.loss_spec)
        for name in list(pipe._kinds):
            del stored_attributes(pipe)[name], pipe._kinds[name]
        pipe._register_tensors(split.captured)
        stored_attributes(pipe)["_state"] = pipe._state._replace(captured=split.captured, links=[])
        pipe._link_tensors()
        return pipe

    @staticmethod
    @suggest_keywords
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

    def _register_tensors(self, root: Module) -> None:
        """Register the tensors of a module, under their qualified names."""
        _merge(self, extract(root, tensor_names(root)))

    def _link_tensors(self) -> None:
        """Find, for every tensor of a stage, the owner in the pipe's own tree."""
        for stage in self._state.stages:
            for path, owner in stage.submod.named_modules():
                for name, kind in owner._kinds.items():
                    if kind != "module":
                        self._state.links.append(_TensorLink(owner, self.get_submodule(path), name))

    # ---------------------------------------------------------------------------------------------- attributes

    @property
    def split_gm(self) -> GraphModule:
        """The module whose graph calls the stages, `submod_pp_0`, `submod_pp_1`, ..., in the pipe's mode."""
        self._sync_mode()
        return self._state.split_gm

    def _sync_mode(self) -> None:
        """Put the graph and the stages into the mode of the pipe."""
        if self._state.split_gm.training != self.training:
            self._state.split_gm.train(self.training)

    @property
    def stages(self) -> list[PipeStage]:
        """The stages in order."""
        return self._state.stages

    @property
    def num_stages(self) -> int:
        """The number of stages."""
        return len(self._state.stages)

    @property
    def has_loss_and_backward(self) -> bool:
        """Return whether the graph includes the backward pass from a loss."""
        return self._state.has_loss_and_backward

    @property
    def loss_spec(self) -> Any:
        """The specification of the loss in the output."""
        return self._state.loss_spec

    @property
    def loss_name(self) -> str | None:
        """The name of the loss among the outputs of the last stage; None without a loss."""
        if not self.has_loss_and_backward:
            return None
        found = find_loss(result_of(self.split_gm), self.loss_spec)
        assert found is not None, "a pipe with a loss returns it"
        return value_name(found)

    @property
    def replicated_params(self) -> list[dict[int, str]]:
        """The parameters that several stages have: for each, its name by stage."""
        return self._state.replicated

    @property
    def captured(self) -> GraphModule | None:
        """The model before the cut, in the mode in which it was captured; None for a pipe made from a graph."""
        return self._state.captured

    @property
    def executor(self) -> DetachExecutor:
        """A new interpreter that runs the graph in one process, with its backward pass."""
        return DetachExecutor(self.split_gm)

    # ------------------------------------------------------------------------------------------------- running

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run all stages in order and return a tuple of the model's results; a loss, without a backward pass.

        The model's writes to its inputs happen after all stages have run.
        """
        split_gm = self.split_gm
        signature = signature_of(split_gm)
        inputs = signature.flatten(args, kwargs)
        values = self._by_placeholder(inputs)
        with self._own_tensors_in_stages():
            for stage in self._state.stages:
                taken = [values[v.name] for v in stage.inputs]
                values.update(zip(stage.outputs, stage.submod(*taken), strict=True))
        result: Any = signature.finish(self._returned(values), inputs, split_gm)
        return tuple(_leaves(result))

    @generator_block
    def _own_tensors_in_stages(self) -> Iterator[None]:
        """Let the stages use this module's tensors while the block runs, where they differ: in `functional_call`."""
        other = [link for link in self._state.links if _is_out_of_date(link)]
        before = [stored_attributes(link.stage)[link.name] for link in other]
        try:
            _copy_to_stages(other)
            yield
        finally:
            for link, value in zip(other, before, strict=True):
                stored_attributes(link.stage)[link.name] = value

    def named_inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tensors among the model's arguments by name, to run the stages separately.

        Raises ValueError for arguments unlike those of the capture, and RuntimeError for a model
        that writes to its inputs, which is supported only when the whole pipe is called.
        """
        signature = signature_of(self.split_gm)
        check_no_writes(signature)
        return self._by_placeholder(signature.flatten(tuple(args), dict(kwargs)))

    def restored_output(self, values: Mapping[str, Any]) -> Any:
        """Return the model's result from the outputs of the last stage by name."""
        return signature_of(self.split_gm).restore(self._returned(values))

    def _by_placeholder(self, tensors: Sequence[Any]) -> dict[str, Any]:
        names = [node.name for node in self.split_gm.graph.find_nodes(op="placeholder")]
        return dict(zip(names, tensors, strict=True))

    def _returned(self, values: Mapping[str, Any]) -> Any:
        return map_nodes(self.split_gm.graph.output_node().args[0], lambda node: values[value_name(node)])

    @property
    def knows_sizes(self) -> bool:
        """Return whether it accepts only arguments with the same sizes, including symbolic ones."""
        return signature_of(self.split_gm).knows_sizes

    def carried(self) -> dict[tuple[int, int], list[str]]:
        """Return the names of the values on each edge (from_stage, to_stage) of the stage graph."""
        return {edge: list(names) for edge, names in self._state.stages[0].carried().items()}

    # ---------------------------------------------------------------------------------------- parts and texts

    def get_stage_module(self, stage_idx: int) -> Any:
        """Return the module of one stage; ValueError if there is no such stage."""
        stages = self._state.stages
        if not isinstance(stage_idx, int) or stage_idx not in range(len(stages)):
            raise ValueError(f"stage {stage_idx!r} does not exist: there are stages 0 to {len(stages) - 1}")
        self._sync_mode()
        _copy_to_stages([link for link in self._state.links if _is_out_of_date(link)])
        return stages[stage_idx].submod

    def build_stage(self, stage_index: int, device: Any = "cpu", group: Any = None) -> PipeStage:
        """Return one stage, on a device, for the ranks of a process group, independent of the pipe and other stages.

        Raises ValueError if there is no such stage, and RuntimeError if there is no such device.
        """
        return build_stage(self.get_stage_module(stage_index), stage_index, self.info(), device, group)

    def info(self) -> PipeInfo:
        """Return the graph that calls the stages, their number, and whether the graph has a backward part."""
        module = self.split_gm
        graphs = module.graphs if isinstance(module, ModalGraphModule) else None
        return PipeInfo(module.graph, self.num_stages, self.has_loss_and_backward, graphs)

    def print_readable(self) -> str:
        """Print and return every stage, and the graph that calls them, as Python code."""
        parts = [(str(stage), self.get_stage_module(stage.stage_index)) for stage in self._state.stages]
        text = "\n".join(f"# {title}\n{module.code}" for title, module in [*parts, ("The pipe", self.split_gm)])
        print(text)
        return text

    def __repr__(self) -> str:
        return repr(self.split_gm)

    def __str__(self) -> str:
        return str(self.split_gm)


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
    branches: Sequence[Sequence[Any]] = (),
) -> Pipe:
    """Capture a module on a microbatch, in training and in evaluation mode, and cut it into stages.

    The boundaries are those that `pipe_split()` marks in the model's code together with those of `split_spec`
    (submodule path -> SplitPoint) and of `annotate_split_points`, or else those of `split_policy`: a function that
    inserts calls of `pipe_split` into the captured GraphModule and returns it, or that returns the stage of every
    operator.  The module itself is not changed.

    The size of dimension 0 of all tensors that have the same one may differ later, if the model permits it.

    multi_use_param_spec: how to treat parameters that several stages use, see `MultiUseParameterConfig`.
    loss_spec: marks the loss in the output, see `find_loss`; None: the module's own `loss_spec`, or
     the entry "loss" if the output is a dict.
    branches: microbatches for which code as `if x.sum() > 0` takes other branches, each as `mb_args`.  Every branch is
     in one stage, as a `cond` node.  Values for which there is no branch raise RuntimeError with the line.

    Raises ValueError for a policy together with a spec or with marks in the code and for anything but a
    SplitPoint, AttributeError for a path that does not exist, TypeError for arguments of another type, and
    RuntimeError for a model that cannot be captured or that writes in a way stages cannot, and for a loss that differs
    from the spec.
    """
    capture_input = _make_capture_input(module, mb_args, mb_kwargs or {}, split_spec, split_policy, branches)
    return Pipe.of_split(split_in_both_modes(capture_input, split_policy, multi_use_param_spec, loss_spec))


def split_as_traced(
    module: Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    split_spec: Spec | None = None,
    split_policy: Policy | None = None,
    *,
    multi_use_param_spec: MultiUseParamSpec | None = None,
    loss_spec: Any = None,
) -> Pipe:
    """Return the pipe of `pipeline` for these sizes and the modules' current modes only: from one trace."""
    capture_input = _make_capture_input(module, args, kwargs, split_spec, split_policy)
    return Pipe.of_split(split_once(capture_input, split_policy, multi_use_param_spec, loss_spec))


def _make_capture_input(
    module: Any, args: Any, kwargs: Mapping[str, Any], split_spec: Any, split_policy: Any, branches: Any = ()
) -> CaptureInput:
    """Return the module and its arguments; raise errors for other types, and for a spec together with a policy."""
    if not isinstance(module, Module):
        raise TypeError(f"pipeline: expected a Module, got {type(module).__name__}")
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"pipeline: mb_args must be a tuple or list of arguments, got {type(args).__name__}")
    if split_spec is not None and split_policy is not None:
        raise ValueError("pipeline: give split_spec or split_policy, not both")
    return CaptureInput(module, tuple(args), dict(kwargs), split_spec or {}, tuple(map(tuple, branches)))


def build_stage(
    stage_module: Any, stage_index: int, pipe_info: PipeInfo, device: Any = "cpu", group: Any = None
) -> PipeStage:
    """Return the stage of a module from `Pipe.get_stage_module`, and of `Pipe.info()`, on a device.

    group: the process group that runs the pipeline; None: the default group.

    Raises ValueError if there is no such stage, and RuntimeError if there is no such device.
    """
    if not isinstance(stage_index, int) or stage_index not in range(pipe_info.num_stages):
        raise ValueError(f"stage {stage_index!r} does not exist: there are stages 0 to {pipe_info.num_stages - 1}")
    graphs = pipe_info.graphs or {stage_module.training: pipe_info.graph}
    ports = {mode: read_ports(graph)[stage_index] for mode, graph in graphs.items()}
    return PipeStage(move_to_device(stage_module, device), stage_index, pipe_info.num_stages, ports, device, group)


def _stages_of(split_gm: GraphModule) -> list[PipeStage]:
    """Return the stages that a graph calls, with their ports in each mode."""
    graphs = split_gm.graphs if isinstance(split_gm, ModalGraphModule) else {split_gm.training: split_gm.graph}
    ports = {mode: read_ports(graph) for mode, graph in graphs.items()}
    calls = stage_calls(split_gm.graph)
    modules = [split_gm.get_submodule(str(call.target)) for call in calls]
    return [
        PipeStage(module, index, len(modules), {mode: found[index] for mode, found in ports.items()})
        for index, module in enumerate(modules)
    ]


def _merge(module: Module, other: Module) -> None:
    """Register the members of another module, including those of its submodules, where there are none yet."""
    for name, kind in other._kinds.items():
        value, known = stored_attributes(other)[name], stored_attributes(module).get(name)
        if isinstance(value, Module) and isinstance(known, Module):
            _merge(known, value)
        elif name not in module._kinds:
            if callable(getattr(type(module), name, None)):
                raise RuntimeError(f"Pipe: the model's {name!r} would replace Pipe.{name}(); rename it in the model")
            # Not by setattr: a property of Pipe may have the same name, and then is the attribute.
            module._kinds[name] = kind
            stored_attributes(module)[name] = value


def _leaves(result: Any) -> Iterator[Any]:
    """Yield the results of a model in the order in which it returns them; those of dicts, too, unlike optree."""
    if optree.tree_is_leaf(result, none_is_leaf=True):
        yield result
    else:
        members = result.values() if isinstance(result, Mapping) else optree.tree_flatten_one_level(result)[0]
        for member in members:
            yield from _leaves(member)


def _is_out_of_date(link: _TensorLink) -> bool:
    return stored_attributes(link.stage)[link.name] is not stored_attributes(link.pipe).get(link.name)


def _copy_to_stages(links: Sequence[_TensorLink]) -> None:
    """Give the stages the pipe's own tensors."""
    for link in links:
        stored_attributes(link.stage)[link.name] = stored_attributes(link.pipe)[link.name]
