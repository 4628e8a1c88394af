"""Orthogonal polynomials."""
