"""PyTorch's calls and known differences of tensor products."""

import torch


def _cross(x, other, dim):
    """Call cross without the warning that a missing `dim` gives."""
    return torch.linalg.cross(*torch.broadcast_tensors(x, other), dim=x.shape.index(3) if dim is None else dim)


CALLS = {
    "chain_matmul": torch.linalg.multi_dot,
    "cross": _cross,
    "linalg.cross": _cross,
}
