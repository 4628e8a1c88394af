"""Products of vectors, matrices and tensors, beside `matmul` and `einsum`."""
