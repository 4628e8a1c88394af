"""The names of `torch.multiprocessing`: those of Python's `multiprocessing`, which sends copies of tensors."""

from multiprocessing import *  # noqa: F403
