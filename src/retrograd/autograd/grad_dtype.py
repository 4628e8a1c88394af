"""`Tensor.grad_dtype`: the dtype of a leaf's `.grad`, where that differs from the leaf's own."""

from typing import Any

from retrograd.core import Tensor
from retrograd.core.dtype import as_dtype
from retrograd.core.hooks import grad_dtype_of, hooks_of
from retrograd.ops.family import cast_to


def _grad_dtype(self: Tensor) -> Any:
    """The dtype that `.grad` of this leaf must have, by default that of the leaf; None allows any.

    backward() converts gradients to it.  Raises RuntimeError for results, for values that are no dtypes, and if `.grad`
    has another dtype already.

    >>> import retrograd as rg
    >>> weight = rg.ones(2, dtype=rg.float16, requires_grad=True)
    >>> weight.grad_dtype = rg.float32
    >>> (weight * 3).sum().backward()
    >>> weight.grad
    tensor([3., 3.])
    """
    _check_leaf(self, "accessed")
    return grad_dtype_of(self)


def _set_grad_dtype(self: Tensor, dtype: Any) -> None:
    _check_leaf(self, "set")
    if dtype is not None:
        try:
            dtype = as_dtype(dtype)
        except TypeError:
            raise RuntimeError(f"grad_dtype must be a dtype or None, but got {type(dtype).__name__}") from None
    old = self._grad
    if old is not None and dtype is not None and dtype != old.dtype:
        raise RuntimeError(
            f"Cannot set grad_dtype to '{dtype}' because there is already a gradient with dtype '{old.dtype}'. Please "
            f"clear the gradient (.grad = None) before changing grad_dtype"
        )
    hooks_of(self).grad_dtype = dtype


def _check_leaf(tensor: Tensor, what: str) -> None:
    if not tensor.is_leaf:
        raise RuntimeError(f"grad_dtype can only be {what} on leaf tensors.")


def in_grad_dtype(leaf: Tensor, g: Tensor) -> Tensor:
    """Return a gradient in the dtype that the leaf's `.grad` must have."""
    dtype = grad_dtype_of(leaf)
    if dtype is None or dtype == g.dtype:
        return g
    converted: Tensor = cast_to(g, dtype)
    return converted


setattr(Tensor, "grad_dtype", property(_grad_dtype, _set_grad_dtype))  # noqa: B010 (a property that another layer adds)
