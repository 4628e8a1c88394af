"""The public names of PyTorch: which exist in retrograd, and why the others do not.  Writes docs/names.md."""
