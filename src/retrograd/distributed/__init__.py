"""PyTorch's names for the ranks of a script, over the transports of pipelines.

Scripts for `torch.distributed.pipelining` and for data parallelism find their names here; any other name of
`torch.distributed` is refused with a remedy.  `retrograd run -n 4 --transport mpi script.py` starts the ranks.
"""

import datetime
import importlib.util
import os
from collections.abc import Callable
from functools import partial
from typing import Any

from retrograd.core import Tensor
from retrograd.distributed.collectives import (
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from retrograd.distributed.communication_hooks import GradBucket
from retrograd.distributed.device_mesh import DeviceMesh, init_device_mesh
from retrograd.distributed.groups import (
    BACKENDS,
    GroupMember,
    check_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    group,
    initialized_group,
    is_member,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    split_group,
)
from retrograd.distributed.init_methods import Rendezvous, find_processes, own_address
from retrograd.distributed.monitored_barrier import monitored_barrier
from retrograd.distributed.nn.functional import all_reduce as all_reduce_with_gradient
from retrograd.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from retrograd.distributed.point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from retrograd.distributed.reduce_op import ReduceOp
from retrograd.distributed.stores import (
    DistError,
    DistNetworkError,
    DistStoreError,
    FileStore,
    HashStore,
    PrefixStore,
    QueueEmptyError,
    Store,
)
from retrograd.distributed.tcp_store import TCPStore
from retrograd.distributed.work import Work
from retrograd.foundation.lazy_imports import lazy_submodule
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn.batchnorm import rank_sums
from retrograd.pipelining.transports import Transport, connect_process, get_transport, is_launched
from retrograd.pipelining.transports.interface import PeerLost
from retrograd.pipelining.transports.process_group import (
    ProcessGroup,
    default_group,
    isolate_default_group,
    set_default_group,
)
from retrograd.pipelining.transports.sockets import Sockets
from retrograd.pipelining.transports.thread_ranks import ThreadRank, outcomes_of_threads, rank_of_thread
from retrograd.utils.data.sampler import default_ranks

__all__ = [
    "Backend", "DeviceMesh", "DistError", "DistNetworkError", "DistStoreError", "FileStore", "GradBucket",
    "GroupMember", "HashStore", "P2POp", "PrefixStore", "ProcessGroup", "QueueEmptyError", "ReduceOp", "Store",
    "TCPStore", "Work", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_gather_single", "all_reduce",
    "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list",
    "destroy_process_group", "gather", "gather_object", "get_backend", "get_default_backend_for_device",
    "get_global_rank", "get_group_rank", "get_node_local_rank", "get_process_group_ranks", "get_rank", "get_world_size",
    "group", "init_device_mesh", "init_process_group", "irecv", "is_available", "is_backend_available",
    "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched",
    "is_ucc_available", "is_xccl_available", "isend", "monitored_barrier", "new_group", "new_subgroups",
    "new_subgroups_by_enumeration", "recv", "recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_single",
    "reduce_scatter_tensor", "run_threads", "scatter", "scatter_object_list", "send", "send_object_list", "split_group",
]  # fmt: skip

# PyTorch's later names.
all_gather_single, reduce_scatter_single = all_gather_into_tensor, reduce_scatter_tensor


class Backend(str):
    """The name of a backend in lower case; its attributes are PyTorch's names of those that exist here.

    >>> Backend("GLOO") == Backend.GLOO == "gloo"
    True
    """

    __slots__ = ()
    GLOO, MPI, FAKE = "gloo", "mpi", "fake"

    def __new__(cls, name: str) -> "Backend":
        """Return the name.  Raises ValueError for another type."""
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, got {type(name).__name__}")
        return super().__new__(cls, name.lower())


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: datetime.timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Join the ranks of a script; a script that is started alone is a group of one rank.

    backend: "mpi" or "ray"; None or "gloo", whichever has started the script; "fake", this process alone.
    timeout: how long a rank waits for a message; None: 20 times the longest operation so far, at least 10 minutes.

    If no launcher has started the script, as in processes of `multiprocessing`, the ranks find each other as in
    PyTorch, and connect by TCP:

    - init_method: "env://", the default, which reads the environment variables MASTER_ADDR, MASTER_PORT, RANK and
      WORLD_SIZE; "tcp://host:port", the address of rank 0; "file:///path", a file that does not exist yet.
    - world_size, rank: instead of the variables.
    - store: instead of init_method; it needs both.

    For a script of `retrograd run` or `mpiexec`, world_size and rank are checked against those of the launcher, and
    the messages take its connections.  group_name, pg_options and device_id have no effect.

    Raises ValueError for another backend, another init_method and missing or wrong numbers, and if called twice;
    DistNetworkError and TimeoutError if the ranks do not find each other.

    >>> import retrograd as rg
    >>> rg.distributed.init_process_group()
    >>> rg.distributed.get_rank(), rg.distributed.get_world_size()
    (0, 1)
    >>> rg.distributed.destroy_process_group()
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if backend is not None:
        check_backend("init_process_group", backend)
    if store is not None and (init_method is not None or world_size < 1 or rank < 0):
        raise ValueError("init_process_group: a store needs world_size and rank, and excludes init_method")
    kind, found = _transport_name(backend or "gloo"), None
    if kind == "auto" and not is_launched():
        found = find_processes(init_method, rank, world_size, store, timeout)
    seconds = None if timeout is None else timeout.total_seconds()
    group = ProcessGroup(_connected(found, seconds) if found else get_transport(kind, seconds), backend or "gloo")
    for name, given, actual in (("world_size", world_size, group.size()), ("rank", rank, group.rank())):
        if given not in (-1, actual):
            raise ValueError(
                f"init_process_group: {name} is {given}, and the launcher's is {actual}; start the script with "
                f"`retrograd run -n {max(world_size, 1)} --transport mpi SCRIPT`, which sets RANK and WORLD_SIZE"
            )
    set_default_group(group)


def _transport_name(backend: str) -> str:
    """Return the name of the transport of a backend; ranks that are threads have one for all."""
    name = BACKENDS[backend]
    return "auto" if name == "threads" and rank_of_thread() is not None else name


def _connected(found: Rendezvous, timeout: float | None) -> Transport:
    """Return the connections of ranks that have found each other; pipelines of this process use them too."""
    make = partial(Sockets, found.rank, found.size, found.store, own_address(found.store))
    transport = make(timeout)
    connect_process(make)
    return transport


def run_threads(script: Callable[..., Any], ranks: int, *args: Any) -> list[Any]:
    """Return by rank what `script(*args)` returns on ranks that are threads of this process.

    Each thread has its own default group, which is initialized before and destroyed after the script.  The threads
    exchange copies, as processes do.  It serves to try and to test scripts; they do not run faster than on one rank.

    Raises the first error of a rank; the other ranks end with PeerLost when they wait for it.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> def script():
    ...     x = rg.tensor([dist.get_rank()])
    ...     dist.all_reduce(x)
    ...     return x.item()
    >>> dist.run_threads(script, 3)
    [3, 3, 3]
    """

    def run(transport: ThreadRank) -> Any:
        isolate_default_group()
        init_process_group()
        try:
            return script(*args)
        finally:
            if is_initialized():
                destroy_process_group()

    outcomes = outcomes_of_threads(ranks, run)
    errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    if errors:
        raise next((error for error in errors if not isinstance(error, PeerLost)), errors[0])
    return outcomes


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Complete saves in the background, and forget the default group; its processes stay connected, and may join again.

    Raises what `result()` of such a save raises.
    """
    if group is None or group is default_group():
        found = initialized_group()
        try:
            for complete in list(found.before_destroy):
                complete()
        finally:
            set_default_group(None)


def is_available() -> bool:
    """Return True: there is always a group of at least one rank."""
    return True


def is_initialized() -> bool:
    """Return whether there is a default group."""
    return default_group() is not None


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return the rank of this process in the group; -1 if it is no member.

    Raises ValueError before `init_process_group`.
    """
    return initialized_group(group).rank() if is_member(group) else -1


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return the number of ranks in the group; -1 if this rank is no member.

    Raises ValueError before `init_process_group`.
    """
    return initialized_group(group).size() if is_member(group) else -1


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return the name that the group was made with.  Raises ValueError before `init_process_group`."""
    return initialized_group(group).name


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the rank of this process among those on its host, as the launcher has numbered them.

    Raises RuntimeError without a launcher and a fallback.
    """
    found = os.environ.get("LOCAL_RANK", fallback_rank)
    if found is None:
        raise RuntimeError(
            "LOCAL_RANK is not set; start the script by `retrograd run -n 2 SCRIPT`, or pass fallback_rank"
        )
    return int(found)


def get_default_backend_for_device(device: Any) -> str:
    """Return "gloo", the name for the transport that has started the script, for any device."""
    return "gloo"


def is_torchelastic_launched() -> bool:
    """Return whether a launcher such as `retrograd run` has started this process: LOCAL_RANK is in the environment."""
    return "LOCAL_RANK" in os.environ


def is_backend_available(backend: str) -> bool:
    """Return whether `init_process_group` takes the name."""
    return backend.lower() in BACKENDS


def is_mpi_available() -> bool:
    """Return whether mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


def is_gloo_available() -> bool:
    """Return True: the name stands for the transport that has started the script."""
    return True


def is_nccl_available() -> bool:
    """Return False: there are no GPUs."""
    return False


def is_ucc_available() -> bool:
    """Return False: there is no backend of this name."""
    return False


def is_xccl_available() -> bool:
    """Return False: there are no GPUs."""
    return False


def _size_or_one(group: ProcessGroup | None) -> int:
    """Return the number of ranks; 1 without a group."""
    return get_world_size(group) if group is not None or is_initialized() else 1


def _sum_over_ranks(x: Tensor, group: ProcessGroup | None) -> Tensor:
    """Return the sum over ranks, through which gradients pass."""
    return all_reduce_with_gradient(x, group=group)


default_ranks.rank, default_ranks.size = get_rank, get_world_size
rank_sums.size, rank_sums.total = _size_or_one, _sum_over_ranks


# Packages that are imported on first use.
_PACKAGES = ("algorithms", "checkpoint", "fsdp", "optim", "pipelining", "tensor")


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return lazy_submodule(__name__, name)
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(
        f"retrograd.distributed has no {name!r}: it has {', '.join(__all__)}.  Ranks exchange other "
        f"values through pipelines: rg.pipelining.Pipeline, or the schedules with PyTorch's names"
    )


suggest_in_module(globals())
