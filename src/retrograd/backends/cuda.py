"""Settings of CUDA's libraries, under the names of torch.backends.cuda: accepted, without effect on the CPU."""

from types import SimpleNamespace

matmul = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
)


def is_built() -> bool:
    """Whether this build has kernels for CUDA: never."""
    return False
