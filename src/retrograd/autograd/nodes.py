"""Read access to the autograd graph in the engine's form: nodes of operators, and leaves, which are tensors.

`Node.next_functions` creates a view of each node; the functions here create nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from retrograd.autograd.node_views import record_of
from retrograd.core import Tensor
from retrograd.core.engine import edge_of
from retrograd.core.graph import Snapshot


def producer(output: Any) -> Any:
    """Return the node that made a tensor (or of a GradientEdge), or the tensor itself if it is a leaf."""
    if isinstance(output, Tensor):
        return edge_of(output)[0]
    return record_of(output.node)


def is_leaf(node: Any) -> bool:
    """Return whether this is a leaf, and not the node of an operator."""
    return isinstance(node, Tensor)


def inputs_of(node: Any) -> Sequence[Any]:
    """Return the node or leaf of each input of an operator; None where no gradient flows."""
    return () if is_leaf(node) else node.edges


def short_name(node: Any) -> str:
    """Return the operator's name: "mul", not MulBackward0.

    >>> import retrograd as rg
    >>> short_name((rg.ones(2, requires_grad=True) * 2)._grad_fn)
    'mul'
    """
    return node.op.name


def describe_type(value: Any) -> str:
    """Return dtype and shape as text: float32[3, 4]."""
    return f"{value.dtype}{list(value.shape)}"


def topological_order(roots: Sequence[Any]) -> Iterator[Any]:
    """Yield every node and leaf reachable from `roots` once, each after its inputs; without recursion."""
    visited: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        elif id(node) not in visited:
            visited.add(id(node))
            stack.append((node, True))
            stack.extend((source, False) for source in reversed(inputs_of(node)) if source is not None)


def saved_values(node: Any) -> Iterator[tuple[str, Any]]:
    """Return the saved tensors of an operator's node, each with the name of the input, or "out"."""
    schema = getattr(node.op, "schema", None)  # a user's Function has none
    names = [*(entry.name for entry in schema.inputs), "out"] if schema else ["a tensor"] * len(node.saved or ())
    for name, value in zip(names, node.saved or (), strict=False):
        for member in value if isinstance(value, tuple) else (value,):
            tensor = member.unpack() if isinstance(member, Snapshot) else member
            if isinstance(tensor, Tensor):
                yield name, tensor
