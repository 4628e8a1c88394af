"""The autograd graph of some tensors as a list of vertices with their labels."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from retrograd.autograd.node_views import Node
from retrograd.autograd.nodes import (
    describe_type,
    inputs_of,
    is_leaf,
    producer,
    saved_values,
    short_name,
    topological_order,
)
from retrograd.core import Tensor

LEAF, OPERATOR, OUTPUT, MORE = "leaf", "operator", "output", "more"


class Vertex(NamedTuple):
    """A box of the picture: two lines of text, a longer tooltip, and the vertices of its inputs."""

    kind: str
    name: str
    detail: str = ""
    tip: str = ""
    inputs: tuple[int, ...] = ()  # in the operator's order; NOTHING where no gradient flows
    style: str = ""  # another CSS class, for colours


NO_INPUT = -1


def read(outputs: Sequence[Any], names: Mapping[int, str]) -> list[Vertex]:
    """Return the vertices of the graph of `outputs`: inputs before their consumers, the outputs last.

    outputs: tensors or GradientEdges.  names: id of a leaf -> its name.  Raises RuntimeError if there is no graph.
    """
    roots = [_check_output(index, output) for index, output in enumerate(outputs)]
    index_of: dict[int, int] = {}
    vertices: list[Vertex] = []
    for node in topological_order(roots):
        inputs = tuple(NO_INPUT if source is None else index_of[id(source)] for source in inputs_of(node))
        index_of[id(node)] = len(vertices)
        vertices.append(_leaf(node, names) if is_leaf(node) else _operator(node, inputs))
    for index, (output, root) in enumerate(zip(outputs, roots, strict=True)):
        name = "output" if len(outputs) == 1 else f"output {index}"
        detail = describe_type(output) if isinstance(output, Tensor) else ""
        vertices.append(Vertex(OUTPUT, name, detail, f"{name} {detail}".strip(), (index_of[id(root)],)))
    return vertices


def _check_output(index: int, output: Any) -> Any:
    """Return the node or leaf of an output; errors name the output."""
    if not isinstance(output, Tensor) and not isinstance(getattr(output, "node", None), Node):
        raise TypeError(f"draw: output {index} must be a Tensor or GradientEdge, got {type(output).__name__}")
    if isinstance(output, Tensor) and not output.requires_grad:
        raise RuntimeError(
            f"draw: output {index}, {describe_type(output)}, does not require grad, so there is no graph behind it; "
            f"autograd.explain(tensor) says why"
        )
    return producer(output)


def _leaf(tensor: Tensor, names: Mapping[int, str]) -> Vertex:
    detail = describe_type(tensor)
    name = names.get(id(tensor), "")
    return Vertex(LEAF, name, detail, f"leaf {name or '(without a name)'}: {detail}")


def _operator(node: Any, inputs: tuple[int, ...]) -> Vertex:
    return Vertex(OPERATOR, short_name(node), "", "\n".join([node.name(), *_tooltip_lines(node)]), inputs)


def _tooltip_lines(node: Any) -> Iterator[str]:
    """Yield the lines of an operator's tooltip: its params, and what it saved for the backward pass."""
    for name, value in (node.params or {}).items():
        text = repr(value)
        yield f"{name} = {text if len(text) <= 60 else text[:57] + '...'}"
    if node.freed:
        yield "saved values: freed by a backward pass"
    for name, value in saved_values(node):
        yield f"saves {name}: {describe_type(value)}"
