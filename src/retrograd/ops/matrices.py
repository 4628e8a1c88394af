"""Matrices made of vectors, and parts of matrices."""
