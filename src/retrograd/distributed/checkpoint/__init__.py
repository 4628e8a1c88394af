"""Checkpoints that ranks write and read together, each its own part, as `torch.distributed.checkpoint`."""

from retrograd.distributed.checkpoint.api import async_save, load, save

__all__ = ["async_save", "load", "save"]
