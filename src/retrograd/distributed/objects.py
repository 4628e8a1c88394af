"""Operations on objects that are pickled."""

import pickle
from typing import Any

from retrograd.core import Tensor
from retrograd.distributed.exchange import Exchange, send_direct, start, take_direct
from retrograd.distributed.groups import chosen_rank, initialized_group, is_member
from retrograd.distributed.work import Steps, Work
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.pipelining.transports.process_group import ProcessGroup


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Write the object of each rank, which is pickled, into a list, in the order of ranks, on every rank.

    Raises ValueError unless the list has an entry for each rank, and before `init_process_group`.
    """
    if not is_member(group):
        return
    members = initialized_group(group)
    _check_length("all_gather_object", object_list, members)
    sent = dict.fromkeys(range(members.size()), pickle.dumps(obj))
    object_list[:] = _exchange(members, "all_gather_object", {}, sent, range(members.size()))


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Write the object of each rank into a list on rank `dst`, by default 0.

    Raises ValueError unless rank `dst` has a list with an entry for each rank.
    """
    if not is_member(group):
        return
    members = initialized_group(group)
    root = chosen_rank("gather_object", members, dst, group_dst, 0)
    receives = members.rank() == root
    if receives:
        _check_length("gather_object", object_gather_list or [], members)
    sources = range(members.size()) if receives else ()
    found = _exchange(members, "gather_object", {"dst": root}, {root: pickle.dumps(obj)}, sources)
    if receives and object_gather_list is not None:
        object_gather_list[:] = found


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Replace the entries of a list by those of rank `src`, by default 0, which are pickled."""
    if not is_member(group):
        return
    members = initialized_group(group)
    root = chosen_rank("broadcast_object_list", members, src, group_src, 0)
    sends = members.rank() == root
    sent = dict.fromkeys(range(members.size()), pickle.dumps(list(object_list))) if sends else {}
    object_list[:] = _exchange(members, "broadcast_object_list", {"src": root}, sent, [root])[0]


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Write entry `rank` of a list of rank `src`, by default 0, into the first entry of a list on each rank.

    Raises ValueError for an empty output list, and unless rank `src` has an entry for each rank.
    """
    if not is_member(group):
        return
    members = initialized_group(group)
    if not scatter_object_output_list:
        raise ValueError(
            "scatter_object_list: expected argument scatter_object_output_list to be a list of size at least 1"
        )
    root = chosen_rank("scatter_object_list", members, src, group_src, 0)
    sent = {}
    if members.rank() == root:
        _check_length("scatter_object_list", scatter_object_input_list or [], members)
        sent = {rank: pickle.dumps(each) for rank, each in enumerate(scatter_object_input_list or [])}
    scatter_object_output_list[0] = _exchange(members, "scatter_object_list", {"src": root}, sent, [root])[0]


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send the entries of a list, which are pickled, to rank `dst`."""
    members = initialized_group(group)
    target = chosen_rank("send_object_list", members, dst, group_dst, None)
    send_direct(members, target, "objects", pickle.dumps(list(object_list)))


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Replace the entries of a list by those that rank `src` sends; return that rank.  None: any rank."""
    members = initialized_group(group)
    chosen = src is not None or group_src is not None
    source = chosen_rank("recv_object_list", members, src, group_src, None) if chosen else None
    found: list[int] = []

    def steps() -> Steps:
        yield lambda: arrived_from(members, "objects", source, found)
        object_list[:] = pickle.loads(take_direct(members, found[0], "objects"))
        return []

    Work(members, "recv_object_list", steps(), senders=senders_of(members, source)).wait()
    return members.ranks[found[0]]


def senders_of(group: ProcessGroup, source: int | None) -> list[int]:
    """Return the ranks from which a message may come: `source`, or all others."""
    return [rank for rank in range(group.size()) if rank != group.rank()] if source is None else [source]


def arrived_from(group: ProcessGroup, subject: Any, source: int | None, found: list[int]) -> bool:
    """Return whether a message has arrived, from `source` or from any rank; its sender is put into `found`."""
    ranks = range(group.size()) if source is None else [source]
    found[:] = [rank for rank in ranks if (rank, subject) in group.peers.direct][:1]
    return bool(found)


def _exchange(
    group: ProcessGroup, call: str, fields: dict[str, Any], sent: dict[int, bytes], sources: Any
) -> list[Any]:
    """Return the objects that ranks send to this one, in the order of `sources`."""
    exchange = Exchange(group, call, fields)
    objects: list[Any] = []

    def steps() -> Steps:
        for rank, packed in sent.items():
            exchange.send(rank, packed)
        received = yield from exchange.receive(sources)
        objects.extend(pickle.loads(received[rank]) for rank in sources)
        nothing: list[Tensor] = []
        return nothing

    start(group, exchange, steps(), False)
    return objects


def _check_length(call: str, entries: list[Any], group: ProcessGroup) -> None:
    if len(entries) != group.size():
        raise ValueError(f"{call}: the list has {len(entries)} entries for {group.size()} ranks")


suggest_in_module(globals())
