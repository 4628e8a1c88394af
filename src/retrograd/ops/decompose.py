"""Factorisations of matrices: Cholesky, QR, LU, eigenvalues, singular values."""
