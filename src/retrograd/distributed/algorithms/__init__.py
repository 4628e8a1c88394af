"""Algorithms around data parallelism, as in `torch.distributed.algorithms`."""

from retrograd.distributed.algorithms.join import Join, Joinable, JoinHook
from retrograd.foundation.lazy_imports import lazy_names

__all__ = ["Join", "JoinHook", "Joinable"]

__getattr__, __dir__ = lazy_names(__name__, {"ddp_comm_hooks": "retrograd.distributed.algorithms.ddp_comm_hooks"})
