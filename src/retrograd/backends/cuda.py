"""Settings of CUDA's libraries, under the names of torch.backends.cuda."""

from retrograd.backend.devices import cupy_device
from retrograd.ops.precision_settings import get_float32_matmul_precision, set_float32_matmul_precision


class MatmulSettings:
    """Settings of matrix products on a GPU; those of sums in half precision are accepted without effect."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True

    @property
    def allow_tf32(self) -> bool:
        """Whether products of float32 may be computed in TF32: `set_float32_matmul_precision` with another name."""
        return get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        set_float32_matmul_precision("high" if allowed else "highest")


matmul = MatmulSettings()


def is_built() -> bool:
    """Whether CuPy and a GPU are there."""
    return cupy_device().find_cupy() is not None
