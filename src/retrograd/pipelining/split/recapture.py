"""Cut a pipeline's model the same way in every capture."""

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any

from retrograd.fx import GraphModule, Node
from retrograd.nn import Module
from retrograd.pipelining.microbatch import MicroBatch
from retrograd.pipelining.split.capture import Policy, assigned_by
from retrograd.pipelining.split.manual_stages import AnyPipe, ManualPipe
from retrograd.pipelining.split.partition import along_parameters
from retrograd.pipelining.split.pipe import split_as_traced, split_into_equal_size


class Cutter:
    """Captures a model on a microbatch and cuts it into stages.

    by_hand: modules to use as the stages instead.  stages: the required number; wanted: the number for a policy
    if neither the options nor the code says it.  options: those of `pipeline`.
    """

    def __init__(
        self,
        model: Module,
        by_hand: list[Module] | None,
        stages: int | None,
        wanted: int | None,
        policy: Policy | None,
        **options: Any,
    ) -> None:
        self._model = model
        self._by_hand = by_hand
        self._stages = stages
        self._wanted = stages or wanted
        self._policy = policy
        self._spec = options.pop("split_spec")
        self._options = options
        self._chosen: dict[str, int] = {}  # the policy's stages by operator name

    def __call__(self, batch: MicroBatch, first: AnyPipe | None) -> AnyPipe:
        """Return the stages for a microbatch; `first` is the first capture."""
        if self._by_hand is not None:
            return ManualPipe(self._by_hand, batch.args, batch.kwargs)
        capture = partial(split_as_traced, self._model, batch.args, batch.kwargs, **self._options)
        pipe = capture(split_spec=self._spec)
        if pipe.num_stages == 1 and (self._wanted is not None or self._policy is not None):
            pipe = capture(split_policy=partial(self._cut, first))
        if self._stages not in (None, pipe.num_stages):
            raise ValueError(f"Pipeline: the model is split into {pipe.num_stages} stages, not {self._stages}")
        return pipe

    def _cut(self, first: AnyPipe | None, captured: GraphModule) -> Mapping[Node, int]:
        """Cut as in the first capture, so that ranks retain their parameters; the first time use the policy."""
        nodes = captured.graph.find_nodes(op="call_function")
        if self._chosen.keys() == {node.name for node in nodes}:  # the same program, for other shapes
            return {node: self._chosen[node.name] for node in nodes}
        if first is not None:
            found = along_parameters(captured.graph, _stages_of_parameters(first))
            if set(found.values()) == set(range(first.num_stages)):
                return found
        chosen = assigned_by(self._policy or split_into_equal_size(self._wanted or 1), captured)
        self._chosen = {node.name: stage for node, stage in chosen.items()}
        return chosen


def _stages_of_parameters(pipe: AnyPipe) -> dict[str, set[int]]:
    """Return the stages that have each parameter, by its qualified name."""
    found: dict[str, set[int]] = defaultdict(set)
    for stage in pipe.stages:
        for name, _ in stage.submod.named_parameters():
            found[name].add(stage.stage_index)
    return found
