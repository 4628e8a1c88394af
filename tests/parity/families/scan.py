"""PyTorch's calls and known differences of scans and differences."""

import torch


def _gradient(x, spacing, dim, edge_order):
    """Call gradient; PyTorch computes the weights of the neighbors in the dtype of the coordinates."""
    real = x.abs().dtype
    if isinstance(spacing, list):
        spacing = [s.to(real) if isinstance(s, torch.Tensor) else s for s in spacing]
    return torch.gradient(x, spacing=spacing, edge_order=edge_order, **({} if dim is None else {"dim": dim}))


CALLS = {"gradient": _gradient}
