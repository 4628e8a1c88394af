"""The stages of a pipe: their inputs and outputs, read from the graph that calls them."""

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from retrograd.export.example_inputs import named_leaves
from retrograd.fx import Graph, Node, Signature
from retrograd.fx.operators import PICK
from retrograd.pipelining.runtime.stage import PipelineStageBase, Value

Carried = dict[tuple[int, int], list[str]]


class Ports(NamedTuple):
    """The inputs and outputs of a stage, the values on all edges of its pipe, and the pipe's own inputs."""

    inputs: tuple[Value, ...]
    outputs: tuple[str, ...]
    carried: Mapping[tuple[int, int], Sequence[str]]
    signature: Signature | None = None
    placeholders: tuple[str, ...] = ()


class PipeStage(PipelineStageBase):
    """A stage with known inputs and outputs.

    ports: by mode, True for training: in evaluation a captured stage may have other inputs and outputs.
    """

    def __init__(
        self, submodule: Any, stage_index: int, num_stages: int, ports: Mapping[bool, Ports],
        device: Any = None, group: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(submodule, stage_index, num_stages, device, group)
        self._ports = ports

    def _current_ports(self) -> Ports:
        return self._ports[self.submod.training] if len(self._ports) > 1 else next(iter(self._ports.values()))

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Return the values that the stage takes, in the module's current mode."""
        return self._current_ports().inputs

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the values that the stage returns, in the module's current mode."""
        return self._current_ports().outputs

    def carried(self) -> Mapping[tuple[int, int], Sequence[str]]:
        """Return the names of the values on each edge (from_stage, to_stage) of the pipe."""
        return self._current_ports().carried

    def model_inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the model's own inputs by name; a rank without the first stage may be given some, by keyword."""
        ports = self._current_ports()
        assert ports.signature is not None, "a stage of a captured model has a signature"
        check_no_writes(ports.signature)
        if args or self.is_first:
            return dict(zip(ports.placeholders, ports.signature.flatten(tuple(args), dict(kwargs)), strict=True))
        names = {known.name: name for known, name in zip(ports.signature.inputs, ports.placeholders, strict=True)}
        leaves = [leaf for name, value in kwargs.items() for leaf in named_leaves(name, value)]
        return {names[name]: leaf for name, leaf in leaves if name in names}


def carried_by(inputs: Sequence[tuple[Value, ...]]) -> Carried:
    """Return the names of the values on each edge, from the inputs of every stage."""
    edges: Carried = {}
    for stage, taken in enumerate(inputs):
        for value in taken:
            if value.stage is not None:
                edges.setdefault((value.stage, stage), []).append(value.name)
    return edges


def stage_calls(graph: Graph) -> list[Node]:
    """Return the calls of the stages in the graph of a pipe, in order."""
    return [node for node in graph.nodes if node.op == "call_module"]


def source_of(node: Node) -> tuple[Node, int] | None:
    """Return the call of the stage whose result this node picks, and the index; None for another node."""
    if node.target in (PICK, operator.getitem):
        call, place = node.args
        return (call, place) if call.op == "call_module" else None
    return None


def read_ports(graph: Graph) -> list[Ports]:
    """Return the ports of every stage, from the graph of a pipe."""
    calls = stage_calls(graph)
    for call in calls:
        if "inputs" not in call.meta:
            raise ValueError(f"the graph calls {call.target}, which is not a stage made by pipeline()")
    carried = carried_by([call.meta["inputs"] for call in calls])
    names = tuple(node.name for node in graph.find_nodes(op="placeholder"))
    return [Ports(call.meta["inputs"], call.meta["outputs"], carried, graph.signature, names) for call in calls]


def value_name(node: Node) -> str:
    """Return the name, in the stages, of a value in the graph of a pipe."""
    source = source_of(node)
    return node.name if source is None else source[0].meta["outputs"][source[1]]


def check_no_writes(signature: Signature) -> None:
    """Raise RuntimeError for a model that writes to its inputs, whose stages cannot run separately."""
    written = ", ".join(repr(mutation.target) for mutation in signature.mutations)
    if written:
        raise RuntimeError(
            f"pipeline: the model writes to its input {written}; a Pipe that is called does so, stages that "
            f"run by themselves, on microbatches, do not: clone in the model what it writes to"
        )
