"""A barrier that names the ranks that do not come."""

import datetime
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from retrograd.distributed.exchange import send_direct, take_direct
from retrograd.distributed.groups import initialized_group, is_member
from retrograd.distributed.work import Steps, Work
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.pipelining.transports.fingerprint import format_ranks
from retrograd.pipelining.transports.interface import PeerLost
from retrograd.pipelining.transports.process_group import ProcessGroup


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: datetime.timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until all ranks of the group have called it; name the ranks that do not come within the timeout.

    timeout: by default that of the group.  wait_all_ranks: name all these ranks, not only the first one.

    Raises RuntimeError, on all ranks that have called it, if some have not.

    >>> import retrograd.distributed as dist
    >>> def script():
    ...     if dist.get_rank() == 0:
    ...         try:
    ...             dist.monitored_barrier(timeout=datetime.timedelta(seconds=0.1))
    ...         except RuntimeError as error:
    ...             return str(error)
    >>> dist.run_threads(script, 2)[0]
    'monitored_barrier: rank 1 has not called it within 0.1 s'
    """
    if not is_member(group):
        return
    members = initialized_group(group)
    number, others = members.barriers, range(1, members.size())
    members.barriers += 1
    if members.rank() != 0:
        send_direct(members, 0, ("barrier", number), [])
        # Rank 0 may come at the end of the timeout, and then wait for the others.
        answer = _receive(members, [0], ("missing", number), None if timeout is None else 2 * timeout)
        _raise_missing(members, answer.get(0, [0]), timeout)
        return
    found = _receive(members, others, ("barrier", number), timeout)
    missing = [rank for rank in others if rank not in found][: None if wait_all_ranks else 1]
    for rank in others:
        send_direct(members, rank, ("missing", number), missing)
    _raise_missing(members, missing, timeout)


def _receive(
    group: ProcessGroup, ranks: Sequence[int], subject: tuple[str, int], timeout: datetime.timedelta | None
) -> dict[int, list[Any]]:
    """Return the messages of ranks that arrive within the timeout, by rank; no rank waits for one that has ended."""
    direct = group.peers.direct

    def steps() -> Steps:
        left = group.peers.left
        yield lambda: all((rank, subject) in direct or rank in left for rank in ranks)
        return []

    with suppress(TimeoutError, PeerLost):
        Work(group, "monitored_barrier", steps(), senders=ranks).wait(timeout)
    return {rank: take_direct(group, rank, subject) for rank in ranks if (rank, subject) in direct}


def _raise_missing(group: ProcessGroup, missing: Sequence[int], timeout: datetime.timedelta | None) -> None:
    if missing:
        ranks = format_ranks([group.ranks[rank] for rank in missing])
        within = "" if timeout is None else f" within {timeout.total_seconds():g} s"
        raise RuntimeError(f"monitored_barrier: {ranks} {'have' if len(missing) > 1 else 'has'} not called it{within}")


suggest_in_module(globals())
