"""PyTorch's calls and known differences of matrices built from vectors."""

# PyTorch's own gradient fails: it has overwritten what it needs.
NO_GRADIENT = {"vander": ("x",)}
