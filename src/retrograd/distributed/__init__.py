"""PyTorch's names for the ranks of a script, over the transports of pipelines.

Scripts for `torch.distributed.pipelining` and for data parallelism find their names here; any other name of
`torch.distributed` is refused with a remedy.  `retrograd run -n 4 --transport mpi script.py` starts the ranks.
"""

import datetime
from typing import Any

from retrograd.distributed.collectives import (
    ReduceOp,
    all_gather,
    all_gather_object,
    all_reduce,
    broadcast,
    broadcast_object_list,
    initialized_group,
)
from retrograd.pipelining.transports import get_transport
from retrograd.pipelining.transports.fingerprint import Fingerprint
from retrograd.pipelining.transports.process_group import ProcessGroup, default_group, set_default_group
from retrograd.utils.data.sampler import default_ranks

__all__ = [
    "ProcessGroup",
    "ReduceOp",
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_initialized",
]

BACKENDS = {"gloo": "auto", "cpu:gloo": "auto", "mpi": "mpi", "ray": "ray", "threads": "threads", "fake": "threads"}


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: datetime.timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Join the ranks that a launcher has started; a script that none has started is a group of one rank.

    backend: "mpi" or "ray"; None or "gloo", whichever has started the script; "fake", this process alone.
    timeout: how long a rank waits for a message; None: 20 times the longest operation so far, at least 10 minutes.
    world_size, rank: checked against those of the launcher, if given.  init_method, store, group_name, pg_options and
    device_id are for other ways of finding the ranks, and have no effect.

    Raises ValueError for another backend, and if world_size or rank differ from the launcher's; RuntimeError if called
    twice.

    >>> import retrograd as rg
    >>> rg.distributed.init_process_group()
    >>> rg.distributed.get_rank(), rg.distributed.get_world_size()
    (0, 1)
    >>> rg.distributed.destroy_process_group()
    """
    if is_initialized():
        raise RuntimeError("trying to initialize the default process group twice!")
    if backend is not None and backend not in BACKENDS:
        known = ", ".join(sorted(BACKENDS))
        raise ValueError(f"init_process_group: there is no backend {backend!r}; there are {known}")
    seconds = None if timeout is None else timeout.total_seconds()
    group = ProcessGroup(get_transport(BACKENDS[backend or "gloo"], seconds), backend or "gloo")
    for name, given, actual in (("world_size", world_size, group.size()), ("rank", rank, group.rank())):
        if given not in (-1, actual):
            raise ValueError(
                f"init_process_group: {name} is {given}, and the launcher's is {actual}; start the script with "
                f"`retrograd run -n {max(world_size, 1)} --transport mpi SCRIPT`, which sets RANK and WORLD_SIZE"
            )
    set_default_group(group)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Forget the default group; its processes stay connected, and may join again."""
    if group is None or group is default_group():
        initialized_group()
        set_default_group(None)


def is_available() -> bool:
    """Return True: there is always a group of at least one rank."""
    return True


def is_initialized() -> bool:
    """Return whether there is a default group."""
    return default_group() is not None


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return the rank of this process.  Raises ValueError before `init_process_group`."""
    return initialized_group(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return the number of ranks.  Raises ValueError before `init_process_group`."""
    return initialized_group(group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return the name that the group was made with.  Raises ValueError before `init_process_group`."""
    return initialized_group(group).name


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: datetime.timedelta | None = None,
) -> None:
    """Wait until all ranks have called it.

    Raises NotImplementedError for `async_op`, and ValueError before `init_process_group`.  device_ids has no effect,
    and the timeout is the group's.
    """
    if async_op:
        raise NotImplementedError("barrier: async_op is not supported; call it without")
    initialized_group(group).launch(lambda link: None, Fingerprint.of_call("barrier"))


default_ranks.rank, default_ranks.size = get_rank, get_world_size


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(
        f"retrograd.distributed has no {name!r}: it has {', '.join(__all__)}.  Ranks exchange other "
        f"values through pipelines: rg.pipelining.Pipeline, or the schedules with PyTorch's names"
    )
