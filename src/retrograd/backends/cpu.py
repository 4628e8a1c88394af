"""The instruction sets of the processor, under the names of torch.backends.cpu."""

from retrograd import kernels

_NAMES = {64: "AVX512", 32: "AVX2"}


def get_cpu_capability() -> str:
    """Return the instruction set of the kernels in PyTorch's words: "AVX512", "AVX2" or "DEFAULT".

    >>> get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
    True
    """
    return _NAMES.get(kernels.get_vector_bytes(), "DEFAULT")
