"""Whether Apple's GPU can be used, under the names of torch.backends.mps: never, tensors are on the CPU."""


def is_available() -> bool:
    """Whether tensors can be on Apple's GPU: never."""
    return False


def is_built() -> bool:
    """Whether this build has kernels for Apple's GPU: never."""
    return False
