"""The names of PyTorch's experiments that scripts use."""
