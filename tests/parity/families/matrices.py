"""PyTorch's calls and known differences of matrices built from vectors."""

# PyTorch's own gradient fails: it has overwritten a value that it needs.
NO_GRADIENT = {"vander": ("x",)}
