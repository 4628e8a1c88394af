"""Checkpoints that ranks write and read together, each its own part, as `torch.distributed.checkpoint`."""

from retrograd.distributed.checkpoint.api import async_save, load, save
from retrograd.distributed.checkpoint.state_by_name import load_training_state, training_state

__all__ = ["async_save", "load", "load_training_state", "save", "training_state"]
