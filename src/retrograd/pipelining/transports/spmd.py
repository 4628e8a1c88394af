"""Launches where every process runs the same script and is one rank."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from retrograd.pipelining.schedules.actions import Message
from retrograd.pipelining.transports.failures import causes, pack_failure, unpack_failure
from retrograd.pipelining.transports.interface import Aborted, Arrival, Link, PeerLost
from retrograd.pipelining.transports.rank_messaging import EMPTY, Kind, Packed, Peers
from retrograd.pipelining.transports.serialization import pack, unpack

STATUS_TIMEOUT = 1.0  # seconds for the ranks to report what they are doing
GRACE = 5.0  # seconds for ranks without a sign of life, before the others continue without them


def launch(peers: Peers, work: Callable[[Link], Any], timeout: float | None) -> list[Any]:
    """Run `work(link)` for this process's rank, wait for the others, and return all results or raise the first
    failure."""
    if peers.lost:
        raise PeerLost(f"a step has ended without rank {_format_ranks(peers.lost)}; start the script again")
    link = _ProcessLink(peers, timeout)
    peers.doing = link.state
    try:
        result = _run_work(peers, work, link)
        link.doing = result.outcome
        peers.end(result.outcome, result.packed)
        _wait_for_all(peers, timeout)
        return _results(peers, result)
    finally:
        peers.close()


class _WorkResult(NamedTuple):
    """The outcome of this process's rank."""

    outcome: str
    packed: Packed
    value: Any = None
    failure: BaseException | None = None


def _run_work(peers: Peers, work: Callable[[Link], Any], link: Link) -> _WorkResult:
    """Run the work of this process's rank; a failure is caught, to be sent to all ranks."""
    try:
        value = work(link)
        return _WorkResult("done", pack(value) if peers.size > 1 else EMPTY, value)
    except BaseException as failure:
        return _WorkResult(_outcome(failure), pack_failure(failure), failure=failure)


def _outcome(failure: BaseException) -> str:
    if isinstance(failure, Aborted):
        return "aborted"
    return "timed out" if any(isinstance(cause, TimeoutError) for cause in causes(failure)) else "failed"


def _wait_for_all(peers: Peers, timeout: float | None) -> None:
    """Wait until every rank has ended the launch; the others are lost."""
    try:
        _wait(peers, timeout)
    except KeyboardInterrupt:
        # The others learn of the interrupt from the end of this rank; give them time to end, too.
        peers.until(lambda: not peers.missing, GRACE)
        raise
    finally:
        peers.lost = peers.missing


def _wait(peers: Peers, timeout: float | None) -> None:
    while not peers.until(lambda: peers.over or not peers.missing, timeout):
        assert timeout is not None
        answers = peers.ask(peers.missing, timeout)  # a rank that answers is slow but alive
        silent = [rank for rank in peers.missing if rank not in answers]
        if silent:
            raise TimeoutError(
                f"rank {peers.rank} is done and has waited {2 * timeout:g} s for rank {_format_ranks(silent)}:\n"
                f"{_report(peers, timeout)}"
            )
    if peers.failures:
        hung = any(end.outcome == "timed out" for end in peers.failures)
        patience = min(GRACE, timeout) if hung and timeout is not None else timeout
        peers.until(lambda: not peers.missing or peers.gone, patience)
    elif peers.gone:
        raise PeerLost(_gone_message(peers))


def _results(peers: Peers, own_result: _WorkResult) -> list[Any]:
    first = peers.failures[0] if peers.failures else None
    if first is not None and first.rank != peers.rank:
        raise unpack_failure(first.packed, first.rank)
    if own_result.failure is not None:
        raise own_result.failure
    return [own_result.value if rank == peers.rank else unpack(*end.packed) for rank, end in sorted(peers.ends.items())]


def _report(peers: Peers, timeout: float) -> str:
    """Return what every rank is doing, a line each."""
    own_state, others = peers.doing(), [rank for rank in range(peers.size) if rank != peers.rank]
    answers = peers.ask(others, min(STATUS_TIMEOUT, timeout)) | {peers.rank: own_state}
    return "\n".join(f"  rank {rank}: {answers.get(rank, 'no answer')}" for rank in range(peers.size))


def _gone_message(peers: Peers) -> str:
    return f"the script of rank {_format_ranks(peers.gone)} is over, while rank {peers.rank} is in a step that needs it"


def _format_ranks(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))


class _ProcessLink:
    """One rank's end of the messaging."""

    def __init__(self, peers: Peers, timeout: float | None) -> None:
        self.rank = peers.rank
        self.doing = "starts"
        self._awaited: tuple[Message, int] | None = None
        self._peers = peers
        self._timeout = timeout

    def state(self) -> str:
        """Return the current action of the rank, and the message that it waits for."""
        return self.doing + (", waits for {} from rank {}".format(*self._awaited) if self._awaited else "")

    def expect(self, arrivals: Sequence[Arrival]) -> None:
        """Do nothing: messages are received into new memory whenever this rank polls."""

    def send(self, rank: int, message: Message, payload: Any) -> None:
        """Start to send, then make progress with earlier sends."""
        peers, packed = self._peers, pack(payload)
        if peers.over:
            self._stop()
        if rank == self.rank:
            peers.mail[message] = packed
        else:
            peers.send(rank, Kind.MAIL, tuple(message), packed)
        peers.poll()

    def receive(self, rank: int, message: Message) -> Any:
        """Wait for a message; other messages that arrive are stored."""
        peers, mail = self._peers, self._peers.mail
        self._awaited = (message, rank)
        if not peers.until(lambda: message in mail or peers.over, self._timeout):
            assert self._timeout is not None
            raise TimeoutError(
                f"rank {self.rank} has waited {self._timeout:g} s for {message} from rank {rank}:\n"
                f"{_report(peers, self._timeout)}"
            )
        self._awaited = None
        if peers.over:
            self._stop()
        return unpack(*mail.pop(message))

    def _stop(self) -> None:
        """Raise the reason why the launch has ended."""
        if self._peers.failures:
            raise Aborted("this step has ended: another rank failed, or it was interrupted")
        raise PeerLost(_gone_message(self._peers))
