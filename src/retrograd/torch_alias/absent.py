"""Parts of PyTorch that do not exist here, and which libraries import without using them.

Quantization (`torch.ao`, `torch.quantization`) and remote procedure calls (`torch.distributed.rpc`).
"""

import functools
from types import SimpleNamespace
from typing import Any

from retrograd.nn import Identity

DeQuantStub = QuantStub = Identity  # positions in a model that quantization would change
api = SimpleNamespace(_require_initialized=lambda function: function)  # of `distributed.rpc`


def is_available() -> bool:
    """Return False."""
    return False


class Absent:
    """The base of classes and functions that do not exist: calling one raises NotImplementedError."""

    def __new__(cls, *args: Any, **settings: Any) -> Any:
        raise NotImplementedError(f"retrograd has no {cls.__name__}: neither quantization nor remote procedure calls")


@functools.cache
def __getattr__(name: str) -> type:
    """Return a class that has no instances, for each public name."""
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (Absent,), {})
