"""Factorisations without derivatives in PyTorch."""

import torch


def _ldl_solve(LD, pivots, B, hermitian):
    """Call ldl_solve with pivots expanded; PyTorch reads out of bounds when they broadcast."""
    lead = torch.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    LD, B = (x.detach().expand(*lead, *x.shape[-2:]) for x in (LD, B))
    return torch.linalg.ldl_solve(LD, pivots.expand(*lead, -1).contiguous(), B, hermitian=hermitian)


CALLS = {
    "geqrf": lambda x: torch.geqrf(x.detach()),
    "linalg.ldl_factor": lambda A, hermitian: torch.linalg.ldl_factor(A.detach(), hermitian=hermitian),
    "linalg.ldl_factor_ex": lambda A, hermitian, check_errors: torch.linalg.ldl_factor_ex(
        A.detach(), hermitian=hermitian
    ),
    "linalg.ldl_solve": _ldl_solve,
}

# They have derivatives here: the laws hold these to differences.
KNOWN = {(name, aspect): "PyTorch has no derivative" for name in CALLS for aspect in ("gradient", "second order")}
KNOWN["linalg.ldl_solve", "values"] = "PyTorch reads imaginary parts of the diagonals of Hermitian matrices"
