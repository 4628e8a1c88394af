"""Matrices made of vectors."""

# PyTorch's own gradient fails: it has overwritten what it needs.
NO_GRADIENT = {"vander": ("x",)}
