"""Settings of `fully_shard`: dtypes of the computation, and where parameters are."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes in which a block computes and sums gradients; its parameters and their gradients keep their own.

    - param_dtype: of the whole parameters, which are exchanged in it, and of activations; None: that of the parts.
    - reduce_dtype: in which gradients are summed over the ranks; None: param_dtype.
    - output_dtype: to which floating results of the block are converted; None: they are not.
    - cast_forward_inputs: convert floating arguments of the block to param_dtype.
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters stay where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters are in host memory, which they are in anyway; `pin_memory` has no effect."""

    pin_memory: bool = True
