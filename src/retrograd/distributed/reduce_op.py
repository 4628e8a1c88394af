"""How reductions combine the tensors of ranks."""

import enum
from collections.abc import Sequence
from functools import reduce

from retrograd.core import Tensor, registry


class ReduceOp(enum.Enum):
    """How reductions combine the tensors of the ranks; `AVG` divides the sum by their number."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


_OPERATORS = {
    ReduceOp.SUM: "add",
    ReduceOp.AVG: "add",
    ReduceOp.PRODUCT: "mul",
    ReduceOp.MIN: "minimum",
    ReduceOp.MAX: "maximum",
    ReduceOp.BAND: "bitwise_and",
    ReduceOp.BOR: "bitwise_or",
    ReduceOp.BXOR: "bitwise_xor",
}


def combine(op: ReduceOp, tensors: Sequence[Tensor]) -> Tensor:
    """Return the combination of the tensors of all ranks, in the order of ranks."""
    found: Tensor = reduce(registry[_OPERATORS[op]], tensors)
    return found / len(tensors) if op is ReduceOp.AVG else found
