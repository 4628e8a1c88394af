"""Settings of CUDA's libraries, under the names of torch.backends.cuda."""

from collections.abc import Iterator

from retrograd.backend.devices import cupy_device
from retrograd.core.blocks import generator_block
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


_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}  # without effect: attention is one function


def flash_sdp_enabled() -> bool:
    """Return what `enable_flash_sdp` has set."""
    return _sdp["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Allow the named kernel of attention, or not; it has no effect here."""
    _sdp["flash"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Return what `enable_mem_efficient_sdp` has set."""
    return _sdp["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allow the named kernel of attention, or not; it has no effect here."""
    _sdp["mem_efficient"] = bool(enabled)


def math_sdp_enabled() -> bool:
    """Return what `enable_math_sdp` has set."""
    return _sdp["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Allow the named kernel of attention, or not; it has no effect here."""
    _sdp["math"] = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    """Return what `enable_cudnn_sdp` has set."""
    return _sdp["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allow the named kernel of attention, or not; it has no effect here."""
    _sdp["cudnn"] = bool(enabled)


@generator_block
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """Return a block in which these kernels of attention are allowed; it has no effect here.

    >>> from retrograd.backends import cuda
    >>> with cuda.sdp_kernel(enable_flash=False):
    ...     cuda.flash_sdp_enabled()
    False
    """
    before = dict(_sdp)
    _sdp.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _sdp.update(before)
