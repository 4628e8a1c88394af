"""The names of `torch._subclasses` and `torch._guards`: there are no fake tensors here.

Tensors on the device "meta" have shapes only.
"""

from typing import Any

from retrograd.core import Tensor


class FakeTensor(Tensor):
    """A tensor of shapes only; none is an instance."""


class FunctionalTensor(Tensor):
    """A tensor of a program without writes; none is an instance."""


class FakeTensorMode:
    """A mode in which tensors are fake; there is none."""


def is_fake(x: Any) -> bool:
    """Return False."""
    return False


def active_fake_mode() -> None:
    """Return None."""


def mb_unwrap_functional_tensor(x: Any) -> Any:
    """Return the tensor itself."""
    return x
