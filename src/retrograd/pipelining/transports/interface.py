"""What the runtime asks of a transport."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from retrograd.pipelining.schedules.actions import Message


class Aborted(RuntimeError):  # noqa: N818 (nobody's error: another rank's)
    """Another rank has failed, or the user has interrupted: this rank has nothing more to wait for."""


class PeerLost(RuntimeError):  # noqa: N818 (the field's word)
    """The process of another rank is gone."""


class Arrival(NamedTuple):
    """A message that a rank will receive, and the rank that sends it."""

    rank: int
    message: Message


class Link(Protocol):
    """One rank's end of a transport, for as long as one launch lasts."""

    rank: int
    doing: str  # what the rank is at, in words that a report shows; the runtime keeps it up to date

    def expect(self, arrivals: Sequence[Arrival]) -> None:
        """Learn what this rank will receive, in this order, so that receives can be posted ahead."""

    def send(self, rank: int, message: Message, payload: Any) -> None:
        """Send without waiting for the other rank; the payload's tensors are not written to until it has them.

        payload: tensors and plain data, nested in tuples, lists and dicts.
        """

    def receive(self, rank: int, message: Message) -> Any:
        """Wait for that very message.

        Raises Aborted if it will not come since a rank has failed, PeerLost if its sender's process is gone, and
        TimeoutError that says who waits for what from whom.
        """


class Transport(Protocol):
    """Launches the ranks and carries their messages.  It knows nothing of schedules.

    world: how many ranks there are, where who started the processes has settled it; None: as many as `launch` is told.
    timeout: seconds that a rank waits for a message; None: forever.
    """

    world: int | None
    timeout: float | None

    @property
    def local(self) -> Sequence[int] | None:
        """The ranks of this process; None: all of them."""

    def launch(self, ranks: int, work: Callable[[Link], Any]) -> list[Any]:
        """Run `work(link)` for every rank at once; the results by rank, in every process.

        Every process calls it, each runs the ranks that it has, and all get all results: tensors and plain data, nested
        in tuples, lists and dicts.  If one rank fails, the others are woken and end, and the first failure is raised in
        every process.
        """
