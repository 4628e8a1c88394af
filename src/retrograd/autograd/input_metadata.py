"""Shape, dtype and device of the gradients that a node receives: `node._input_metadata`."""

from typing import Any

from retrograd.core import Aval
from retrograd.core.aval import symbolic
from retrograd.core.device import CPU, device


class InputMetadata:
    """Shape, dtype and device of one gradient that a node receives, those of the node's output.

    >>> import retrograd as rg
    >>> y = rg.ones(2, 3, requires_grad=True) * 2
    >>> (gradient,) = y.grad_fn._input_metadata
    >>> gradient.shape, gradient.dtype, gradient.device, gradient.is_nested_tensor
    ((2, 3), dtype('float32'), device(type='cpu'), False)
    """

    __slots__ = ("_aval",)

    def __init__(self, aval: Aval) -> None:
        self._aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, a tuple."""
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        """The NumPy dtype."""
        return self._aval.dtype

    @property
    def device(self) -> "device":
        """The device: the CPU."""
        return CPU

    @property
    def is_nested_tensor(self) -> bool:
        """Whether the gradient is a nested tensor."""
        return symbolic(self._aval.shape) is not None

    is_cpp_nested_tensor = False  # PyTorch's older kind of nested tensors, which jagged ones replace

    def __repr__(self) -> str:
        nested = ", nested" if self.is_nested_tensor else ""
        return f"<gradient of shape {self.shape}, dtype {self.dtype}, device {self.device}{nested}>"
