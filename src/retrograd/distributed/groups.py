"""Groups of the ranks of a script, and the numbers of ranks in them."""

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from retrograd.distributed.exchange import agree, send_direct, take_direct
from retrograd.distributed.work import Steps, Work
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.pipelining.transports.process_group import ProcessGroup, default_group

BACKENDS = {"gloo": "auto", "cpu:gloo": "auto", "mpi": "mpi", "ray": "ray", "threads": "threads", "fake": "threads"}


def check_backend(call: str, name: str) -> None:
    """Raise ValueError for a name that no backend has."""
    if name not in BACKENDS:
        raise ValueError(f"{call}: there is no backend {name!r}; there are {', '.join(sorted(BACKENDS))}")


class _World(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """Return the default group."""
        return default_group()


class GroupMember(metaclass=_World):
    """`WORLD`: the default group.  `NON_GROUP_MEMBER`: what `new_group` returns on ranks that are no members."""

    NON_GROUP_MEMBER = -100


group = GroupMember


def initialized_group(given: ProcessGroup | None = None) -> ProcessGroup:
    """Return the group, or the default one; ValueError if there is none."""
    found = default_group() if given is None else given
    if found is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    if not isinstance(found, ProcessGroup):
        raise ValueError("this rank is no member of the group; only its members may take part in its operations")
    return found


def is_member(given: Any) -> bool:
    """Return whether this rank is a member of what `new_group` has returned, or of the default group."""
    return given is None or isinstance(given, ProcessGroup)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: datetime.timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Return a group of some ranks, or `GroupMember.NON_GROUP_MEMBER` on the others; all ranks call it.

    ranks: numbers in the default group; None: all of them.  timeout: by default that of the default group.  backend: a
    name that `init_process_group` takes; the transport is that of the default group.  use_local_synchronization: only
    the members call it.  sort_ranks: number the members in ascending order of `ranks`, instead of in the order given.
    The other arguments have no effect.

    Raises ValueError for ranks that do not exist or repeat, for another backend, and before `init_process_group`;
    RankMismatchError, on every rank, for different ranks; TimeoutError and PeerLost as other operations do.

    >>> import retrograd.distributed as dist
    >>> dist.init_process_group()
    >>> dist.get_world_size(dist.new_group([0]))
    1
    >>> dist.destroy_process_group()
    """
    world = initialized_group()
    chosen = list(range(world.size())) if ranks is None else list(ranks)
    if len(set(chosen)) < len(chosen) or not all(0 <= rank < world.size() for rank in chosen):
        raise ValueError(f"new_group: expected different ranks from 0 to {world.size() - 1}, got {chosen}")
    if backend is not None:
        check_backend("new_group", backend)
    members = sorted(chosen) if sort_ranks else chosen
    if use_local_synchronization:
        made = _made_by_members(world, members, timeout)
    else:
        made = _made_by_all("new_group", world, [members], timeout)[0]
    return GroupMember.NON_GROUP_MEMBER if made is None else made


def _made_by_all(
    call: str, parent: ProcessGroup, lists: Sequence[Sequence[int]], timeout: datetime.timedelta | None
) -> list[ProcessGroup | None]:
    """Return groups of ranks of a group, None for those without this rank, when all its ranks have called this.

    They wait for each other by messages first: to make a communicator, MPI would wait without a limit.
    """
    agree(parent, call, {"ranks": lists})
    return [parent.subgroup(ranks, None if timeout is None else timeout.total_seconds()) for ranks in lists]


def _made_by_members(
    parent: ProcessGroup, ranks: Sequence[int], timeout: datetime.timedelta | None
) -> ProcessGroup | None:
    """Return the group of some ranks when these have called this; None on the others."""
    if parent.rank() not in ranks:
        return None
    subject = ("new_group", tuple(ranks))

    def steps() -> Steps:
        for rank in ranks:
            send_direct(parent, rank, subject, [])
        yield lambda: all((rank, subject) in parent.peers.direct for rank in ranks)
        for rank in ranks:
            take_direct(parent, rank, subject)
        return []

    Work(parent, "new_group", steps()).wait()
    return parent.subgroup(ranks, None if timeout is None else timeout.total_seconds(), by_members=True)


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: datetime.timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Return the group of `group_size` ranks in a row that this rank belongs to, and all of these groups.

    Raises ValueError unless group_size divides the number of ranks.
    """
    size = initialized_group(group).size()
    if not group_size or size % group_size:
        raise ValueError(f"new_subgroups: group_size must divide the number of ranks {size}, got {group_size}")
    starts = range(0, size, group_size)
    return new_subgroups_by_enumeration([range(first, first + group_size) for first in starts], timeout)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Iterable[Sequence[int]],
    timeout: datetime.timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Return the group that this rank belongs to, or None, and the groups of all given lists of ranks.

    Raises ValueError if a rank is in two lists.
    """
    lists = [list(ranks) for ranks in ranks_per_subgroup_list]
    named = [rank for ranks in lists for rank in ranks]
    if len(set(named)) < len(named):
        raise ValueError(f"new_subgroups_by_enumeration: a rank is in more than one list: {lists}")
    groups = [new_group(ranks, timeout) for ranks in lists]
    return next((made for made in groups if isinstance(made, ProcessGroup)), None), groups


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: Iterable[Sequence[int]] | None = None,
    timeout: datetime.timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> ProcessGroup | None:
    """Return the part of a group that this rank belongs to, or None; all its ranks call it.

    split_ranks: for each part, the numbers of its ranks in the group.  timeout: by default that of the group.  The
    other arguments have no effect.

    Raises ValueError for ranks that do not exist or repeat, and before `init_process_group`; RankMismatchError, on
    every rank, for different parts.

    >>> from retrograd.distributed import get_rank, run_threads
    >>> run_threads(lambda: get_rank(split_group(split_ranks=[[0, 2], [1]])), 3)
    [0, 0, 1]
    """
    parent = initialized_group(parent_pg)
    parts = [sorted(ranks) for ranks in split_ranks or ()]
    named = [rank for ranks in parts for rank in ranks]
    if not named or len(set(named)) < len(named) or not all(0 <= rank < parent.size() for rank in named):
        raise ValueError(f"split_group: expected lists of different ranks from 0 to {parent.size() - 1}, got {parts}")
    return next((made for made in _made_by_all("split_group", parent, parts, timeout) if made is not None), None)


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """Return the numbers that the members of a group have in the default group."""
    return list(initialized_group(group).ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the number in a group of a rank of the default group.  Raises ValueError if it is no member."""
    ranks = initialized_group(group).ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group!r}, whose ranks are {list(ranks)}")
    return ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the number in the default group of a rank of a group.  Raises ValueError if there is no such rank."""
    ranks = initialized_group(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group!r}, which has {len(ranks)} ranks")
    return ranks[group_rank]


def chosen_rank(call: str, group: ProcessGroup, rank: int | None, group_rank: int | None, default: int | None) -> int:
    """Return the number in the group of the rank given by its number in the default group, or by that in the group.

    Raises ValueError if both or, without a default, neither are given, and for a rank that does not exist.
    """
    if rank is not None and group_rank is not None:
        raise ValueError(f"{call}: a rank is given twice, by its number in the group and in the default group")
    if group_rank is None:
        rank = default if rank is None else rank
        if rank is None:
            raise ValueError(f"{call}: no rank is given")
        if rank not in group.ranks:
            raise ValueError(f"{call}: there is no rank {rank}; {_known(group)}")
        return group.ranks.index(rank)
    if not 0 <= group_rank < group.size():
        raise ValueError(f"{call}: there is no rank {group_rank} in the group; it has {group.size()} ranks")
    return group_rank


def _known(group: ProcessGroup) -> str:
    if group.ranks == tuple(range(group.size())):
        return f"ranks are 0 to {group.size() - 1}"
    return f"ranks are {', '.join(map(str, group.ranks))}"


suggest_in_module(globals())
