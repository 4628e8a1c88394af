"""`LinearCrossEntropyOptions`: how `linear_cross_entropy` may trade time for memory."""

from dataclasses import dataclass
from typing import Any

from retrograd.foundation.describe_value import describe

_POLICIES = ("auto", "accurate", "balanced", "compact")


@dataclass(frozen=True, slots=True)
class LinearCrossEntropyOptions:
    """Options for the chunks of `linear_cross_entropy`, with PyTorch's names and checks.

    They are hints: all rows are computed together, with any number of backward passes and any transform. `acc_dtype`,
    the dtype of sums, must be None or that of the input, or float32 for float16.

    >>> from retrograd import nn
    >>> nn.LinearCrossEntropyOptions(batch_chunk_size=64).chunking_method
    'auto'
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"acc_policy must be one of {', '.join(_POLICIES)}, got {self.acc_policy!r}")
        if not _is_method(self.chunking_method):
            raise ValueError(
                f"chunking_method must be None, 'auto', 'aspect_ratio' or 'aspect_ratio:N' with N from 1 up, got "
                f"{self.chunking_method!r}"
            )
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be None or an integer from 1 up, got {describe(size)}")


def _is_method(method: str | None) -> bool:
    name, colon, factor = str(method).partition(":")
    if method is None or method == "auto":
        return True
    return name == "aspect_ratio" and (not colon or (factor.isdigit() and int(factor) > 0))
