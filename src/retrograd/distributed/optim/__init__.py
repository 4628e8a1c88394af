"""Optimizers whose state is divided among the ranks, as in `torch.distributed.optim`."""

from retrograd.distributed.optim.zero_redundancy import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]
