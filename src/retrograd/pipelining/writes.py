"""What a model writes to its buffers, as steps of its graph: the stage that computes a value writes it."""

from copy import copy
from typing import Any

from retrograd.core import op, operator_named
from retrograd.fx import GraphModule, Node
from retrograd.fx.mutations import BUFFER, CONSTANT, Mutation
from retrograd.ops.create import zeros
from retrograd.ops.family import Composite


@op("write(*, any target, any value, bool recorded) -> Tensor")
class _write(Composite, impure=True):
    """Writes a value to a tensor of the model; autograd sees it only if it is `recorded`."""

    public = False
    method = False

    def compose(*, target: Any, value: Any, recorded: bool) -> Any:
        (target if recorded else target.detach()).copy_(value)
        return target

    def samples(r: Any) -> Any:
        yield (), {"target": zeros((2,)), "value": 3.0, "recorded": False}


WRITE = operator_named("write")


def make_explicit(captured: GraphModule) -> list[Node]:
    """Turn what a captured graph returns to be written at its end into steps of the graph; returns these.

    Raises RuntimeError for writes to anything but buffers and constants.
    """
    graph, signature, writes = captured.graph, copy(captured.graph.signature), []
    if signature is None or not signature.mutations:
        return []
    output = graph.output_node()
    values, leaves = output.args[0][: len(signature.mutations)], output.args[0][len(signature.mutations) :]
    read = {node.target: node for node in graph.find_nodes(op="get_attr")}
    with graph.inserting_before(output):
        for mutation, value in zip(signature.mutations, values, strict=True):
            _check(mutation)
            target = read.get(mutation.target) or graph.get_attr(mutation.target)
            writes.append(graph.call_function(WRITE, (), _arguments(target, value, mutation)))
    signature.learn_mutations([], {})
    output.args = (leaves[0] if signature.single else leaves,)
    graph.signature = signature
    captured.recompile()
    return writes


def _arguments(target: Node, value: Any, mutation: Mutation) -> dict[str, Any]:
    return {"target": target, "value": value, "recorded": mutation.recorded}


def _check(mutation: Mutation) -> None:
    if mutation.kind not in (BUFFER, CONSTANT):
        raise RuntimeError(
            f"pipeline: the model writes to its {mutation.kind.replace('_', ' ')} {mutation.target!r}, and a stage can "
            f"write to buffers only; clone what you write to, or make a buffer of it"
        )


def place_writes(writes: list[Node], stage_of: dict[Node, int]) -> None:
    """Give every write the stage that computes the value, and so, where need be, the steps that serve this write alone.

    Raises RuntimeError where another stage reads what is written: with several micro-batches under way it would read
    too early or too late.
    """
    for write in writes:
        target, value = write.kwargs["target"], write.kwargs["value"]
        readers = [user for user in target.users if user in stage_of]
        here = stage_of[write] = stage_of.get(value, max(stage_of[user] for user in readers or stage_of))
        if any(stage_of[user] != here for user in readers):
            stage_of.update(dict.fromkeys(_serving(write), here))
        for user in readers:
            if stage_of[user] != here:
                raise RuntimeError(
                    f"pipeline: stage {here} writes to {target.target!r}, which {user.name} in stage {stage_of[user]} "
                    f"reads; cut the model so that one stage does both"
                )


def _serving(write: Node) -> set[Node]:
    """The steps whose results only this write needs; they may run later than they did."""
    found, node = {write}, write.prev
    while node.op != "placeholder" and node is not write:
        if node.op == "call_function" and node.users and found.issuperset(node.users) and not node.is_impure():
            found.add(node)
        node = node.prev
    return found
