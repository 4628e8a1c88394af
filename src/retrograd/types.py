"""Types for annotations, by the names in PyTorch's `torch.types`.

>>> def scaled(x: "rg.Tensor", by: Number) -> "rg.Tensor":
...     return x * by
"""

import os
from typing import IO

from retrograd.core import Tensor as Tensor
from retrograd.core.aval import SymbolicSize
from retrograd.core.device import device
from retrograd.core.dtype import DType
from retrograd.ops.layout import Size as Size
from retrograd.ops.storage import TypedStorage, UntypedStorage

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number = int | float | bool
Device = device | str | int | None
FileLike = str | os.PathLike[str] | IO[bytes]
Storage = UntypedStorage | TypedStorage
IntLikeType = int | SymbolicSize
FloatLikeType = float
BoolLikeType = bool
_int, _float, _bool, _dtype, _device, _size = int, float, bool, DType, device, Size | list[int] | tuple[int, ...]
