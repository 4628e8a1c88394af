"""Cut a pipeline's model the same way in every capture."""

from collections import defaultdict
from collections.abc import Sequence

from retrograd.fx import GraphModule
from retrograd.fx.graph_module import tensor_names
from retrograd.nn import Module
from retrograd.pipelining.microbatch import MicroBatch
from retrograd.pipelining.split.capture import CaptureInput, Cut, Policy, cut_with_policy, split_cut, stages_by_tensor
from retrograd.pipelining.split.manual_stages import AnyPipe, ManualPipe
from retrograd.pipelining.split.markers import Spec
from retrograd.pipelining.split.partition import assign_by_parameters
from retrograd.pipelining.split.pipe import Pipe, split_into_equal_size
from retrograd.pipelining.split.shared_parameters import MultiUseParamSpec, StagesByTensor


class Cutter:
    """Captures a model on a microbatch and cuts it into stages.

    manual_stages: modules to use as the stages instead.  stages: the required number.  default_stages: the number for a
    policy if neither the options nor the code says it.  policy, split_spec, multi_use: as in `pipeline`.  compile:
    whether the stages run compiled.
    """

    def __init__(
        self,
        model: Module,
        manual_stages: list[Module] | None,
        stages: int | None,
        default_stages: int | None,
        policy: Policy | None,
        split_spec: Spec | None,
        multi_use: MultiUseParamSpec | None,
        compile: bool = False,
    ) -> None:
        self._model = model
        self._manual_stages = manual_stages
        self._stages = stages
        self._policy_stage_count = stages or default_stages
        self._policy = policy
        self._spec = split_spec
        self._multi_use = multi_use
        self._compile = compile
        if split_spec and policy is not None:
            raise ValueError("Pipeline: give split_spec or split_policy, not both")
        self._policy_stages: dict[str, int] = {}  # the policy's stages by operator name

    def __call__(self, batch: MicroBatch, earlier: Sequence[AnyPipe]) -> AnyPipe:
        """Return the stages for a microbatch, given the earlier captures."""
        pipe = self._cut(batch, earlier)
        for stage in pipe.stages if self._compile else ():
            stage.compile()
        return pipe

    def _cut(self, batch: MicroBatch, earlier: Sequence[AnyPipe]) -> AnyPipe:
        if self._manual_stages is not None:
            return ManualPipe(self._manual_stages, batch.args, batch.kwargs)
        captured = CaptureInput(self._model, tuple(batch.args), dict(batch.kwargs), self._spec or {}).trace_module()
        found = self._first_cut(captured) if not earlier else self._cut_consistently(captured, earlier)
        if self._stages not in (None, found.num_stages):
            raise ValueError(f"Pipeline: the model is split into {found.num_stages} stages, not {self._stages}")
        return Pipe.of_split(split_cut(self._model, found, self._multi_use, None))

    def _first_cut(self, captured: GraphModule) -> Cut:
        """Return the cut at the marks, if there are any, else by the policy."""
        cut_at_markers = cut_with_policy(captured, None)
        if cut_at_markers.num_stages > 1 or (self._policy_stage_count is None and self._policy is None):
            return cut_at_markers
        found = self._cut_by_policy(captured)
        self._policy_stages = found.stages
        return found

    def _cut_by_policy(self, captured: GraphModule) -> Cut:
        return cut_with_policy(captured, self._policy or split_into_equal_size(self._policy_stage_count or 1))

    def _cut_consistently(self, captured: GraphModule, earlier: Sequence[AnyPipe]) -> Cut:
        """Return a cut in which the ranks retain their parameters, with a stage for each of the earlier captures."""
        tensor_stages, count = _stages_of_tensors(earlier), earlier[0].num_stages
        if self._policy_stages.keys() == {node.name for node in captured.graph.find_nodes(op="call_function")}:
            return Cut(captured, self._policy_stages, count, tensor_stages)  # the same program, for other shapes
        found = cut_with_policy(captured, None)
        if found.num_stages == count and not _moves_tensors(found, tensor_stages):
            return found._replace(tensor_stages=tensor_stages)
        found = Cut.of(captured, assign_by_parameters(captured.graph, tensor_stages))
        if not tensor_stages and self._policy is None:
            found = self._cut_by_policy(captured)
        return found._replace(num_stages=count, tensor_stages=tensor_stages)


def _stages_of_tensors(pipes: Sequence[AnyPipe]) -> dict[str, set[int]]:
    """Return the stages that have each parameter and buffer, by its qualified name."""
    found: dict[str, set[int]] = defaultdict(set)
    for stage in (stage for pipe in pipes for stage in pipe.stages):
        for name in tensor_names(stage.submod):
            found[name].add(stage.stage_index)
    return found


def _moves_tensors(found: Cut, tensor_stages: StagesByTensor) -> bool:
    """Return whether a cut gives a parameter or buffer to a stage that does not have it in other captures."""
    return any(not users.issubset(tensor_stages.get(name, users)) for name, users in stages_by_tensor(found).items())
