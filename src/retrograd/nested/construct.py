"""Making nested tensors."""

from collections.abc import Sequence
from typing import Any

from retrograd.core import Tensor
from retrograd.nested.components import joined
from retrograd.ops.create import as_tensor


def as_nested_tensor(ts: Sequence[Any]) -> Tensor:
    """The nested tensor of components, which gradients flow to."""
    return joined([as_tensor(t) for t in ts])


def nested_tensor(tensor_list: Sequence[Any], requires_grad: bool = False) -> Tensor:
    """A nested tensor of copies of components, a leaf."""
    return joined([as_tensor(t).detach() for t in tensor_list]).detach().requires_grad_(requires_grad)
