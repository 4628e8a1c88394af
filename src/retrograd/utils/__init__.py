"""Utilities around training: data loading, checkpointing, logging."""

import importlib
from typing import Any

from retrograd.utils import checkpoint as checkpoint
from retrograd.utils.progress import progress
from retrograd.utils.threads import blas_threads, get_num_threads, set_num_threads, short_turns

__all__ = ["blas_threads", "checkpoint", "get_num_threads", "progress", "set_num_threads", "short_turns"]

_LATER = ("data", "plot_metrics", "tensorboard")


def __getattr__(name: str) -> Any:
    """Import the slower modules on first access."""
    if name in _LATER:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
