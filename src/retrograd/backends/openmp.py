"""Whether OpenMP runs threads, under the names of torch.backends.openmp: never, the kernels have their own threads."""


def is_available() -> bool:
    """Whether OpenMP runs threads: never."""
    return False
