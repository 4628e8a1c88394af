"""PyTorch's calls for the operators of `ops/matrix_equations.py`: it has none of these."""

NO_COUNTERPART = {
    "solve_sylvester": "SciPy's; PyTorch solves no matrix equations",
    "sqrtm": "SciPy's; PyTorch has no root of matrices",
}
