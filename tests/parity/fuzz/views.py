"""Lines that make views, copies in another order, and parts of a tensor."""

import numpy as np
import torch

from .picker import Picker, Tensors


def view(p: Picker, v: Tensors) -> str:
    """Return a view of a tensor, or a copy in another shape."""
    i = p.one(v)
    x, d, e = v[i], p.dim(v[i]), p.dim(v[i])
    size = p.size(x, d)
    start, rows = p.between(0, size), p.pick(_divisors(x.numel()))
    return p.pick((
        f"v[{i}].transpose({d}, {e})", f"v[{i}].unsqueeze({d})", f"v[{i}].squeeze()", f"v[{i}].squeeze({d})",
        f"v[{i}].narrow({d}, {start}, {p.between(0, size - start)})",
        f"v[{i}].reshape({rows}, -1)", f"v[{i}].view({rows}, -1)", f"v[{i}].flatten()", f"v[{i}].ravel()",
        f"v[{i}].expand({p.between(1, 2)}, {', '.join(['-1'] * x.ndim) or '1'})",
        f"v[{i}].select({d}, {p.indices(size, 1)[0]})", f"v[{i}].flip({d})",
        f"v[{i}].diagonal({p.between(-1, 1)})" if x.ndim > 1 else f"v[{i}].unfold(0, 1, 1)",
        f"v[{i}].unfold({d}, {p.between(min(size, 1), size)}, {p.between(1, 2)})",
        f"v[{i}].movedim({d}, {e})", f"v[{i}].roll({p.between(-2, 2)}, {d})", f"v[{i}].contiguous()",
        f"v[{i}].clone()", f"v[{i}].tril()" if x.ndim > 1 else f"v[{i}].repeat(2)",
        f"v[{i}].permute({', '.join(str(n) for n in p.rng.permutation(x.ndim))})" if x.ndim else f"v[{i}].T",
        f"v[{i}].expand_as(v[{p.partner(v, i)}])", f"L.broadcast_to(v[{i}], v[{p.partner(v, i)}].shape)",
        f"v[{i}].view_as(v[{i}])", f"v[{i}].reshape_as(v[{p.one(v)}])", f"v[{i}].unflatten({d}, (1, -1))",
        f"v[{i}].repeat_interleave(2, {d})", f"v[{i}].swapaxes({d}, {e})", f"v[{i}].mT",
        f"v[{i}].real" if x.is_complex() else f"v[{i}].T", f"v[{i}].imag" if x.is_complex() else f"v[{i}].H",
        f"L.view_as_real(v[{i}])" if x.is_complex() else f"v[{i}].rot90()", f"v[{i}].conj()",
        f"v[{i}].triu(1)", f"v[{i}][...]",
    ))  # fmt: skip


def several(p: Picker, v: Tensors) -> str:
    """Return one of several views that are made together."""
    i = p.one(v)
    d = p.dim(v[i])
    size = p.size(v[i], d)
    which = p.pick((0, -1))
    return p.pick((
        f"v[{i}].chunk(2, {d})[{which}]", f"v[{i}].unbind({d})[{which}]",
        f"v[{i}].split({p.between(1, 2)}, {d})[{which}]",
        f"v[{i}].tensor_split(2, {d})[{which}]", f"v[{i}].split([{size - size // 2}, {size // 2}], {d})[{which}]",
    ))  # fmt: skip


def strided(p: Picker, v: Tensors) -> str:
    """Return an `as_strided` view of elements that the tensor has itself, or, without gradients, its memory has."""
    i = p.pick(
        [i for i, t in v.items() if not t.requires_grad or (t._base is None and t.is_contiguous())] or [p.one(v)]
    )
    available = v[i].untyped_storage().nbytes() // v[i].element_size()
    offset = p.between(0, max(available - 1, 0))
    shape, strides, last = [], [], offset
    extent = 1
    for _ in range(p.between(0, 2)):  # from the last dimension to the first, so that no two elements share memory
        stride = extent * p.pick((1, 1, 2, 3))
        size = p.between(1, 1 + max(0, available - 1 - last) // stride)
        shape, strides, last, extent = [size, *shape], [stride, *strides], last + (size - 1) * stride, size * stride
    return f"v[{i}].as_strided({tuple(shape)}, {tuple(strides)}, {offset})"


def indexing(p: Picker, v: Tensors) -> str:
    """Return a tensor indexed by a mask or a key."""
    i = p.one(v)
    masks = _masks(v, v[i])
    if masks and p.chance(0.4):
        return f"v[{i}][v[{p.pick(masks)}]]"
    return f"v[{i}][{p.key(v[i])}]"


def mask_key(p: Picker, v: Tensors, x: torch.Tensor) -> str | None:
    """Return a mask among the tensors as a key, if there is one."""
    masks = _masks(v, x)
    return f"v[{p.pick(masks)}]" if masks else None


def _masks(v: Tensors, x: torch.Tensor) -> list[int]:
    return [j for j in v if v[j].dtype == torch.bool and v[j].shape == x.shape[: v[j].ndim] and v[j].ndim]


def _divisors(number: int) -> list[int]:
    return [1, *(int(n) for n in np.arange(1, number + 1) if number % n == 0)]
