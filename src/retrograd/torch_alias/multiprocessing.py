"""The names of `torch.multiprocessing`: those of Python's `multiprocessing`, which sends copies of tensors."""

from multiprocessing import *  # noqa: F403


def get_sharing_strategy() -> str:
    """Return "file_descriptor", PyTorch's default: tensors are copied, so nothing depends on it."""
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept "file_descriptor" or "file_system", and change nothing; ValueError for others."""
    if new_strategy not in ("file_descriptor", "file_system"):
        raise ValueError(f"set_sharing_strategy: expected 'file_descriptor' or 'file_system', got {new_strategy!r}")
