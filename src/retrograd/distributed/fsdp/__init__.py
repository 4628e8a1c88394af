"""Parameters that are divided among the ranks, as in `torch.distributed.fsdp`."""

from retrograd.distributed.fsdp.fully_shard import (
    full_state_dict,
    fully_shard,
    load_full_state_dict,
    sharded_state_dict,
)

__all__ = ["full_state_dict", "fully_shard", "load_full_state_dict", "sharded_state_dict"]
