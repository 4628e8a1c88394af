"""Utilities around training: data loading, checkpointing, logging."""

from retrograd.foundation.lazy_imports import lazy_names
from retrograd.utils import checkpoint as checkpoint
from retrograd.utils.progress import progress
from retrograd.utils.threads import blas_threads, get_num_threads, set_num_threads, short_turns

__all__ = [
    "blas_threads", "checkpoint", "get_num_threads", "progress", "set_num_threads", "short_turns", "swap_tensors",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "_mode_utils": "retrograd.utils._mode_utils",
        "_python_dispatch": "retrograd.utils._python_dispatch",
        "_pytree": "retrograd.utils._pytree",
        "benchmark": "retrograd.utils.benchmark",
        "collect_env": "retrograd.utils.collect_env",
        "data": "retrograd.utils.data",
        "flop_counter": "retrograd.utils.flop_counter",
        "plot_metrics": "retrograd.utils.plot_metrics",
        "swap_tensors": "retrograd.utils.tensor_swap",
        "tensorboard": "retrograd.utils.tensorboard",
    },
)
