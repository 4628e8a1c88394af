"""Dual tensors of nested ones: the tangents are kept beside the buffers."""

from typing import Any

from retrograd.core import Op
from retrograd.levels.forward import OfLevel
from retrograd.nested.dispatch import family
from retrograd.nested.rules.pointwise import elementwise


@family(OfLevel)
def beside_buffers(op: Op, args: tuple, params: dict) -> Any:
    """Values and tangents lie alike, so what sets and reads tangents does so for the buffers."""
    return elementwise(op, args, params)
