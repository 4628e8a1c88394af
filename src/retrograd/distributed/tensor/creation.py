"""Whole tensors of which each rank makes its part, as `torch.distributed.tensor.zeros`."""

from collections.abc import Sequence
from typing import Any

from retrograd.core import Tensor
from retrograd.distributed.device_mesh import DeviceMesh
from retrograd.distributed.tensor.dtensor import DTensor, distribute_tensor
from retrograd.distributed.tensor.placements import Placement
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.ops.functions import functions

Placements = Sequence[Placement] | None


def full(
    size: Sequence[int],
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Placements = None,
) -> DTensor:
    """Return a tensor of one value.

    device_mesh, placements: as in `distribute_tensor`.  layout has no effect.

    >>> from retrograd.distributed import run_threads
    >>> from retrograd.distributed.tensor import Shard
    >>> run_threads(lambda: full((2, 3), 7, placements=[Shard(1)]).to_local().shape, 2)
    [(2, 2), (2, 1)]
    """
    one = functions["full"]((), fill_value, dtype=dtype).expand(size)
    return _part(one, None, requires_grad, device_mesh, placements)


def zeros(
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Placements = None,
) -> DTensor:
    """Return a tensor of zeros, with the arguments of `full`."""
    return _part(functions["zeros"]((), dtype=dtype).expand(*size), None, requires_grad, device_mesh, placements)


def ones(
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Placements = None,
) -> DTensor:
    """Return a tensor of ones, with the arguments of `full`."""
    return _part(functions["ones"]((), dtype=dtype).expand(*size), None, requires_grad, device_mesh, placements)


empty = zeros


def rand(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Placements = None,
) -> DTensor:
    """Return uniform values between 0 and 1: those of the whole tensor that the first rank draws."""
    return _part(functions["rand"](*size, dtype=dtype), 0, requires_grad, device_mesh, placements)


def randn(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Placements = None,
) -> DTensor:
    """Return normal values: those of the whole tensor that the first rank draws."""
    return _part(functions["randn"](*size, dtype=dtype), 0, requires_grad, device_mesh, placements)


def _part(
    whole: Tensor, source: int | None, requires_grad: bool, mesh: DeviceMesh | None, placements: Placements
) -> DTensor:
    found = distribute_tensor(whole, mesh, placements, src_data_rank=source)
    found.requires_grad = requires_grad
    return found


suggest_in_module(globals())
