"""A model's writes: to its own tensors in graph steps, each in one stage; to its inputs after all stages."""

from typing import Any

from retrograd.core import Internal, op, operator_named
from retrograd.fx import Graph, GraphModule, Node, Signature
from retrograd.fx.traced_writes import ATTRIBUTE, USER_INPUT, Mutation
from retrograd.ops.create import zeros
from retrograd.ops.family import Composite
from retrograd.pipelining.split.partition import element_count


@op("write(*, any target, any value, bool recorded) -> Tensor")
class _write(Internal, Composite, impure=True):
    """Write a value to a tensor of the model; autograd records it only if `recorded`."""

    def compose(*, target: Any, value: Any, recorded: bool) -> Any:
        (target if recorded else target.detach()).copy_(value)
        return target

    def oracle(np: Any, target: Any, value: Any, recorded: Any) -> Any:
        return np.full(2, value)

    def samples(r: Any) -> Any:
        yield (), {"target": zeros((2,)), "value": 3.0, "recorded": False}


WRITE, CLONE = operator_named("write"), operator_named("clone")


def signature_of(captured: GraphModule) -> Signature:
    """Return the signature of a captured graph, which always has one."""
    assert captured.graph.signature is not None, "a captured graph has a signature"
    return captured.graph.signature


def result_of(captured: GraphModule) -> Any:
    """Return the model's result, a pytree of nodes, without the values that the graph returns to be written."""
    signature, flat = signature_of(captured), captured.graph.output_node().args[0]
    plain = signature.with_mutations()
    if signature.mutations:
        flat = flat[len(signature.mutations) :]
        flat = flat[0] if plain.single else flat
    return plain.restore(flat)


def make_explicit(captured: GraphModule) -> list[Node]:
    """Turn returned values to be written to the model's tensors into graph steps, and return these nodes.

    Writes to inputs remain outputs of the graph, and run after all stages, so that no stage
    sees a changed input.  Raises RuntimeError for attributes that exist only after the model has run.
    """
    graph, signature = captured.graph, signature_of(captured)
    mutations, kept = signature.mutations, signature.with_mutations(USER_INPUT)
    if len(kept.mutations) == len(mutations):
        return []
    output, writes, returned = graph.output_node(), [], []
    with graph.inserting_before(output):
        for mutation, value in zip(mutations, output.args[0], strict=False):
            if mutation.kind == USER_INPUT:
                returned.append(value)
            else:
                writes.append(graph.call_function(WRITE, (), _arguments(graph, mutation, value)))
    leaves = output.args[0][len(mutations) :]
    output.args = (leaves[0] if kept.single else (*returned, *leaves),)
    graph.signature = kept
    captured.recompile()
    return writes


def _arguments(graph: Graph, mutation: Mutation, value: Any) -> dict[str, Any]:
    if mutation.kind == ATTRIBUTE:
        raise RuntimeError(
            f"pipeline: the model assigns a tensor to its attribute {mutation.target!r}, where there is none before it "
            f"runs, and stages keep tensors in buffers only; register_buffer() one, or return the tensor"
        )
    read = [node for node in graph.find_nodes(op="get_attr") if node.target == mutation.target]
    target = read[0] if read else graph.get_attr(mutation.target)
    return {"target": target, "value": value, "recorded": mutation.recorded}


def assign_writes(writes: list[Node], stage_of: dict[Node, int]) -> None:
    """Assign every write to the stage that computes the value, or move the computation to the write's stage.

    Later stages that read the old value receive a copy from that stage.  Raises RuntimeError if an
    earlier stage reads the written tensor: with several microbatches in flight it would read too early or too late.
    """
    for write in writes:
        readers = [stage_of[user] for user in _readers(write.kwargs["target"])]
        stage_of[write] = stage_of.get(write.kwargs["value"], min(readers, default=0))
    for write in writes:
        # Readers whose results only this write needs can run later, in the stage of the write.
        if _readers_in_earlier_stages(write, stage_of):
            stage_of.update(dict.fromkeys(_exclusive_inputs(write), stage_of[write]))
        # Otherwise the write moves to the earliest stage that reads the tensor, if its inputs are cheap to compute
        # there.
        if early := _readers_in_earlier_stages(write, stage_of):
            stage = min(stage_of[user] for user in early)
            stage_of.update(dict.fromkeys(_inputs_to_move(write, stage, stage_of), stage))
    for write in writes:
        for user in _readers_in_earlier_stages(write, stage_of):
            raise RuntimeError(
                f"pipeline: stage {stage_of[write]} writes to {write.kwargs['target'].target!r}, which {user.name} in "
                f"stage {stage_of[user]} reads; cut the model so that one stage does both"
            )
        _copy_before_write(write, stage_of)


def _readers(node: Node) -> list[Node]:
    """Return the steps that read a value, except writes."""
    return [user for user in node.users if user.target is not WRITE and user.op != "output"]


def _readers_in_earlier_stages(write: Node, stage_of: dict[Node, int]) -> list[Node]:
    """Return the readers of the written tensor in earlier stages."""
    return [user for user in _readers(write.kwargs["target"]) if stage_of[user] < stage_of[write]]


def _copy_before_write(write: Node, stage_of: dict[Node, int]) -> None:
    """Give later stages copies of the written tensor, and of its views, made before the write."""
    write_stage, stack = stage_of[write], [write.kwargs["target"]]
    while stack:
        source = stack.pop()
        users = _readers(source)
        stack += [user for user in users if stage_of[user] == write_stage and user.target.view]
        later = [user for user in users if stage_of[user] > write_stage]
        if later:
            with write.graph.inserting_after(source):
                copy = write.graph.call_function(CLONE, (source,))
            copy.meta = dict(source.meta)
            stage_of[copy] = write_stage
            for user in later:
                user.replace_input_with(source, copy)


def _exclusive_inputs(write: Node) -> set[Node]:
    """Return the steps whose results only this write needs; they may be postponed."""
    found, node = {write}, write.prev
    while node.op != "placeholder" and node is not write:
        if node.op == "call_function" and node.users and found.issuperset(node.users) and not node.is_impure():
            found.add(node)
        node = node.prev
    return found


def _inputs_to_move(write: Node, stage: int, stage_of: dict[Node, int]) -> set[Node]:
    """Return the write and its inputs from later stages, to run in this stage; empty if that costs too much.

    Too much is a step whose result is larger than the written tensor.  Random and other impure steps do not move.
    """
    found, stack = {write}, [write.kwargs["value"]]
    limit = element_count(write.kwargs["target"].meta["val"])
    while stack:
        node = stack.pop()
        if stage_of.get(node, stage) > stage:
            if node.is_impure() or element_count(node.meta["val"]) > limit:
                return set()
            found.add(node)
            stack += node.all_input_nodes
    return found
