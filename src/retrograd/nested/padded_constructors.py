"""Nested tensors from padded tensors, masks and buffers, by PyTorch's older functions."""

from itertools import pairwise
from typing import Any

from retrograd.core import Tensor
from retrograd.nested.buffer_layout import component_shapes
from retrograd.nested.construct import as_nested_tensor
from retrograd.ops.create import as_tensor
from retrograd.ops.layout import jagged, strided
from retrograd.ops.methods import concrete


def _nested_from_padded(padded: Tensor, cpu_nested_shape_example: Tensor, fuse_transform_0213: bool = False) -> Tensor:
    """Return the nested tensor of the corners of a padded tensor's slices, given the shape of each component.

    padded: (components, *sizes).  cpu_nested_shape_example: int64 of shape (components, n), a row of n sizes each.
    fuse_transform_0213: whether `padded` is (components, heads, rows, width) for components (rows, heads * width).

    >>> import retrograd as rg
    >>> rg._nested_from_padded(rg.arange(4.0).reshape(2, 2), rg.tensor([[1], [2]]))
    nested_tensor([
      tensor([0.]),
      tensor([2., 3.])
    ])
    """
    if fuse_transform_0213:
        count, heads, rows, width = padded.shape
        padded = padded.transpose(1, 2).reshape((count, rows, heads * width))
    sizes = concrete(as_tensor(cpu_nested_shape_example)).tolist()
    if len(sizes) != len(padded):
        raise RuntimeError(f"_nested_from_padded: there are {len(padded)} slices, but {len(sizes)} shapes")
    parts = [part[tuple(slice(size) for size in shape)] for part, shape in zip(padded.unbind(), sizes, strict=True)]
    return as_nested_tensor(parts, layout=strided)


def _nested_from_padded_and_nested_example(padded: Tensor, nt_example: Tensor) -> Tensor:
    """Return the nested tensor of a padded tensor's content, with the shapes of another nested tensor's components."""
    return _nested_from_padded(padded, as_tensor(component_shapes(nt_example)))


def _nested_tensor_from_mask(t: Tensor, mask: Tensor, mask_check: bool = True) -> Tensor:
    """Return the nested tensor of the first rows of each slice, as many as its mask has True.

    t: (components, rows, width).  mask: bool of shape (components, rows); RuntimeError for one in which a True follows
    a False, unless `mask_check` is False.

    >>> import retrograd as rg
    >>> rg._nested_tensor_from_mask(rg.ones(2, 2, 1), rg.tensor([[True, False], [True, True]])).offsets()
    tensor([0, 1, 3])
    """
    if t.ndim != 3 or mask.ndim != 2 or mask.shape != t.shape[:2]:
        raise RuntimeError(
            f"_nested_tensor_from_mask: Input has to be a 3D tensor, and mask a 2D one of its first sizes, got shapes "
            f"{t.shape} and {mask.shape}"
        )
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("Mask must be left-aligned without gaps")
    lengths = concrete(mask.sum(1)).tolist()
    return as_nested_tensor([part[:length] for part, length in zip(t.unbind(), lengths, strict=True)], layout=strided)


def _nested_tensor_from_mask_left_aligned(t: Tensor, mask: Tensor) -> bool:
    """Return whether no True follows a False in any row of the mask."""
    return not bool((mask[:, 1:] & ~mask[:, :-1]).any())


def _nested_view_from_buffer(buffer: Tensor, nested_size: Tensor, nested_strides: Tensor, offsets: Tensor) -> Tensor:
    """Return the nested tensor of components in a flat buffer, with gradients to it.

    nested_size, nested_strides: the sizes and strides of each component, a row each.  offsets: the index of each
    first element.  RuntimeError for components that do not lie in the buffer.
    """
    rows = [concrete(as_tensor(given)).tolist() for given in (nested_size, nested_strides, offsets)]
    parts = []
    for sizes, strides, offset in zip(*rows, strict=True):
        start = offset[0] if isinstance(offset, list) else offset
        last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        if last >= 2**63:
            raise RuntimeError(f"Storage size calculation overflowed with sizes={sizes} and strides={strides}")
        parts.append(buffer.as_strided(tuple(sizes), tuple(strides), start))
    return as_nested_tensor(parts, layout=strided)


def jagged_from_padded(
    padded: Tensor,
    offsets: Any,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
    sum_S: int | None = None,
) -> Tensor:
    """Return the nested tensor in the jagged layout of a padded tensor's content, given offsets; others are unused."""
    if ragged_idx != 1:
        raise RuntimeError("nested_from_padded(): only ragged_idx=1 supported for now")
    bounds = concrete(as_tensor(offsets)).tolist()
    pairs = zip(padded.unbind(), pairwise(bounds), strict=True)
    return as_nested_tensor([part[: end - start] for part, (start, end) in pairs], layout=jagged)
