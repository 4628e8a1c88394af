"""Inspection of the autograd graph: nodes, edges, and saved values."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from retrograd.autograd.hooks import register_multi_grad_hook
from retrograd.autograd.input_metadata import InputMetadata
from retrograd.autograd.node_views import Node, as_node
from retrograd.core import Tensor
from retrograd.core.device import device
from retrograd.core.engine import edge_of
from retrograd.core.hooks import RemovableHandle
from retrograd.core.tensor import bump_version
from retrograd.foundation.lazy_imports import lazy_names
from retrograd.foundation.suggestions import suggest_in_module

if TYPE_CHECKING:  # imported on first use
    from retrograd.autograd.saving import (
        allow_mutation_on_saved_tensors,
        disable_saved_tensors_hooks,
        save_on_cpu,
        saved_tensors_hooks,
    )

__all__ = [
    "GradientEdge",
    "Node",
    "RemovableHandle",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "draw",  # noqa: F822 (below)
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


class GradientEdge(NamedTuple):
    """An edge of the graph: a node and the index of one of its outputs, where a gradient can arrive.

    `ownership_token` is an object that the edge keeps alive; None if no one gave one, since an edge keeps its node
    alive, but not the tensor.  An edge has the shape, dtype and device of the value.
    """

    node: Any
    output_nr: int
    ownership_token: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value, and of its gradient."""
        return self._metadata.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the value."""
        return self._metadata.dtype

    @property
    def device(self) -> device:
        """The device of the value: the CPU."""
        return self._metadata.device

    @property
    def _metadata(self) -> InputMetadata:
        return self.node._input_metadata[self.output_nr]

    def __repr__(self) -> str:
        return f"GradientEdge(node={self.node!r}, output_nr={self.output_nr})"


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the edge at which the gradient of a tensor arrives.

    The edge refers to the present value, also after a later in-place write.

    >>> import retrograd as rg
    >>> edge = rg.autograd.graph.get_gradient_edge(rg.ones(2, requires_grad=True) * 2)
    >>> edge.node.name(), edge.shape
    ('MulBackward0', (2,))
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            f"It is not possible to get the gradient edge for a Tensor that does not require gradients, of shape "
            f"{tensor.shape}"
        )
    owner, number = edge_of(tensor)
    return GradientEdge(as_node(owner), number)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Increment the version of tensors whose memory was written to without autograd, as through `tensor.numpy()`.

    >>> import retrograd as rg
    >>> x = rg.ones(2)
    >>> rg.autograd.graph.increment_version(x)
    >>> x._version
    1

    Raises RuntimeError for anything else than tensors.
    """
    if not isinstance(tensor, (Tensor, Iterable)):
        raise RuntimeError(f"increment_version expect a Iterable[Tensor] as input, or a Tensor: got {type(tensor)}")
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"increment_version expects each element of the iterable to be a tensor, got {type(t)}")
        bump_version(t)


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "_pop_saved_tensors_default_hooks": "retrograd.autograd.saving",
        "_push_saved_tensors_default_hooks": "retrograd.autograd.saving",
        "allow_mutation_on_saved_tensors": "retrograd.autograd.saving",
        "disable_saved_tensors_hooks": "retrograd.autograd.saving",
        "draw": "retrograd.autograd.drawing.draw",
        "save_on_cpu": "retrograd.autograd.saving",
        "saved_tensors_hooks": "retrograd.autograd.saving",
    },
)


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Accept a setting of streams, without effect: the CPU has none."""


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Accept a setting of streams, without effect: the CPU has none."""


suggest_in_module(globals())
