"""Types of the values of a graph, from a run on examples."""

from typing import Any, NamedTuple

import optree

from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.interpreter import Interpreter
from retrograd.fx.node import Node
from retrograd.ops.layout import channels_last, channels_last_3d, contiguous_format

__all__ = ["ShapeProp", "TensorMetadata"]

FORMATS = {4: (channels_last,), 5: (channels_last_3d,)}  # by the number of dimensions


class TensorMetadata(NamedTuple):
    """The type of a tensor: `is_quantized` and `qparams` are PyTorch's, always False and empty."""

    shape: tuple[int, ...]
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool = False
    qparams: dict[str, Any] = {}  # noqa: RUF012


def tensor_metadata(x: Tensor) -> TensorMetadata:
    """Return the type of a tensor; the memory format is None if it is not contiguous in any."""
    fitting = (f for f in (contiguous_format, *FORMATS.get(x.ndim, ())) if x.is_contiguous(memory_format=f))
    return TensorMetadata(x.shape, x.dtype, x.requires_grad, x.stride(), next(fitting, None))


class ShapeProp(Interpreter):
    """Runs a graph and stores the type of each value in `meta["tensor_meta"]`, its Python class in `meta["type"]`.

    In tuples, lists and dicts each tensor is replaced by its `TensorMetadata`.

    >>> import retrograd as rg
    >>> from retrograd import fx
    >>> module = fx.symbolic_trace(lambda x: x.sum(0))
    >>> result = ShapeProp(module).propagate(rg.ones(2, 3))
    >>> [node.meta["tensor_meta"].shape for node in module.graph.nodes if node.op != "output"]
    [(2, 3), (3,)]
    """

    def __init__(self, gm: GraphModule, fake_mode: None = None) -> None:
        if fake_mode is not None:
            raise NotImplementedError("ShapeProp: there are no fake tensors; it runs the graph on the examples")
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        """Return the result of one node, and store its type."""
        result = super().run_node(n)
        leaves, spec = optree.tree_flatten(result)
        if any(isinstance(leaf, Tensor) for leaf in leaves):
            types: Any = [tensor_metadata(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
            n.meta["tensor_meta"] = optree.tree_unflatten(spec, types)
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on examples, and return its result."""
        return self.run(*args)


suggest_in_module(globals())
