"""The interface of transports."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from retrograd.pipelining.schedules.actions import Message
from retrograd.pipelining.transports.fingerprint import Fingerprint


class Aborted(RuntimeError):  # noqa: N818 (nobody's error: another rank's)
    """Another rank has failed, or the user has interrupted: this rank stops."""


class PeerLost(RuntimeError):  # noqa: N818 (the field's word)
    """The process of another rank is gone."""


class RankMismatchError(RuntimeError):
    """The ranks do not run the same program on the same data; all of them raise this error."""


class Arrival(NamedTuple):
    """A message that a rank will receive, and the rank that sends it."""

    rank: int
    message: Message


class Link(Protocol):
    """One rank's end of a transport, valid during one launch.

    number: that of the rank in the group of all processes, by which texts name it.
    """

    rank: int
    number: int
    doing: str  # a description of the rank's current activity for reports; the runtime updates it

    def expect(self, arrivals: Sequence[Arrival]) -> None:
        """Announce the messages that this rank will receive, in order, so that receives can be posted ahead."""

    def send(self, rank: int, message: Message, payload: Any) -> None:
        """Send without blocking; the payload's tensors must not be written to until it is delivered.

        payload: tensors and plain data, nested in tuples, lists and dicts.
        """

    def has_arrived(self, rank: int, message: Message) -> bool:
        """Return whether `receive` would not wait for this message."""

    def wait_any(self, arrivals: Sequence[Arrival]) -> None:
        """Wait until one of these messages has arrived; raises what `receive` does."""

    def receive(self, rank: int, message: Message) -> Any:
        """Wait for this message.

        Raises Aborted if it will not come because a rank has failed, PeerLost if its sender's process is gone, and
        TimeoutError that names the ranks that wait, and their messages.
        """


class Transport(Protocol):
    """Launches the ranks and moves their messages, independent of schedules.

    world: the number of ranks, if fixed by the launcher of the processes; None: an argument of `launch`.
    timeout: seconds that a rank waits for a message; None: for processes a multiple of the longest launch so far, but
    at least 10 minutes; for threads no limit.
    """

    world: int | None
    timeout: float | None

    @property
    def local(self) -> Sequence[int] | None:
        """Return the ranks of this process; None: all of them."""

    def launch(self, ranks: int, work: Callable[[Link], Any], fingerprint: Fingerprint | None = None) -> list[Any]:
        """Run `work(link)` for every rank concurrently; return the results by rank, in every process.

        Every process calls it, each runs its own ranks, and all get all results: tensors and plain data, nested
        in tuples, lists and dicts.  If one rank fails, the others are woken and end, and the first failure is raised
        in every process.

        fingerprint: describes what this process runs; by default the name of `work`.  If those of the processes
        differ, the launch fails with RankMismatchError in all of them.
        """
