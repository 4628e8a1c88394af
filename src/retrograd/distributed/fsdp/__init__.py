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


# Names of PyTorch's older way of dividing parameters, and what replaces them.
_REPLACED = {
    **dict.fromkeys(
        ("FSDP", "FullyShardedDataParallel"),
        "divide the model in place by fully_shard(layer) for each layer, then fully_shard(model)",
    ),
    "ShardingStrategy": "fully_shard(reshard_after_forward=True) is FULL_SHARD, False is SHARD_GRAD_OP",
    "CPUOffload": "fully_shard(offload_policy=CPUOffloadPolicy())",
    "MixedPrecision": "fully_shard(mp_policy=MixedPrecisionPolicy(...))",
    "BackwardPrefetch": "fully_shard gathers parameters as each layer needs them",
    **dict.fromkeys(
        (
            "StateDictType", "StateDictConfig", "FullStateDictConfig", "LocalStateDictConfig", "ShardedStateDictConfig",
            "OptimStateDictConfig", "FullOptimStateDictConfig", "ShardedOptimStateDictConfig", "OptimStateKeyType",
        ),
        "full_state_dict(model) and load_full_state_dict(model, state), or rg.distributed.checkpoint",
    ),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _REPLACED:
        raise AttributeError(f"retrograd.distributed.fsdp has no {name!r}: {_REPLACED[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
