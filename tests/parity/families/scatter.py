"""PyTorch's calls and known differences of gathering and scattering."""

import torch


def _cut(src, index):
    """Return src as far as the index reaches: PyTorch has no gradient for the rest."""
    return src[tuple(map(slice, index.shape))] if isinstance(src, torch.Tensor) else src


def _scatter(x, dim, index, src, value, reduce):
    """Call scatter; with reduce=, PyTorch has no gradient for src."""
    if reduce is None:
        return torch.scatter(x, dim, index, _cut(src, index))
    return torch.scatter_reduce(x, dim, index, src, {"add": "sum", "multiply": "prod"}[reduce])


CALLS = {
    "scatter": _scatter,
    "scatter_add": lambda x, dim, index, src: torch.scatter_add(x, dim, index, _cut(src, index)),
    "scatter_reduce": lambda x, dim, index, src, reduce, include_self: torch.scatter_reduce(
        x, dim, index, _cut(src, index), reduce, include_self=include_self
    ),
}
