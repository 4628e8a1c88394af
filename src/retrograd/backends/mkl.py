"""Whether Intel's MKL computes, under the names of torch.backends.mkl: never, products are NumPy's and retrograd's."""


def is_available() -> bool:
    """Whether MKL computes: never."""
    return False
