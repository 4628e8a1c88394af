"""Parameters that are divided among the ranks, as in `torch.distributed.fsdp`."""

from typing import Any

from retrograd.distributed.fsdp.fsdp_module import FSDPModule, UnshardHandle
from retrograd.distributed.fsdp.fully_shard import (
    full_state_dict,
    fully_shard,
    load_full_state_dict,
    register_fsdp_forward_method,
)
from retrograd.distributed.fsdp.policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle", "full_state_dict",
    "fully_shard", "load_full_state_dict", "register_fsdp_forward_method",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("FullyShardedDataParallel", "FSDP"):
        raise AttributeError(
            f"retrograd.distributed.fsdp has no {name!r}: divide the model in place by fully_shard(layer) for each "
            f"layer and fully_shard(model)"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
