"""Messaging between processes that are one rank each, over any channel that delivers packets in order.

Every rank sends all others the end of its part of a launch.  Packets from one rank arrive in the order in which
they were sent, so its end comes after its other packets: a rank that has everybody's end has all packets of that
launch, and the next launch starts clean, even after a failure.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

from retrograd.pipelining.transports.fingerprint import Fingerprint, format_ranks
from retrograd.pipelining.transports.status_file import StatusFile

Packed = tuple[bytes, Sequence[Any]]  # the result of `wire.pack`: a header, buffers
Head = tuple[int, Any, bytes]  # the `Kind` of packet, plain data, and the header of the packed payload
Subject = tuple[str, int, int, int]  # a `Message` as a plain tuple, which equals it
Packet = tuple[int, Head, Sequence[Any]]  # the sender's rank, a header, buffers
Sent = Callable[[], bool]  # returns whether what was sent may be written to again
Origin = tuple[int, str]  # the rank that has raised an error, and the error's first line
EMPTY: Packed = (b"", ())
SMALL = 8192  # bytes up to which a channel sends a buffer with its header
LEAVING = 0.5  # seconds for the other ranks to exit by themselves if some are lost
NO_FINGERPRINT = Fingerprint({}), b""  # between two launches


class Channel(Protocol):
    """Delivers packets between ranks; those from one rank to another arrive in order."""

    rank: int
    size: int

    def send(self, rank: int, head: Head, buffers: Sequence[Any]) -> Sent:
        """Send without blocking; the channel reads the buffers until the function that it returns is true."""

    def poll(self) -> list[Packet]:
        """Make progress without blocking, and return what has arrived."""

    def moving(self) -> bool:
        """Return whether the last poll found a packet in transit to this rank, or one of its own delivered."""


def at_once() -> bool:
    """Return True: a channel has copied what it sends."""
    return True


class Backoff:
    """Backoff between two polls: none at first, then yield the core, then sleep for increasing times.

    awake: the number of polls before the first sleep.  sleep: of a channel that wakes its rank, as in `Peers`; then
    all polls but the first follow a sleep.
    """

    SPINS, AWAKE, NAP, LONGEST = 10, 200, 2e-6, 1e-3

    def __init__(self, awake: int = AWAKE, sleep: Callable[[float], Any] | None = None) -> None:
        self.turns, self.awake, self.sleep = 0, awake, sleep

    def __call__(self) -> None:
        self.turns += 1
        if self.sleep is not None:
            self.sleep(self.LONGEST)
        elif self.turns > self.awake:
            time.sleep(min((self.turns - self.awake) * self.NAP, self.LONGEST))
        elif self.turns > self.SPINS:
            os.sched_yield()


class Kind(IntEnum):
    """The kind of a packet."""

    MAIL = 0  # a message of the work
    END = 1  # the end of the sender's part of its launch
    ASK = 2  # what are you doing?
    ANSWER = 3
    LEFT = 4  # the sender's script has ended
    HELLO = 5  # the digest of the sender's fingerprint of its launch, which waits for a message
    DIRECT = 6  # a message outside of launches
    GROUP = 7  # a packet of a group of some of the ranks
    FINGERPRINT = 8  # the sender's fingerprint, since another rank has another one


class End(NamedTuple):
    """The end of a rank's part of a launch.

    at: seconds of the sender's clock.  packed: the result, or a failure packed by `failures.pack_failure`.
    """

    rank: int
    at: float
    outcome: str  # "done"; "failed"; "timed out", "differs", also failures; "aborted", since another rank failed
    packed: Packed

    @property
    def failed(self) -> bool:
        """Return whether it is a failure of that rank itself."""
        return self.outcome in ("failed", "timed out", "differs")


class Operations:
    """The operations that this rank has started, in all its groups.

    running: those that have not ended.  mismatch: the error of one that has, in which ranks differ, until it is raised.
    """

    def __init__(self) -> None:
        self.running: set[Any] = set()
        self.mismatch: Exception | None = None

    def raise_mismatch(self) -> None:
        """Raise the error of an operation that nobody has waited for, if ranks differ in it."""
        mismatch, self.mismatch = self.mismatch, None
        if mismatch is not None:
            raise mismatch


class Peers:
    """The messaging of one process with the others.  All processes number the launches in the same way.

    launch: the number of the present launch, or of the next.  over: whether it cannot be completed, since a rank has
    failed, is gone or runs something else.  fingerprint: of the present launch; its digest is in each message and each
    end.  differs: whether another rank is known to have another one; then all ranks send theirs.  lost: the ranks
    without which a launch has ended; no further launch is possible.
    left: the ranks whose scripts have ended, each with the error that has ended it, or None.
    direct: the messages outside of launches, by sender and subject, in the order in which they were sent.
    group_packets: the packets of groups of some of the ranks, by the group's key.
    groups: the number of groups made by all ranks, with the key (), and by some ranks only, by these ranks.
    comm: mpi4py's communicator for collective operations, if the ranks are processes of MPI.  timed_out: the operation
    on it that this rank has given up, after which those of the ranks do not match.  overdue: whether this rank has
    waited for an operation until its timeout.
    ranks: the numbers of the ranks in the group of all processes, by which all texts name them.  status: the file in
    which `retrograd top` finds what this rank does, or None.
    sleep: sleeps for some seconds, or until a packet arrives; None if the channel must be polled to know that.
    slowest: seconds of the longest completed launch.  clock: returns the seconds that timeouts are measured in.
    """

    def __init__(
        self,
        channel: Channel,
        clock: Callable[[], float] = time.monotonic,
        comm: Any = None,
        status: StatusFile | None = None,
        ranks: Sequence[int] = (),
        sleep: Callable[[float], Any] | None = None,
    ) -> None:
        self.channel = channel
        self.sleep = sleep
        self.comm = comm
        self.clock = clock
        self.rank, self.size = channel.rank, channel.size
        self.ranks = tuple(ranks) or tuple(range(channel.size))
        self.members = self.format(range(self.size))  # in the texts of waits
        self.status = status
        self.launch = 0
        self.over = False
        self.differs = False
        self.fingerprint, self.digest = NO_FINGERPRINT
        self.slowest = 0.0
        self.lost: list[int] = []
        self.overdue = False
        self.left: dict[int, Origin | None] = {}
        self.doing: Callable[[], str] = _idle_text
        self.mail: dict[Subject, Packed] = {}
        self.direct: dict[tuple[int, Any], deque[Packed]] = {}
        self.group_packets: dict[Any, list[Packet]] = {}
        self.groups: dict[tuple[int, ...], int] = {}
        self.timed_out = ""
        self.receives: list[Any] = []  # the receives that wait for messages outside of launches
        self.operations = Operations()
        self._ends: dict[int, dict[int, End]] = {}  # by launch and rank
        self._later: list[tuple[int, Subject, Packed]] = []  # messages for later launches
        self._digests: dict[int, set[bytes]] = {}  # by launch, those of other ranks
        self._fingerprints: dict[int, dict[int, Fingerprint]] = {}  # by launch and rank, once ranks differ
        self._ended = [0] * channel.size  # how many launches each rank has ended
        self._answers: dict[int, str] = {}
        self._handlers: dict[int, Callable[[int, Any, Packed], None]] = {
            Kind.MAIL: self._handle_message,
            Kind.END: self._handle_end,
            Kind.ASK: self._handle_status_request,
            Kind.ANSWER: self._handle_status,
            Kind.LEFT: self._handle_leave,
            Kind.HELLO: self._handle_hello,
            Kind.DIRECT: self.accept_direct,
            Kind.GROUP: self._handle_group_packet,
            Kind.FINGERPRINT: self._handle_fingerprint,
        }

    @property
    def number(self) -> int:
        """Return the number of this rank in the group of all processes."""
        return self.ranks[self.rank]

    def format(self, ranks: Iterable[int]) -> str:
        """Return ranks of this group as text, by their numbers in the group of all processes."""
        return format_ranks(sorted(self.ranks[rank] for rank in ranks))

    @property
    def ends(self) -> dict[int, End]:
        """Return the known ends of the present launch, by rank."""
        return self._ends.setdefault(self.launch, {})

    @property
    def fingerprints(self) -> dict[int, Fingerprint]:
        """Return the known fingerprints of the present launch, by rank; ranks that agree do not send them."""
        return self._fingerprints.setdefault(self.launch, {})

    @property
    def missing(self) -> list[int]:
        """Return the ranks whose end is not known, and if ranks differ, those whose fingerprint is not known."""
        ends, known = self.ends, self.fingerprints if self.differs else self.ends
        return [rank for rank in range(self.size) if rank not in ends or rank not in known]

    @property
    def gone(self) -> list[int]:
        """Return the ranks that will not end the present launch, because their scripts have ended."""
        return [rank for rank in self.missing if rank in self.left]

    @property
    def failures(self) -> list[End]:
        """Return the known failures of the present launch, the first one first."""
        return sorted((end for end in self.ends.values() if end.failed), key=lambda end: (end.at, end.rank))

    def send(self, rank: int, kind: Kind, subject: Any, packed: Packed = EMPTY) -> Sent:
        """Send a packet to another rank; return what `Channel.send` returns."""
        header, buffers = packed
        return self.channel.send(rank, (int(kind), subject, header), buffers)

    def broadcast(self, kind: Kind, subject: Any, packed: Packed = EMPTY) -> None:
        """Send a packet to all others."""
        for rank in range(self.size):
            if rank != self.rank:
                self.send(rank, kind, subject, packed)

    def poll(self) -> bool:
        """Process what has arrived; return whether that was anything."""
        packets = self.channel.poll()
        for rank, (kind, subject, header), buffers in packets:
            self._handlers[kind](rank, subject, (header, buffers))
        return bool(packets)

    def until(
        self,
        done: Callable[[], Any],
        timeout: float | None,
        awake: int = Backoff.AWAKE,
        wait: Callable[[], str] | None = None,
    ) -> bool:
        """Process packets until `done()` is true; return False after `timeout` seconds.

        awake: as in `Backoff`.  wait: returns the text of the wait for the status file.
        """
        backoff, start, shown = Backoff(awake, self.sleep), self.clock(), False
        status = None if wait is None else self.status
        try:
            while not done():
                if self.poll() or self.channel.moving():
                    backoff.turns = 0
                else:
                    backoff()
                    # The shortest waits are not shown, so they cost nothing.
                    if status is not None and not shown and backoff.turns > Backoff.SPINS:
                        shown = True
                        status.write_wait(wait())  # type: ignore[misc]
                if timeout is not None and self.clock() - start > timeout:
                    return bool(done())
            return True
        finally:
            if shown:
                status.end_wait()  # type: ignore[union-attr]

    def send_message(self, rank: int, message: Subject, packed: Packed) -> None:
        """Send a message of the work to another rank, with the digest of this rank's fingerprint."""
        self.send(rank, Kind.MAIL, (message, self.digest), packed)

    def begin(self, fingerprint: Fingerprint) -> None:
        """Begin the present launch.

        Ranks compare digests when messages and ends arrive, so a step without a difference needs no other packet.
        """
        self.fingerprint, self.digest = fingerprint, fingerprint.digest()
        if self._digests or self._ends or self.left:
            self._update_over()

    def announce(self) -> None:
        """Send the digest to the next rank, since this rank waits; its end, if it was sent, has the digest too.

        Ranks that differ may all wait for messages that nobody sends.  The ranks form a ring, so if any two differ, a
        rank differs from its previous one.
        """
        if self.size > 1 and self.rank not in self.ends:
            self.send((self.rank + 1) % self.size, Kind.HELLO, self.digest)

    def end(self, outcome: str, packed: Packed) -> None:
        """Send everybody the end of this rank's part."""
        at = time.time()
        self.ends[self.rank] = End(self.rank, at, outcome, packed)
        self._ended[self.rank] += 1
        self._update_over()
        self.broadcast(Kind.END, (at, outcome, self.digest), packed)

    def close(self) -> None:
        """Close a launch, discard its remaining messages, and open the next one."""
        self._ends.pop(self.launch, None)
        self._digests.pop(self.launch, None)
        self._fingerprints.pop(self.launch, None)
        self.launch += 1
        self.differs = False
        self.fingerprint, self.digest = NO_FINGERPRINT
        self.doing = _idle_text
        self.mail = {message: packed for number, message, packed in self._later if number == self.launch}
        self._later = [entry for entry in self._later if entry[0] > self.launch]
        self._update_over()

    def renew_comm(self) -> None:
        """Replace the communicator, on which the ranks may have started different operations; all must call it."""
        if self.comm is not None and not self.lost:
            self.comm = self.comm.Create_group(self.comm.group)
            self.timed_out = ""

    def awaits_this_rank(self) -> bool:
        """Return whether another rank is known to be in a launch, while this rank is between two."""
        return self.launch in self._digests or bool(self.ends)

    def ask(self, ranks: Sequence[int], patience: float) -> dict[int, str]:
        """Return the current action of each rank that answers in time."""
        self._answers.clear()
        for rank in ranks:
            self.send(rank, Kind.ASK, self.launch)
        self.until(lambda: all(rank in self._answers for rank in ranks), patience)
        return dict(self._answers)

    def leave(self, patience: float, error: Origin | None = None) -> bool:
        """Announce that this script has ended, by which error, and wait for the others; False if ranks are lost.

        A script that has ended with an error after the timeout of an operation waits no longer either: a rank that has
        not come to the operation may hang, and none can finish without this one.
        """
        self.doing = lambda: "its script is over"
        if self.status is not None:
            self.status.write(self.doing())
        self.broadcast(Kind.LEFT, error)
        limited = self.lost or (self.overdue and error is not None)
        return self.until(lambda: len(self.left) == self.size - 1, patience if limited else None)

    def _handle_message(self, rank: int, subject: tuple[Subject, bytes], packed: Packed) -> None:
        message, digest = subject
        self._handle_hello(rank, digest, EMPTY)  # also before this rank's launch begins
        number = self._ended[rank]
        if number == self.launch:
            self.mail[message] = packed
        elif number > self.launch:
            self._later.append((number, message, packed))

    def _handle_hello(self, rank: int, digest: bytes, _: Packed) -> None:
        number = self._ended[rank]
        if number > self.launch or (number == self.launch and digest != self.digest):
            self._digests.setdefault(number, set()).add(digest)
            self._update_over()

    def _handle_fingerprint(
        self, rank: int, subject: tuple[int, Mapping[str, str], Mapping[str, str]], _: Packed
    ) -> None:
        number, fields, details = subject
        if number >= self.launch:
            self._fingerprints.setdefault(number, {})[rank] = Fingerprint(fields, details)

    def _handle_end(self, rank: int, subject: tuple[float, str, bytes], packed: Packed) -> None:
        at, outcome, digest = subject
        self._handle_hello(rank, digest, EMPTY)
        self._ends.setdefault(self._ended[rank], {})[rank] = End(rank, at, outcome, packed)
        self._ended[rank] += 1
        self._update_over()

    def _handle_status_request(self, rank: int, number: int, _: Packed) -> None:
        self.send(rank, Kind.ANSWER, (number, self.doing()))

    def _handle_status(self, rank: int, subject: tuple[int, str], _: Packed) -> None:
        number, text = subject
        if number == self.launch:
            self._answers[rank] = text

    def _handle_leave(self, rank: int, error: Origin | None, _: Packed) -> None:
        self.left[rank] = error
        self._update_over()

    def accept_direct(self, rank: int, subject: Any, packed: Packed) -> None:
        """Store a message outside of launches."""
        self.direct.setdefault((rank, subject), deque()).append(packed)

    def _handle_group_packet(self, rank: int, subject: tuple[Any, int, Any], packed: Packed) -> None:
        key, kind, inner = subject
        header, buffers = packed
        self.group_packets.setdefault(key, []).append((rank, (kind, inner, header), buffers))

    def _update_over(self) -> None:
        """Update whether the launch cannot be completed; its digest is empty before and after it."""
        others = self._digests.get(self.launch, ())
        self.differs = bool(self.digest) and any(digest != self.digest for digest in others)
        if self.differs and self.rank not in self.fingerprints:
            own = self.fingerprint
            self.fingerprints[self.rank] = Fingerprint(own.texts(), own.details)
            self.broadcast(Kind.FINGERPRINT, (self.launch, own.texts(), dict(own.details)))
        self.over = bool(self.differs or self.failures or self.gone)


def _idle_text() -> str:
    return "between two steps"
