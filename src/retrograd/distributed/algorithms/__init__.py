"""Algorithms around data parallelism, as in `torch.distributed.algorithms`."""

from retrograd.distributed.algorithms.join import Join

__all__ = ["Join"]
