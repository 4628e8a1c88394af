"""One operation of the ranks of a group, as messages between them."""

from collections.abc import Generator, Iterable, Mapping
from typing import Any

from retrograd.core import Tensor
from retrograd.distributed.work import Steps, Work, abandon, fail_running
from retrograd.pipelining.transports.fingerprint import DIGEST, Fingerprint, describe_mismatch, library_versions
from retrograd.pipelining.transports.interface import RankMismatchError
from retrograd.pipelining.transports.process_group import ProcessGroup
from retrograd.pipelining.transports.rank_messaging import Kind, Sent, at_once
from retrograd.pipelining.transports.serialization import pack, unpack


class Exchange:
    """One rank's part of an operation that all ranks of a group start in the same order.

    fields: texts that must be the same on all ranks, by name.  number: of the operation, the same on all ranks.

    Raises RuntimeError if this rank has not waited for the end of an operation: the next ones would be combined with
    those that other ranks started before.  Raises the RankMismatchError of an earlier operation that this
    rank has not waited for.
    """

    def __init__(self, group: ProcessGroup, call: str, fields: Mapping[str, Any]) -> None:
        if group.peers.timed_out:
            raise RuntimeError(
                f"{call}: {group.peers.timed_out} has ended at its timeout on this rank, so the operations of the "
                f"ranks no longer match; start the script again"
            )
        group.peers.operations.raise_mismatch()
        self.group = group
        self.call = call
        self.number = group.calls
        self.fingerprint = Fingerprint.of_call(call, **({} if self.number else library_versions()), **fields)
        group.calls += 1
        self._sent: list[Sent] = []

    def send(self, rank: int, payload: Any, phase: int = 0) -> None:
        """Send a payload to a rank, this one included, from the memory of its tensors.

        They must not be written to until `delivered` is true.
        phase: the number of the message among those from this rank to that one.
        """
        packet = dict(self.fingerprint.fields), payload
        self._sent.append(send_direct(self.group, rank, self._subject(phase), packet))

    def delivered(self) -> bool:
        """Return whether the tensors that were sent may be written to again."""
        self._sent = [sent for sent in self._sent if not sent()]
        return not self._sent

    def receive(self, ranks: Iterable[int], phase: int = 0) -> Generator[Any, None, dict[int, Any]]:
        """Wait for the payloads of ranks and until all is delivered; return them by rank.  Raises RankMismatchError."""
        found = yield from self.receive_early(ranks, phase)
        yield self.delivered
        return found

    def receive_early(self, ranks: Iterable[int], phase: int) -> Generator[Any, None, dict[int, Any]]:
        """Wait for the payloads of ranks, while this rank's own may still be read."""
        direct, sources, subject = self.group.peers.direct, list(ranks), self._subject(phase)
        yield lambda: all((rank, subject) in direct for rank in sources)
        return {rank: self._take(rank, phase) for rank in sources}

    def agree(self) -> Steps:
        """Compare the fingerprints of all ranks.  Raises RankMismatchError, on every rank."""
        comm = self.group.comm
        if self.group.size() == 1:
            return []
        if comm is None:
            yield from self._compare_fields(("agrees", self.number))
            return []
        mine = self.fingerprint.digest()
        found = bytearray(DIGEST * comm.size)
        request = comm.Iallgather(mine, found)
        yield request.Test
        if found != mine * comm.size:
            # Messages, because a blocking call of MPI would wait without a limit for a rank that does not answer.
            yield from self._compare_fields(("differs", bytes(found)))
        return []

    def _compare_fields(self, subject: Any) -> Steps:
        """Exchange the fields of all ranks by messages; raise RankMismatchError if they differ."""
        group, own, ranks = self.group, dict(self.fingerprint.fields), range(self.group.size())
        for rank in ranks:
            send_direct(group, rank, subject, own)
        yield lambda: all((rank, subject) in group.peers.direct for rank in ranks)
        found = {group.ranks[rank]: take_direct(group, rank, subject) for rank in ranks}
        if all(fields == own for fields in found.values()):
            return []
        group.peers.renew_comm()  # the ranks may have started different operations on it
        error = RankMismatchError(describe_mismatch(found))
        fail_running(group, error)
        group.renumber(self.number)
        raise error

    def _subject(self, phase: int) -> tuple[str, int, int]:
        return "collective", self.number, phase

    def _take(self, rank: int, phase: int) -> Any:
        fields, payload = take_direct(self.group, rank, self._subject(phase))
        own = self.fingerprint.fields
        if fields != own:
            ranks = self.group.ranks
            raise RankMismatchError(describe_mismatch({ranks[rank]: fields, ranks[self.group.rank()]: own}))
        return payload


def start(group: ProcessGroup, exchange: Exchange, steps: Steps, async_op: bool) -> Work | None:
    """Return the handle of an operation if `async_op`; else run it to its end.

    All ranks first compare their fingerprints, so that they all raise RankMismatchError if these differ.
    """
    if async_op:
        return Work(group, exchange.call, _with_agreement(exchange, steps), collective=True)
    try:
        if group.size() > 1:
            Work(group, exchange.call, exchange.agree(), exchange.fingerprint, collective=True).wait()
        Work(group, exchange.call, steps, collective=True).wait()
    except TimeoutError:
        group.peers.timed_out = exchange.call
        raise
    return None


def agree(group: ProcessGroup, call: str, fields: Mapping[str, Any]) -> None:
    """Wait until all ranks of the group have called this.  Raises RankMismatchError if their fields differ."""
    start(group, Exchange(group, call, fields), nothing(), False)


def agree_on_parameters(
    group: ProcessGroup, call: str, params: Iterable[tuple[str, Tensor]], options: Mapping[str, Any]
) -> None:
    """Raise RankMismatchError, on every rank, if parameters or options differ.

    params: the name of each parameter, "" if it has none; names, shapes, dtypes and requires_grad are compared.
    """
    of_each = {
        f"parameter {i}": f"{name + ': ' if name else ''}{p.detach().aval}, requires_grad={p.requires_grad}"
        for i, (name, p) in enumerate(params)
    }
    agree(group, call, {**of_each, **options})


def nothing() -> Steps:
    """Do nothing: an operation that is waited for begins with a message from all to all."""
    return []
    yield  # makes it a generator


def send_direct(group: ProcessGroup, rank: int, subject: Any, payload: Any) -> Sent:
    """Send a payload to a rank of the group, outside of launches; return whether its tensors may be written to."""
    peers, packed = group.peers, pack(payload)
    if rank == group.rank():
        peers.accept_direct(rank, subject, packed)
        return at_once
    sent = peers.send(rank, Kind.DIRECT, subject, packed)
    peers.poll()
    return sent


def take_direct(group: ProcessGroup, rank: int, subject: Any) -> Any:
    """Return the first payload of a rank with this subject, which has arrived."""
    direct = group.peers.direct
    waiting = direct[rank, subject]
    packed = waiting.popleft()
    if not waiting:
        del direct[rank, subject]
    return unpack(*packed)


def _with_agreement(exchange: Exchange, steps: Steps) -> Steps:
    """Run an operation and the comparison of fingerprints at the same time."""
    agreement, result = exchange.agree(), None
    agreed = next(agreement, None)
    try:
        ready = next(steps)
    except StopIteration as end:
        ready, result = None, end.value
    if agreed is not None:
        yield agreed
        try:
            yield from agreement
        except RankMismatchError:
            abandon(steps)
            raise
    if ready is None:
        return result or []
    yield ready
    return (yield from steps)
