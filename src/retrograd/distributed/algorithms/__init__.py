"""Algorithms around data parallelism, as in `torch.distributed.algorithms`."""

from retrograd.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
