"""Dual tensors of nested ones: the tangents are nested over buffers of the same structure."""

from typing import Any

from retrograd.core import Op
from retrograd.levels.tangent_table import LevelOperator
from retrograd.nested.dispatch import rule_for_family
from retrograd.nested.rules.pointwise import elementwise


@rule_for_family(LevelOperator)
def dual_of_buffers(op: Op, args: tuple, params: dict) -> Any:
    """Apply the operators that set and read tangents to the buffers, since values and tangents have the same
    layout."""
    return elementwise(op, args, params)
