"""Capture a model, in its modes and for its sizes, and cut the graph into stages."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType, TracebackType
from typing import Any, NamedTuple

from retrograd.core import Tensor, registry
from retrograd.core.aval import symbolic
from retrograd.core.blocks import generator_block
from retrograd.export.branches import merge_branches
from retrograd.export.dynamic_shapes import Dim, DynamicSignature, InputDim, common_sizes, linear
from retrograd.export.example_inputs import Example
from retrograd.export.shape_inference import ShapeInference
from retrograd.fx import Graph, GraphModule, Node, trace
from retrograd.fx.signature import Constant, Input, Signature
from retrograd.fx.subgraph import SubGraph
from retrograd.nn import Module
from retrograd.pipelining.split.backward_graph import pipe_graph, submodule_name
from retrograd.pipelining.split.cut_graph import Assignment, StagePart, check_assignment, check_order, cut
from retrograd.pipelining.split.local_sizes import read_sizes_locally
from retrograd.pipelining.split.loss import find_loss
from retrograd.pipelining.split.markers import Spec, insert_markers, marker, pipe_split
from retrograd.pipelining.split.modal_module import ModalGraphModule
from retrograd.pipelining.split.mutations import assign_writes, make_explicit, result_of, signature_of
from retrograd.pipelining.split.partition import assign_by_parameters
from retrograd.pipelining.split.shared_parameters import MultiUseParamSpec, StagesByTensor, owners, owners_elsewhere

PACKAGE = __name__.partition(".")[0]  # not by file, since file names of compiled modules are relative
BATCH = "batch"  # the name of the varying size
TRIALS = 2  # other sizes at which the model is traced: sizes in it are linear in the batch, and the second one checks
Policy = Callable[[GraphModule], "Assignment | GraphModule"]


class Split(NamedTuple):
    """A captured model, and the module whose graph calls its stages."""

    captured: GraphModule
    split_gm: GraphModule
    has_loss: bool
    loss_spec: Any


def split_in_both_modes(
    capture_input: "CaptureInput", policy: Policy | None, multi_use: MultiUseParamSpec | None, loss_spec: Any
) -> Split:
    """Capture a module in training and in evaluation mode, for any batch size, and cut it into stages."""
    sized = SizedProgram(capture_input)
    first = cut_with_policy(sized.program, policy)
    present = capture_input.module.training
    cuts = {present: first._replace(program=sized.with_free_batch())}
    other = _cut_in_other_mode(capture_input, first, policy)
    if other is not None:
        cuts[not present] = cuts[present] if other is first else other
    return _build_split(cuts, present, multi_use, _loss_spec(capture_input.module, loss_spec))


def split_once(
    capture_input: "CaptureInput", policy: Policy | None, multi_use: MultiUseParamSpec | None, loss_spec: Any
) -> Split:
    """Capture a module for these sizes and the modules' current modes only, and cut it into stages."""
    return split_cut(capture_input.module, cut_with_policy(capture_input.trace_module(), policy), multi_use, loss_spec)


def split_cut(module: Module, found: "Cut", multi_use: MultiUseParamSpec | None, loss_spec: Any) -> Split:
    """Return the stages of a module's captured program, for its current mode."""
    return _build_split({module.training: found}, module.training, multi_use, _loss_spec(module, loss_spec))


class CaptureInput(NamedTuple):
    """A module and the arguments of one microbatch, with the boundaries to mark.

    branches: other positional arguments, for which the module takes other branches on values.
    """

    module: Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    split_spec: Spec
    branches: tuple[tuple[Any, ...], ...] = ()

    def trace_module(self) -> GraphModule:
        """Return the module as it runs on these arguments, in its current mode; RuntimeError if it cannot."""
        with insert_markers(self.module, self.split_spec):
            try:
                captures = [trace(self.module, *args, **self.kwargs) for args in (self.args, *self.branches)]
            except Exception as cause:
                raise _capture_error(self.module, cause) from cause
        return merge_branches(captures)

    def batch_inferences(self) -> list[ShapeInference]:
        """Return the shape inference of each branch for other sizes of dimension 0; none without a batch."""
        found = [self._batch_inference(args) for args in (self.args, *self.branches)]
        return [inference for inference in found if inference is not None] if None not in found else []

    def _batch_inference(self, args: tuple[Any, ...]) -> ShapeInference | None:
        """Return the shape inference for other sizes of dimension 0; None if no argument has a batch."""
        try:
            example = Example(self.module, args, self.kwargs)
        except TypeError:  # not the arguments of the module, as the trace will say
            return None
        tensors = {name: x for name, x in example.tensors().items() if x.ndim and symbolic(x.shape) is None}
        sizes = {x.shape[0] for x in tensors.values()}
        if not sizes or 0 in sizes:
            return None
        size = next(iter(tensors.values())).shape[0]
        places = {InputDim(name, 0): linear(BATCH) for name, x in tensors.items() if x.shape[0] == size}
        return ShapeInference(self.module, example, places, {BATCH: Dim(BATCH).range}, TRIALS)


class FixedSignature(Signature):
    """A signature for the example's sizes, with the reason why the code cannot be captured for other batch sizes."""

    reason: str

    @classmethod
    def of(cls, known: Signature, reason: str) -> "FixedSignature":
        """Return the signature of an example, with the error of the capture for other sizes."""
        made = cls.__new__(cls)
        made.__dict__.update(known.__dict__)
        made.reason = reason.removeprefix("export: ").partition(" Narrow the range")[0]
        return made

    def check(self, leaf: Any, known: Input | Constant) -> None:
        """Raise ValueError if a leaf differs from the example's, with the reason if it differs in the batch size."""
        try:
            super().check(leaf, known)
        except ValueError as error:
            if isinstance(known, Input) and isinstance(leaf, Tensor) and leaf.shape[1:] == known.aval.shape[1:]:
                error.add_note(f"the module was captured for this batch size only, because {self.reason}")
            raise


class SizedProgram:
    """A module as captured in its current mode, for these sizes or for any batch size."""

    def __init__(self, capture_input: CaptureInput) -> None:
        self._capture_input = capture_input
        self._inferences = capture_input.batch_inferences()
        self.program = self._trace()
        _check_marks(self.program.graph)

    def _trace(self) -> GraphModule:
        """Return the program for these sizes: the first traces of the inferences, so that none is made twice."""
        if self._inferences:
            try:
                with insert_markers(self._capture_input.module, self._capture_input.split_spec):
                    captures = [inference.first().module() for inference in self._inferences]
            except Exception:  # the code does not run on sizes that are recorded
                self._inferences = []
            else:
                return merge_branches(captures)
        return self._capture_input.trace_module()

    def with_free_batch(self) -> GraphModule:
        """Return the program for any size of dimension 0, if the module permits it."""
        if not self._inferences:
            return self.program
        try:
            with insert_markers(self._capture_input.module, self._capture_input.split_spec):
                captures = [inference.infer() for inference in self._inferences]
                free = merge_branches([capture for capture, _ in captures])
                found = common_sizes([sizes for _, sizes in captures])
        except Exception as error:  # the code treats some sizes differently: the graph is for these sizes only
            signature = FixedSignature.of(signature_of(self.program), str(error))
            self.program.graph.signature = signature
            return self.program
        free.graph.signature = DynamicSignature.of(signature_of(free), found)
        return free


class Cut(NamedTuple):
    """A captured program, the stage of every operator by name, and the number of stages, some of which may be empty.

    tensor_stages: the stages that have a parameter or buffer in other captures, by its qualified name.  Stages that use
    it, but do not have it there, receive it.
    """

    program: GraphModule
    stages: dict[str, int]
    num_stages: int
    tensor_stages: StagesByTensor = MappingProxyType({})

    @staticmethod
    def of(program: GraphModule, stage_of: Assignment) -> "Cut":
        """Return the cut of a program by the stage of every operator."""
        by_name = {node.name: stage for node, stage in stage_of.items()}
        return Cut(program, by_name, max(by_name.values(), default=0) + 1)

    def assignment(self) -> dict[Node, int]:
        """Return the stage of every operator; sizes, which no policy assigns, go to the stages of their tensors."""
        stage_of: dict[Node, int] = {}
        for node in self.program.graph.find_nodes(op="call_function"):
            earliest = max((stage_of.get(used, 0) for used in node.all_input_nodes), default=0)
            stage_of[node] = self.stages.get(node.name, earliest)
        return stage_of


def cut_with_policy(captured: GraphModule, policy: Policy | None) -> Cut:
    """Return the cut at the marks of the code, or by the policy."""
    if policy is None:
        return Cut.of(captured, _stages_between_markers(captured.graph))
    if any(node.target is marker for node in captured.graph.nodes):
        raise ValueError(
            "pipeline: the model's code marks stages with pipe_split(), and split_policy would ignore them; "
            "remove the marks or the policy"
        )
    assignment = _apply_policy(policy, captured)
    check_assignment(captured.graph, assignment)
    return Cut.of(captured, assignment)


def _apply_policy(policy: Policy, captured: GraphModule) -> Assignment:
    """Return the stage of every operator that a policy chooses, or marks by calls of `pipe_split`.

    Raises ValueError for a policy that returns another graph than the captured one.
    """
    assignment = policy(captured)
    if not isinstance(assignment, GraphModule):
        return assignment
    if assignment.graph is not captured.graph:
        raise ValueError("split_policy: insert pipe_split() into the graph of the module that is given, and return it")
    marks = [node for node in assignment.graph.find_nodes(op="call_function") if node.target is pipe_split]
    for node in marks:
        node.target = marker
    found = _stages_between_markers(assignment.graph)
    for node in marks:  # the program is compared with traces of the module, which have none
        del found[node]
        assignment.graph.erase_node(node)
    return found


def _check_marks(graph: Graph) -> None:
    """Raise ValueError for a boundary that only some branches have."""
    for node in graph.nodes:
        for value in node.kwargs.values():
            if isinstance(value, SubGraph):
                _check_marks(value.graph)
                if any(inner.target is marker for inner in value.graph.nodes):
                    raise ValueError(
                        f"pipeline: pipe_split() is in a branch on a value, at {node.meta.get('stack_trace')}, and "
                        f"the operators of a branch are in one stage; mark boundaries before and after it"
                    )


def _stages_between_markers(graph: Graph) -> dict[Node, int]:
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


def _cut_in_other_mode(capture_input: CaptureInput, first: Cut, policy: Policy | None) -> Cut | None:
    """Return the cut of the model in its other mode.

    Return `first` if the program is the same, and None if it cannot be cut in the same way.
    """
    with _in_mode(capture_input.module, not capture_input.module.training):
        try:
            sized = SizedProgram(capture_input)
            if _same_program(first.program, sized.program):
                return first
            found = cut_with_policy(sized.program, None) if policy is None else _cut_like(sized.program, first, policy)
            if found.num_stages == first.num_stages:
                return found._replace(program=sized.with_free_batch())
        except (RuntimeError, ValueError, TypeError, NotImplementedError):
            pass  # it runs in one mode only, as with batches that batch norm refuses
    return None


def _cut_like(static: GraphModule, first: Cut, policy: Policy) -> Cut:
    """Return the cut of another program of the same model, with each parameter in the stage that has it already."""
    found = assign_by_parameters(static.graph, stages_by_tensor(first))
    has_all_stages = set(found.values()) == set(range(first.num_stages))
    return Cut.of(static, found) if has_all_stages else cut_with_policy(static, policy)


def stages_by_tensor(found: Cut) -> dict[str, set[int]]:
    """Return the stages that use each parameter, buffer and constant, by its qualified name."""
    tensor_stages: dict[str, set[int]] = defaultdict(set)
    stage_of = found.assignment()
    for node in found.program.graph.find_nodes(op="get_attr"):
        tensor_stages[str(node.target)] |= {stage_of[user] for user in node.users if user in stage_of}
    return tensor_stages


@generator_block
def _in_mode(module: Module, training: bool) -> Iterator[None]:
    """Put a module into a mode while the block runs; restore the mode of each of its parts."""
    before = [(part, part.training) for part in module.modules()]
    try:
        module.train(training)
        yield
    finally:
        for part, mode in before:
            part.training = mode


def _same_program(a: GraphModule, b: GraphModule) -> bool:
    """Return whether two captures run the same operators on the same constants."""
    names = {str(node.target) for node in a.graph.find_nodes(op="get_attr")}
    return str(a.graph) == str(b.graph) and all(
        _same_tensor(_attribute(a, name), _attribute(b, name)) for name in names
    )


def _attribute(module: Module, target: str) -> Any:
    path, _, name = target.rpartition(".")
    return getattr(module.get_submodule(path), name)


def _same_tensor(a: Tensor, b: Tensor) -> bool:
    return a is b or (a.aval == b.aval and bool(registry["eq"](a, b).all()))


def _capture_error(module: Module, cause: Exception) -> RuntimeError:
    location = _innermost_user_line(cause.__traceback__)
    return RuntimeError(
        f"pipeline: {type(module).__name__} could not be captured{f' at {location}' if location else ''}: "
        f"{type(cause).__name__}: {cause}\nLikely causes:\n"
        "  - the model does not run on these arguments; try module(*mb_args, **mb_kwargs)\n"
        "  - the arguments hold NumPy arrays; pass tensors, see rg.as_tensor\n"
        "  - the code computes with NumPy or another library in between; use retrograd's operators, or register "
        "an operator\n"
        "  - the code changes a tensor's shape, or something else that a graph can't represent"
    )


def _innermost_user_line(traceback: TracebackType | None) -> str:
    """Return the innermost line of a traceback outside this package and Python's standard library."""
    location = ""
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_globals.get("__name__", "").partition(".")[0] not in (PACKAGE, *sys.stdlib_module_names):
            location = f"{frame.f_code.co_filename}:{traceback.tb_lineno} in {frame.f_code.co_name}"
        traceback = traceback.tb_next
    return location


def _loss_spec(module: Module, loss_spec: Any) -> Any:
    return getattr(module, "loss_spec", None) if loss_spec is None else loss_spec


def _build_split(cuts: Mapping[bool, Cut], present: bool, multi_use: MultiUseParamSpec | None, loss_spec: Any) -> Split:
    """Return the stages of the cuts by mode, with one module per stage for both modes."""
    programs = {mode: cut.program for mode, cut in cuts.items()}
    parts: dict[bool, list[StagePart]] = {}
    graphs: dict[bool, Graph] = {}
    has_loss = False
    main = programs[present]
    # The present mode first: its errors are raised, and the other mode uses its constants.
    for mode, found in sorted(cuts.items(), key=lambda item: item[0] is not present):
        if mode is not present and found is cuts[present]:
            parts[mode], graphs[mode] = parts[present], graphs[present]
            continue
        if mode is not present:
            _share_constants(main, found.program)
        try:
            parts[mode] = _parts(found, multi_use)
        except RuntimeError:
            if mode is present:
                raise
            continue  # stages cannot make the model's writes in that mode
        loss = find_loss(result_of(found.program), loss_spec)
        has_loss = has_loss or (mode is present and loss is not None)
        graphs[mode] = pipe_graph(found.program, parts[mode], loss)
    modules = {
        submodule_name(index): ModalGraphModule(main, {mode: found[index].graph for mode, found in parts.items()})
        for index in range(cuts[present].num_stages)
    }
    split_gm = ModalGraphModule(modules, graphs).train(present)
    return Split(main, split_gm, has_loss, loss_spec)


def _parts(found: Cut, multi_use: MultiUseParamSpec | None) -> list[StagePart]:
    captured, stage_of = found.program, found.assignment()
    # Sizes first, because this changes which stage an operator depends on. Writes become nodes before the cut.
    read_sizes_locally(captured.graph, stage_of)
    check_order(captured.graph, stage_of)
    assign_writes(make_explicit(captured), stage_of)
    kept = owners(captured, stage_of, multi_use) | owners_elsewhere(captured, stage_of, found.tensor_stages)
    return cut(captured, stage_of, found.num_stages, kept)


def _share_constants(main: GraphModule, other: GraphModule) -> None:
    """Add the constants of another capture of the model to the first, under names of their own."""
    for number, node in enumerate(other.graph.find_nodes(op="get_attr")):
        value = _attribute(other, str(node.target))
        try:
            same = _attribute(main, str(node.target)) is value
        except AttributeError:
            same = False
        if not same:
            node.target = f"_other_mode_constant_{number}"
            setattr(main, node.target, value)
            setattr(other, node.target, value)
