"""Samples with tensors in other memory layouts: where PyTorch's result is contiguous, so is ours."""

import warnings
from typing import Any

import torch

import retrograd as rg

from .comparison import different_aliasing, lost_contiguity
from .conversion import Converter, rebind
from .entries import counterpart
from .sides import Side, attempt, flat, unchanged


def transposed(value: Any) -> Any:
    """Return arguments with the same elements in column-major order."""
    if isinstance(value, torch.Tensor):
        if value.ndim < 2 or value.layout != torch.strided:
            return value
        turned = value.detach().permute(*reversed(range(value.ndim))).contiguous()
        return turned.permute(*reversed(range(value.ndim))).requires_grad_(value.requires_grad)
    return _inside(value, transposed)


def repeated(value: Any) -> Any:
    """Return arguments in which the tensors repeat their first slice, by a stride of 0."""
    if isinstance(value, torch.Tensor):
        if value.ndim < 2 or value.layout != torch.strided or not value.numel():
            return value
        return value.detach()[:1].expand(value.shape).requires_grad_(value.requires_grad)
    return _inside(value, repeated)


def _inside(value: Any, change: Any) -> Any:
    if type(value) in (tuple, list):
        return type(value)(change(v) for v in value)
    if isinstance(value, dict):
        return {k: change(v) for k, v in value.items()}
    return value


LAYOUTS = {"transposed": transposed, "repeated": repeated}


def contiguous(value: Any) -> Any:
    """Return arguments in which the tensors are contiguous."""
    return value.detach().contiguous() if isinstance(value, torch.Tensor) else _inside(value, contiguous)


def refuses_values(entry: Any, sample: Any, layout: str) -> bool:
    """Return whether ours refuses the values of a layout in contiguous memory too, as matrices with equal rows."""
    converter = Converter()
    convert = lambda value: converter.convert(contiguous(LAYOUTS[layout](value)))  # noqa: E731
    return attempt(Side(rg, counterpart(entry), sample, rebind(unchanged), unchanged, convert))[1] is not None


def compare_layouts(entry: Any, sample: Any, layout: str) -> str | None:
    """Return which result is contiguous, or shares memory with an input, in one library only; or that ours refuses."""
    theirs = Side(torch, entry.op, sample, unchanged, unchanged, LAYOUTS[layout])
    converter = Converter()
    convert = lambda value: converter.convert(LAYOUTS[layout](value))  # noqa: E731
    ours = Side(rg, counterpart(entry), sample, rebind(unchanged), unchanged, convert)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, refused = attempt(theirs)
        found, refusal = attempt(ours)
    pairs = list(zip(flat(expected), flat(found), strict=False))
    pairs = [(a, b) for a, b in pairs if isinstance(a, torch.Tensor) and isinstance(b, rg.Tensor)]
    if refused is None and refusal is not None and not refuses_values(entry, sample, layout):
        return f"ours raises {type(refusal).__name__}: {refusal}"
    if refused is not None or any(tuple(a.shape) != tuple(b.shape) for a, b in pairs):
        return None
    return lost_contiguity(pairs) or different_aliasing(pairs, theirs.tensors, ours.tensors)
