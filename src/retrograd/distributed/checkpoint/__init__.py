"""Checkpoints that ranks write and read together, each its own part, as `torch.distributed.checkpoint`."""

from retrograd.distributed.checkpoint.api import async_save, load, save
from retrograd.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from retrograd.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from retrograd.distributed.checkpoint.state_by_name import load_training_state, training_state
from retrograd.distributed.checkpoint.stateful import Stateful
from retrograd.foundation.lazy_imports import lazy_names

__all__ = [
    "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter", "Stateful",
    "async_save", "load", "load_training_state", "save", "training_state",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(__name__, {"state_dict": "retrograd.distributed.checkpoint.state_dict"})
