"""A machine of PyTorch that saves copies; experiments change it further."""

from contextlib import nullcontext

import torch
from torch.autograd.graph import saved_tensors_hooks

from .machine import Machine


class Copying(Machine):
    """PyTorch that saves copies, as if no saved value were ever overwritten."""

    def __init__(self) -> None:
        super().__init__(torch)

    def execute(self, line: str) -> Exception | None:
        """Run one line; return the exception with which PyTorch refuses it."""
        with nullcontext() if "L.func" in line else saved_tensors_hooks(torch.clone, torch.clone):
            return super().execute(line)

    def effective(self) -> bool:
        """Return whether anything was changed."""
        raise NotImplementedError
