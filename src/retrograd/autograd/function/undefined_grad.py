"""A function whose backward pass returns undefined gradients (None)."""

from typing import Any

from retrograd.autograd.function.base import Function
from retrograd.core import Tensor


class _Undefined(Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Any:
        """Return copies of the inputs."""
        return tuple([x.clone() for x in inputs])

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor | None) -> Any:
        """Return no gradient."""
        return (None,) * len(grad_outputs)


class UndefinedGrad:
    """A function that returns its inputs, and through which no gradient flows, though the nodes behind it run."""

    def __call__(self, *inputs: Tensor) -> Any:
        """Return the input, or a tuple of several."""
        found = _Undefined.apply(*inputs)
        return found[0] if len(inputs) == 1 else found
