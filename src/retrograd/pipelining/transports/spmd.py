"""Launches where every process runs the same script and is one rank."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from retrograd.pipelining.schedules.actions import Message
from retrograd.pipelining.transports.failures import causes, pack_failure, unpack_failure
from retrograd.pipelining.transports.fingerprint import (
    Fingerprint,
    describe_details,
    describe_mismatch,
)
from retrograd.pipelining.transports.interface import Aborted, Arrival, Link, PeerLost, RankMismatchError
from retrograd.pipelining.transports.rank_messaging import EMPTY, Packed, Peers
from retrograd.pipelining.transports.serialization import pack, unpack
from retrograd.pipelining.transports.status_file import StatusFile, wait_for, wait_with

# The default timeout: a multiple of the longest launch so far, and its minimum in seconds.
TIMEOUT_FACTOR, SHORTEST_TIMEOUT = 20.0, 600.0
# The time after which a waiting rank prints a hint: likewise.
HINT_FACTOR, SHORTEST_HINT = 3.0, 30.0
ANNOUNCED = 0.5  # seconds after which a waiting rank sends the digest of its fingerprint
STATUS_TIMEOUT = 1.0  # seconds for the ranks to report what they are doing
GRACE = 5.0  # seconds for ranks without a sign of life, before the others continue without them


def launch(
    peers: Peers, work: Callable[[Link], Any], timeout: float | None, fingerprint: Fingerprint | None = None
) -> list[Any]:
    """Run `work(link)` for this process's rank, wait for the others, and return all results or raise the first
    failure.

    timeout: None: see `default_timeout`.  fingerprint: by default the name of `work`.
    """
    if peers.lost:
        raise PeerLost(f"a step has ended without {peers.format(peers.lost)}; start the script again")
    start = peers.clock()
    inside = peers.status is not None and peers.status.in_launch
    link = _ProcessLink(peers, default_timeout(peers.slowest) if timeout is None else timeout)
    peers.doing = link.state
    peers.begin(fingerprint or Fingerprint.of_work(work))
    try:
        result = _run_work(peers, work, link)
        link.doing = result.outcome
        peers.end(result.outcome, result.packed)
        _wait_for_all(peers, link.patience)
        found = _results(peers, result)
        peers.slowest = max(peers.slowest, peers.clock() - start)
        return found
    except RankMismatchError:
        peers.renew_comm()
        raise
    finally:
        peers.close()
        if peers.status is not None:
            peers.status.in_launch = inside


def default_timeout(slowest: float) -> float:
    """Return the seconds that a rank waits if the script does not say it, from those of the longest launch so far.

    >>> default_timeout(1.0), default_timeout(60.0)
    (600.0, 1200.0)
    """
    return max(SHORTEST_TIMEOUT, TIMEOUT_FACTOR * slowest)


class _Patience:
    """Waits for the others, not longer than the timeout.

    A rank that waits first sends the digest of its fingerprint, and after a while prints a hint on stderr, each once.
    """

    def __init__(self, peers: Peers, timeout: float) -> None:
        self.timeout = timeout
        self._peers = peers
        hint = max(SHORTEST_HINT, HINT_FACTOR * peers.slowest)
        self._signs: list[tuple[float, Callable[[float, str], None]]] = [
            (ANNOUNCED, lambda waited, awaited: peers.announce()),
            (hint, self._print_hint),
        ]

    def until(self, done: Callable[[], Any], awaited: Callable[[], str], wait: Callable[[], str]) -> bool:
        """Wait until `done()` is true; return False after the timeout.

        awaited: returns what this rank waits for, wait: the text for its status file.
        """
        waited = 0.0
        while self._signs and self._signs[0][0] < self.timeout:
            after, give_sign = self._signs[0]
            if self._peers.until(done, after - waited, wait=wait):
                return True
            del self._signs[0]
            give_sign(after, awaited())
            waited = after
        return self._peers.until(done, self.timeout - waited, wait=wait)

    def _print_hint(self, waited: float, awaited: str) -> None:
        print(
            f"retrograd: rank {self._peers.number} has waited {waited:.0f} s for {awaited}.  A rank without an answer "
            f"computes, loads data, compiles, or hangs; the step ends after {self.timeout:.0f} s, see timeout=.\n"
            f"{report_ranks(self._peers, STATUS_TIMEOUT)}",
            file=sys.stderr,
        )


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
    if isinstance(failure, RankMismatchError):
        return "differs"
    return "timed out" if any(isinstance(cause, TimeoutError) for cause in causes(failure)) else "failed"


def _wait_for_all(peers: Peers, patience: _Patience) -> None:
    """Wait until every rank has ended the launch; the others are lost."""
    try:
        _wait(peers, patience)
    except KeyboardInterrupt:
        # The others learn of the interrupt from the end of this rank; give them time to end, too.
        peers.until(lambda: not peers.missing, GRACE)
        raise
    finally:
        peers.lost = peers.missing


def _wait(peers: Peers, patience: _Patience) -> None:
    timeout = patience.timeout

    def over() -> bool:
        return peers.over or not peers.missing

    def wait() -> str:
        return wait_with(peers.fingerprint.fields.get("call", "the end of a step"), peers.members)

    while not patience.until(over, lambda: f"the end of {_missing(peers)}", wait):
        answers = peers.ask(peers.missing, timeout)  # a rank that answers is slow but alive
        silent = [rank for rank in peers.missing if rank not in answers]
        if silent:
            raise TimeoutError(
                f"rank {peers.number} is done and has waited {2 * timeout:g} s for {peers.format(silent)}:\n"
                f"{report_ranks(peers, timeout)}"
            )
    if peers.failures or peers.differs:
        hung = any(end.outcome == "timed out" for end in peers.failures)
        peers.until(lambda: not peers.missing or peers.gone, min(GRACE, timeout) if hung else timeout)
    elif peers.gone:
        raise PeerLost(_gone_message(peers))


def _missing(peers: Peers) -> str:
    return peers.format(peers.missing)


def _results(peers: Peers, own_result: _WorkResult) -> list[Any]:
    if peers.differs:
        raise _mismatch(peers)
    first = peers.failures[0] if peers.failures else None
    if first is not None and first.rank != peers.rank:
        raise unpack_failure(first.packed, peers.ranks[first.rank])
    if own_result.failure is not None:
        raise own_result.failure
    return [own_result.value if rank == peers.rank else unpack(*end.packed) for rank, end in sorted(peers.ends.items())]


def _mismatch(peers: Peers) -> RankMismatchError:
    """Return the error about different fingerprints, which is the same on all ranks that know all of them."""
    found = {peers.ranks[rank]: one for rank, one in peers.fingerprints.items()}
    if len(found) == 1:
        return RankMismatchError(f"the ranks run different programs; {_missing(peers)} did not say which")
    fields = {rank: one.fields for rank, one in found.items()}
    return RankMismatchError(describe_mismatch(fields, describe_details(found)))


def report_ranks(peers: Peers, timeout: float) -> str:
    """Return what every rank is doing, a line each; ranks may take `timeout` seconds, at most 1, to answer."""
    own_state, others = peers.doing(), [rank for rank in range(peers.size) if rank != peers.rank]
    answers = peers.ask(others, min(STATUS_TIMEOUT, timeout)) | {peers.rank: own_state}
    lines = sorted((peers.ranks[rank], answers.get(rank, "no answer")) for rank in range(peers.size))
    return "\n".join(f"  rank {number}: {answer}" for number, answer in lines)


def _gone_message(peers: Peers) -> str:
    return f"the script of {peers.format(peers.gone)} is over, while rank {peers.number} is in a step that needs it"


class _ProcessLink:
    """One rank's end of the messaging."""

    def __init__(self, peers: Peers, timeout: float) -> None:
        self.rank, self.number = peers.rank, peers.number
        self.patience = _Patience(peers, timeout)
        self._status: StatusFile | None = peers.status
        if self._status is not None:
            self._status.in_launch = True
        self.doing = "starts"
        self._awaited: tuple[Message, int] | None = None
        self._peers = peers

    @property
    def doing(self) -> str:
        """The current action of the rank, which is also in its status file."""
        return self._doing

    @doing.setter
    def doing(self, text: str) -> None:
        self._doing = text
        if self._status is not None:
            self._status.write(text)

    def state(self) -> str:
        """Return the current action of the rank, and the message that it waits for."""
        if self._awaited is None:
            return self.doing
        message, rank = self._awaited
        return f"{self.doing}, waits for {message} from rank {self._peers.ranks[rank]}"

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
            peers.send_message(rank, message, packed)
        peers.poll()

    def has_arrived(self, rank: int, message: Message) -> bool:
        """Return whether a message is stored, after storing what has arrived."""
        self._peers.poll()
        return message in self._peers.mail

    def wait_any(self, arrivals: Sequence[Arrival]) -> None:
        """Wait until one of these messages is stored; other messages that arrive are stored, too."""
        peers, mail = self._peers, self._peers.mail
        rank, message = arrivals[0]
        self._awaited = (message, rank)
        sender = peers.ranks[rank]

        def arrived() -> bool:
            return any(one in mail for _, one in arrivals)

        def wait() -> str:
            return wait_for(self.doing, str(message), sender)

        timeout = self.patience.timeout
        if not self.patience.until(lambda: arrived() or peers.over, lambda: f"{message} from rank {sender}", wait):
            raise TimeoutError(
                f"rank {self.number} has waited {timeout:g} s for {message} from rank {sender}:\n"
                f"{report_ranks(peers, timeout)}"
            )
        self._awaited = None
        if peers.over:
            self._stop()

    def receive(self, rank: int, message: Message) -> Any:
        """Wait for a message, and return its payload."""
        self.wait_any([Arrival(rank, message)])
        return unpack(*self._peers.mail.pop(message))

    def _stop(self) -> NoReturn:
        """Raise the reason why the launch has ended."""
        if self._peers.differs:
            raise RankMismatchError("the ranks run different programs")  # all ranks describe it when they have ended
        if self._peers.failures:
            raise Aborted("this step has ended: another rank failed, or it was interrupted")
        raise PeerLost(_gone_message(self._peers))
