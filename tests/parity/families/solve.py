"""PyTorch's calls and known differences of linear systems, inverses and determinants."""

import torch

from ..quiet import quiet

TRIANGLE = "PyTorch gives gradients for the triangle of a factor that is not read, too"
DIAGONAL = "PyTorch takes the diagonal of a factor to be real in some places, and not in others"

CALLS = {
    "triangular_solve": quiet(torch.triangular_solve),
    "lu_solve": lambda x, LU_data, LU_pivots: torch.linalg.lu_solve(LU_data, LU_pivots, x),
}

KNOWN = {
    ("cholesky_inverse", "values"): DIAGONAL,
    ("cholesky_inverse", "gradient"): TRIANGLE,
    ("cholesky_inverse", "second order"): TRIANGLE,
    ("cholesky_solve", "gradient"): TRIANGLE,
    ("cholesky_solve", "second order"): TRIANGLE,
    ("linalg.lstsq", "gradient"): "ours also differentiates the singular values",
    ("linalg.lstsq", "second order"): "ours also differentiates the singular values",
}
