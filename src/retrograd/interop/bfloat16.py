"""bfloat16, which NumPy lacks: the upper half of a float32, so that widening loses nothing."""

import numpy as np

STORAGE, SAFETENSORS = "BFloat16", "BF16"  # its names in PyTorch's and in safetensors files


def to_float32(halves: np.ndarray) -> np.ndarray:
    """Convert bfloat16 values, given as 16-bit unsigned integers in any byte order, to float32."""
    return (halves.astype(np.uint32) << 16).view(np.float32)
