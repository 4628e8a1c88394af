"""Reading the autograd graph, as the engine sees it: operators' nodes, and leaves, which are tensors.

`Node.next_functions` makes a node for a leaf and notes it there; reading leaves no trace.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from retrograd.core import AccumulateGrad, Tensor
from retrograd.core.engine import edge_of
from retrograd.core.graph import Snapshot


def origin(output: Any) -> Any:
    """The node that made a tensor, the tensor itself if it is a leaf; or what a GradientEdge stands for."""
    if isinstance(output, Tensor):
        return edge_of(output)[0]
    return output.node.variable if isinstance(output.node, AccumulateGrad) else output.node


def is_leaf(node: Any) -> bool:
    """Whether this is a leaf, and not the node of an operator."""
    return isinstance(node, Tensor)


def sources_of(node: Any) -> Sequence[Any]:
    """What made the inputs of an operator, in its order; None where no gradient flows."""
    return () if is_leaf(node) else node.edges


def short_name(node: Any) -> str:
    """What users call the operator of a node: "mul", not MulBackward0.

    >>> import retrograd as rg
    >>> short_name((rg.ones(2, requires_grad=True) * 2).grad_fn)
    'mul'
    """
    return node.op.name


def type_of(value: Any) -> str:
    """Dtype and shape: float32[3, 4]."""
    return f"{value.dtype}{list(value.shape)}"


def walk(roots: Sequence[Any]) -> Iterator[Any]:
    """Every node and leaf behind `roots` once, each after what made its inputs; without recursion."""
    seen: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((source, False) for source in reversed(sources_of(node)) if source is not None)


def saved_values(node: Any) -> Iterator[tuple[str, Any]]:
    """The tensors that an operator's node keeps for its rules, each with the name of the input, or "out"."""
    schema = getattr(node.op, "schema", None)  # a user's Function has none
    names = [*(entry.name for entry in schema.inputs), "out"] if schema else ["a tensor"] * len(node.saved or ())
    for name, value in zip(names, node.saved or (), strict=False):
        for member in value if isinstance(value, tuple) else (value,):
            shown = member.unpack() if isinstance(member, Snapshot) else member
            if isinstance(shown, Tensor):
                yield name, shown
