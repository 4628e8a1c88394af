"""Methods of tensors with NumPy's meaning, where PyTorch's differ or are missing."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from retrograd.core import Tensor
from retrograd.interop.numpy_protocol import functions

# The methods of HIPS autograd's boxes that differ: `x.var()` divides by n, `x.max(axis=0)` returns only values.
_NUMPYS = (
    "argpartition", "argsort", "compress", "cumprod", "cumsum", "dot", "max", "min", "nonzero", "ptp", "put", "ravel",
    "repeat", "round", "searchsorted", "sort", "std", "take", "trace", "var",
)  # fmt: skip


def give() -> None:
    """Install these methods on tensors, in the whole process."""
    for name in _NUMPYS:
        setattr(Tensor, name, _method(functions()[name]))
    Tensor.transpose = _transpose  # type: ignore[method-assign]
    Tensor.reshape = _reshape  # type: ignore[method-assign]


def _method(function: Callable) -> Callable:
    @wraps(function)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    return method


_swapped, _reshaped = Tensor.transpose, Tensor.reshape


def _transpose(self: Tensor, *axes: Any, **kwargs: Any) -> Tensor:
    """Permute all axes; two axes of more are swapped as in PyTorch, where NumPy would raise."""
    if kwargs or (len(axes) == 2 and self.ndim != 2):
        return _swapped(self, *axes, **kwargs)
    whole = axes[0] if len(axes) == 1 else axes or None
    return functions()["transpose"](self, whole)


def _reshape(self: Tensor, *shape: Any, order: str = "C") -> Tensor:
    """Return the values in another shape, in row-major or, with order="F", column-major order."""
    if order == "C":
        return _reshaped(self, *shape)
    return functions()["reshape"](self, shape[0] if len(shape) == 1 else shape, order)
