"""Private names of PyTorch's nested tensors, for programs that use them."""
