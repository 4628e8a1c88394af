"""The graph of a whole pipe: a call of every stage and, with a loss, their backward passes."""

from collections.abc import Mapping, Sequence
from typing import Any

from retrograd.core import Aval, Internal, Op, op, operator_named, registry
from retrograd.core.dtype import is_differentiable
from retrograd.fx import Graph, GraphModule, Node, map_nodes
from retrograd.fx.operators import PICK
from retrograd.ops.family import Composite
from retrograd.pipelining.runtime.stage_backward import drop_missing_gradients, stage_backward
from retrograd.pipelining.split.cut_graph import StagePart


@op("stage_backward(*, any stage_output, any output_grads, any input_values) -> Tensor[]")
class _stage_backward(Internal, Composite, impure=True):
    """The backward pass of one stage: accumulates parameter gradients, and returns those of its inputs.

    None among `output_grads` means that no gradient arrived: later stages do not depend on that output.
    """

    def compose(*, stage_output: Any, output_grads: Any, input_values: Any) -> Any:
        return stage_backward(*drop_missing_gradients(stage_output, output_grads), input_values)

    def oracle(np: Any, stage_output: Any, output_grads: Any, input_values: Any) -> Any:
        return ()

    def samples(r: Any) -> Any:
        yield (), {"stage_output": (), "output_grads": (), "input_values": ()}


@op("add_gradients(Tensor? a, Tensor? b) -> Tensor")
class _add_gradients(Internal, Composite):
    """The sum of two gradients of one value, either of which may be None."""

    def compose(a: Any, b: Any) -> Any:
        return b if a is None else a if b is None else a + b

    oracle = "numpy.add"

    def samples(r: Any) -> Any:
        yield (r(2), r(2)), {}


STAGE_BACKWARD, ADD_GRADIENTS = operator_named("stage_backward"), operator_named("add_gradients")


def pipe_graph(captured: GraphModule, stages: Sequence[StagePart], loss: Node | None = None) -> Graph:
    """Return the graph that calls every stage; with a loss, a node of the captured graph, also backward.

    Stages are called as submodules `submod_pp_0`, `submod_pp_1`, ...; their values have the same names as
    in the captured graph.
    """
    writer = _Writer(captured, stages)
    if loss is not None:
        writer.add_backward(loss)
    writer.graph.lint()
    return writer.graph


def submodule_name(stage: int) -> str:
    """Return the name of a stage in the graph of its pipe."""
    return f"submod_pp_{stage}"


class _Writer:
    """Writes the graph of a pipe."""

    def __init__(self, captured: GraphModule, stages: Sequence[StagePart]) -> None:
        self.captured = {node.name: node for node in captured.graph.nodes}
        self.stages = stages
        self.graph = Graph()
        self.values: dict[str, Node] = {}
        self.calls: dict[int, Node] = {}
        self.producers: dict[str, int] = {}
        for node in captured.graph.find_nodes(op="placeholder"):
            self.values[node.name] = self.graph.placeholder(node.name)
            self.values[node.name].meta = dict(node.meta)
        for stage in stages:
            self._call(stage)
        output = captured.graph.output_node().args[0]
        self.end = self.graph.output(map_nodes(output, lambda node: self.values[node.name]))
        self.graph.signature = captured.graph.signature

    def _call(self, stage: StagePart) -> None:
        """Add a stage's call and the values it produces; values that pass through it exist already."""
        arguments = tuple(self.values[value.name] for value in stage.inputs)
        call = self.calls[stage.stage_index] = self.graph.call_module(submodule_name(stage.stage_index), arguments)
        call.meta.update(val=tuple(self._aval(name) for name in stage.outputs), stage_idx=stage.stage_index)
        call.meta.update(inputs=stage.inputs, outputs=stage.outputs)
        for index, name in enumerate(stage.outputs):
            if name not in self.values:
                self.values[name] = self._pick(call, index, name, self._aval(name))
                self.producers[name] = stage.stage_index

    def add_backward(self, loss: Node) -> None:
        """Call `stage_backward` for every stage that the loss depends on, from the last to the first."""
        with_gradient = _nodes_with_gradient(loss)
        with self.graph.inserting_before(self.end):
            seed = self._compute(registry["ones_like"], (self.values[loss.name],), f"{loss.name}_grad", _val(loss))
            gradients = {loss.name: seed}
            for stage in reversed(self.stages):
                if any(self._gradient(stage, name, gradients) for name in stage.outputs):
                    self._add_stage_backward(stage, gradients, with_gradient)

    def _add_stage_backward(self, stage: StagePart, gradients: dict[str, Node], with_gradient: set[str]) -> None:
        sent = [value.name for value in stage.inputs if value.stage is not None]
        call = self.graph.create_node(
            "call_function",
            STAGE_BACKWARD,
            kwargs={
                "stage_output": self.calls[stage.stage_index],
                "output_grads": tuple(self._gradient(stage, name, gradients) for name in stage.outputs),
                "input_values": tuple(self.values[name] for name in sent),
            },
            name=f"stage_backward_{stage.stage_index}",
        )
        call.meta.update(val=tuple(self._aval(name) for name in sent), stage_idx=stage.stage_index)
        used = _used_by(stage, with_gradient)
        for index, name in enumerate(sent):
            if name in used:
                new = self._pick(call, index, f"{name}_grad", self._aval(name))
                old = gradients.get(name)
                both = old and self._compute(ADD_GRADIENTS, (old, new), f"{name}_grad", self._aval(name))
                gradients[name] = both or new

    def _gradient(self, stage: StagePart, name: str, gradients: dict[str, Node]) -> Node | None:
        """Return the gradient of a stage's output; None without one, and for values that pass through the stage."""
        return gradients.get(name) if self.producers.get(name) == stage.stage_index else None

    def _pick(self, source: Node, index: int, name: str, aval: Any) -> Node:
        return self._compute(PICK, (source, index), name, aval)

    def _compute(self, target: Op, args: tuple, name: str, aval: Any) -> Node:
        node = self.graph.create_node("call_function", target, args, name=name)
        node.meta["val"] = aval
        return node

    def _aval(self, name: str) -> Any:
        return _val(self.captured[name])


def _val(node: Node) -> Any:
    """Return the type of a value; None for the sizes of a graph with varying sizes."""
    return node.meta.get("val")


def _used_by(stage: StagePart, with_gradient: Mapping[str, Any] | set[str]) -> set[str]:
    """Return the inputs of a stage on which the loss depends through it."""
    inputs = {value.name for value in stage.inputs}
    nodes = stage.graph.nodes
    return {
        used.name for node in nodes if node.name in with_gradient for used in node.all_input_nodes
        if used.name in inputs and used.name in with_gradient
    }  # fmt: skip


def _nodes_with_gradient(loss: Node) -> set[str]:
    """Return the names of the nodes through which gradients flow back from the loss, including the loss."""
    found, stack = {loss.name}, [loss]
    while stack:
        node = stack.pop()
        if node.op == "call_function" and not (node.target.differentiable or node.target is PICK):
            continue
        for used in node.all_input_nodes:
            if used.name not in found and _has_gradient(_val(used)):
                found.add(used.name)
                stack.append(used)
    return found


def _has_gradient(val: Any) -> bool:
    if isinstance(val, tuple):
        return any(map(_has_gradient, val))
    return isinstance(val, Aval) and is_differentiable(val.dtype)
