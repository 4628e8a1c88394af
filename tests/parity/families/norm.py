"""PyTorch's calls and known differences of norms and operators derived from them."""

import torch


def _cond(A, p):
    """Compute cond by its definition; PyTorch's fails in second order, where it writes into the inverse."""
    if p in (None, 2, -2):
        return torch.linalg.cond(A, p)
    return torch.linalg.matrix_norm(A, p) * torch.linalg.matrix_norm(torch.linalg.inv(A), p)


CALLS = {
    "frobenius_norm": lambda x, dim, keepdim: torch.linalg.vector_norm(x, 2, dim, keepdim),
    "linalg.cond": _cond,
    "nuclear_norm": lambda x, dim, keepdim: torch.linalg.matrix_norm(x, "nuc", dim or (0, 1), keepdim),
}
