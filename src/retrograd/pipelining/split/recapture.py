"""Cut a pipeline's model the same way in every capture."""

from collections import defaultdict
from collections.abc import Sequence

from retrograd.fx import GraphModule
from retrograd.fx.graph_module import tensor_names
from retrograd.nn import Module
from retrograd.pipelining.microbatch import MicroBatch
from retrograd.pipelining.split.capture import Cut, Given, Policy, cut_by, split_cut, stages_by_tensor
from retrograd.pipelining.split.manual_stages import AnyPipe, ManualPipe
from retrograd.pipelining.split.markers import Spec
from retrograd.pipelining.split.partition import along_parameters
from retrograd.pipelining.split.pipe import Pipe, split_into_equal_size
from retrograd.pipelining.split.shared_parameters import Homes, MultiUseParamSpec


class Cutter:
    """Captures a model on a microbatch and cuts it into stages.

    by_hand: modules to use as the stages instead.  stages: the required number; wanted: the number for a policy
    if neither the options nor the code says it.  policy, split_spec, multi_use: as in `pipeline`.
    """

    def __init__(
        self,
        model: Module,
        by_hand: list[Module] | None,
        stages: int | None,
        wanted: int | None,
        policy: Policy | None,
        split_spec: Spec | None,
        multi_use: MultiUseParamSpec | None,
    ) -> None:
        self._model = model
        self._by_hand = by_hand
        self._stages = stages
        self._wanted = stages or wanted
        self._policy = policy
        self._spec = split_spec
        self._multi_use = multi_use
        if split_spec and policy is not None:
            raise ValueError("Pipeline: give split_spec or split_policy, not both")
        self._chosen: dict[str, int] = {}  # the policy's stages by operator name

    def __call__(self, batch: MicroBatch, earlier: Sequence[AnyPipe]) -> AnyPipe:
        """Return the stages for a microbatch, given the earlier captures."""
        if self._by_hand is not None:
            return ManualPipe(self._by_hand, batch.args, batch.kwargs)
        captured = Given(self._model, tuple(batch.args), dict(batch.kwargs), self._spec or {}).traced()
        found = self._first_cut(captured) if not earlier else self._cut_alike(captured, earlier)
        if self._stages not in (None, found.num_stages):
            raise ValueError(f"Pipeline: the model is split into {found.num_stages} stages, not {self._stages}")
        return Pipe.of_split(split_cut(self._model, found, self._multi_use, None))

    def _first_cut(self, captured: GraphModule) -> Cut:
        """Return the cut at the marks, if there are any, else by the policy."""
        marked = cut_by(captured, None)
        if marked.num_stages > 1 or (self._wanted is None and self._policy is None):
            return marked
        found = self._cut_by_policy(captured)
        self._chosen = found.stages
        return found

    def _cut_by_policy(self, captured: GraphModule) -> Cut:
        return cut_by(captured, self._policy or split_into_equal_size(self._wanted or 1))

    def _cut_alike(self, captured: GraphModule, earlier: Sequence[AnyPipe]) -> Cut:
        """Return a cut in which the ranks retain their parameters, with a stage for each of the earlier captures."""
        homes, count = _stages_of_tensors(earlier), earlier[0].num_stages
        if self._chosen.keys() == {node.name for node in captured.graph.find_nodes(op="call_function")}:
            return Cut(captured, self._chosen, count, homes)  # the same program, for other shapes
        found = cut_by(captured, None)
        if found.num_stages == count and not _moves_tensors(found, homes):
            return found._replace(homes=homes)
        found = Cut.of(captured, along_parameters(captured.graph, homes))
        if not homes and self._policy is None:
            found = self._cut_by_policy(captured)
        return found._replace(num_stages=count, homes=homes)


def _stages_of_tensors(pipes: Sequence[AnyPipe]) -> dict[str, set[int]]:
    """Return the stages that have each parameter and buffer, by its qualified name."""
    found: dict[str, set[int]] = defaultdict(set)
    for stage in (stage for pipe in pipes for stage in pipe.stages):
        for name in tensor_names(stage.submod):
            found[name].add(stage.stage_index)
    return found


def _moves_tensors(found: Cut, homes: Homes) -> bool:
    """Whether a cut gives a parameter or buffer to a stage that does not have it in other captures."""
    return any(not users.issubset(homes.get(name, users)) for name, users in stages_by_tensor(found).items())
