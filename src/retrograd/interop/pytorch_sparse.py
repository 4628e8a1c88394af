"""Sparse tensors in PyTorch's files: a call that rebuilds them from their indices, values and size."""

from typing import Any

from retrograd.backend.sparse_array import Sparse, check_compressed, check_indices
from retrograd.core import Tensor
from retrograd.foundation.lazy_imports import lazy_module
from retrograd.interop.safe_unpickler import short_repr
from retrograd.ops import layout as layouts
from retrograd.ops.as_tensor import from_numpy
from retrograd.ops.methods import concrete

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "strided")


def rebuild_call(tensor: Tensor) -> tuple[str, tuple] | None:
    """Return PyTorch's name of the function that rebuilds a sparse tensor, and its arguments; None if not sparse."""
    array = concrete(tensor.detach())
    if not isinstance(array, Sparse):
        return None
    pattern = array.pattern
    parts: tuple = tuple(from_numpy(part) for part in (*pattern.arrays.values(), array.values))
    parts += (tuple(array.shape),)
    if pattern.layout == "sparse_coo":
        parts += (pattern.coalesced,)
    return "torch._utils _rebuild_sparse_tensor", (getattr(layouts, pattern.layout), parts)


def layout_named(name: Any) -> layouts.layout:
    """Return the layout with PyTorch's name, "torch.sparse_coo"."""
    short = name.removeprefix("torch.") if isinstance(name, str) else ""
    if short not in LAYOUTS:
        raise ValueError(f"damaged: a layout {short_repr(name)}")
    found: layouts.layout = getattr(layouts, short)
    return found


def rebuild(layout: Any, data: Any) -> Tensor:
    """Return the sparse tensor of the arguments of `_rebuild_sparse_tensor`; ValueError for any that describe none."""
    sparse = lazy_module("retrograd.sparse.construct")
    try:
        if layout is layouts.sparse_coo:
            indices, values, size, *coalesced = data
            _check_parts(size, indices, values)
            made: Tensor = sparse.sparse_coo_tensor(
                indices, values, size, is_coalesced=bool(coalesced and coalesced[0])
            )
            check_indices("load", made.value.pattern)
        else:
            compressed, plain, values, size = data
            _check_parts(size, compressed, plain, values)
            made = sparse.sparse_compressed_tensor(compressed, plain, values, size, layout=layout)
            check_compressed("load", made.value.pattern)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"damaged: a sparse tensor: {error}") from None
    if layout is layouts.sparse_coo and made.value.pattern.coalesced:
        _check_order(made)
    return made


def _check_parts(size: Any, *parts: Any) -> None:
    plain = all(isinstance(p, Tensor) and not isinstance(p.value, Sparse) for p in parts)
    if not plain or not isinstance(size, tuple) or not all(type(s) is int and s >= 0 for s in size):
        raise ValueError("damaged: a sparse tensor of other parts than tensors and a size")


def _check_order(x: Tensor) -> None:
    """Refuse entries that are said to be sorted and are not."""
    pattern = x.value.pattern
    if not type(pattern)(pattern.indices, pattern.sizes).in_order:
        raise ValueError("damaged: a sparse tensor whose entries are not in order")
