"""`torch.cuda.nvtx`: ranges for NVIDIA's profiler, which record nothing here."""

from collections.abc import Iterator
from typing import Any

from retrograd.core.blocks import generator_block


def range_push(msg: str, *args: Any) -> int:
    """Return 0: no range begins."""
    return 0


def range_pop() -> int:
    """Return 0: no range ends."""
    return 0


def mark(msg: str) -> None:
    """Do nothing."""


@generator_block
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:  # PyTorch's name
    """Return a block, or decorator, which nothing records."""
    yield
