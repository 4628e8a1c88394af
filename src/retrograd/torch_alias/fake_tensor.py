"""The names of `torch._subclasses`: there are no fake tensors here; those on the device "meta" have shapes only."""

from typing import Any

from retrograd.core import Tensor


class FakeTensor(Tensor):
    """A tensor of shapes only; none is an instance."""


class FakeTensorMode:
    """A mode in which tensors are fake; there is none."""


def is_fake(x: Any) -> bool:
    """Return False."""
    return False
