"""Private functions of PyTorch's jagged layout, for programs that use them."""

from collections.abc import Sequence
from typing import Any

from retrograd.backend.ragged import RaggedSize, Structure
from retrograd.core import Tensor
from retrograd.nested.construct import as_nested_tensor, nested_tensor_from_jagged
from retrograd.nested.methods import offsets as rows_of_components
from retrograd.nested.padded_constructors import jagged_from_padded as nested_from_padded
from retrograd.ops.create import as_tensor
from retrograd.ops.layout import jagged
from retrograd.ops.methods import concrete

__all__ = [
    "NestedTensor",
    "ViewNestedFromBuffer",
    "buffer_from_jagged",
    "get_tensor_symint",
    "jagged_from_list",
    "nested_from_padded",
    "nested_view_from_values_offsets",
    "nested_view_from_values_offsets_lengths",
]


def jagged_from_list(tensors: Sequence[Tensor], offsets: Tensor | None, dtype: Any = None, device: Any = None) -> Any:
    """Return the nested tensor of components with gradients to them, and its offsets, those given if there are some."""
    nested = as_nested_tensor(list(tensors), dtype=dtype, device=device, layout=jagged)
    return nested, rows_of_components(nested) if offsets is None else offsets


def nested_view_from_values_offsets(
    values: Tensor, offsets: Any, ragged_idx: int = 1, min_seqlen: int | None = None, max_seqlen: int | None = None
) -> Tensor:
    """Return the nested tensor over rows, as `nested_tensor_from_jagged` does."""
    return nested_tensor_from_jagged(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def nested_view_from_values_offsets_lengths(
    values: Tensor,
    offsets: Any,
    lengths: Any,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """Return the nested tensor over some of the rows, as `nested_tensor_from_jagged` does."""
    return nested_tensor_from_jagged(values, offsets, lengths, ragged_idx, min_seqlen, max_seqlen)


def buffer_from_jagged(jagged: Tensor) -> Tensor:
    """Return the rows of a nested tensor."""
    return jagged.values()


def get_tensor_symint(tensor: Tensor, *, coeff: int = 1) -> RaggedSize:
    """Return the size of a ragged dimension with these offsets, times a factor."""
    bounds = concrete(as_tensor(tensor))
    sizes = (bounds[1:] - bounds[:-1]) * coeff
    return RaggedSize(Structure(sizes[:, None]), 0, 0)


class _NestedTensorType(type):
    """The class of `NestedTensor`: any nested tensor in the jagged layout is an instance."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.is_nested and instance.layout is jagged

    def __call__(cls, values: Tensor, offsets: Any, *, lengths: Any = None, **kwargs: Any) -> Tensor:
        """Return the nested tensor over rows; RuntimeError for a ragged dimension that it does not have."""
        ragged = kwargs.get("_ragged_idx", 1)
        if ragged < 1:
            raise RuntimeError("unbind(): nested tensor ragged_idx out of bounds (should be >= 1)")
        try:
            return nested_tensor_from_jagged(values, offsets, lengths, ragged)
        except ValueError as error:
            raise RuntimeError(
                f"unbind(): nested tensor offsets and lengths do not match ragged_idx dimension: {error}"
            ) from None


class NestedTensor(metaclass=_NestedTensorType):
    """The class of nested tensors in PyTorch's jagged layout, which are ordinary tensors here."""


class ViewNestedFromBuffer:
    """The function that PyTorch's older programs use for nested tensors over rows."""

    @staticmethod
    def apply(values: Tensor, offsets: Any, metadata_cache: Any = None) -> Tensor:
        """Return the nested tensor over rows; the bounds in metadata_cache are not used."""
        return nested_tensor_from_jagged(values, offsets)
