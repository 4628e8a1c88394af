"""What the runtime asks of a transport."""

from collections.abc import Callable
from typing import Any, Protocol

from retrograd.pipelining.actions import Message


class Aborted(RuntimeError):  # noqa: N818 (nobody's error: another rank's)
    """Another rank has failed, or the user has interrupted: this rank has nothing more to wait for."""


class Transport(Protocol):
    """Launches the ranks and carries their messages.  It knows nothing of schedules."""

    def send(self, message: Message, payload: Any) -> None:
        """Send without waiting; the transport buffers."""

    def receive(self, message: Message) -> Any:
        """Wait for that very message; raises Aborted if it will not come."""

    def launch(self, ranks: int, work: Callable[[int], Any]) -> list[Any]:
        """Run `work(rank)` on every rank at once; the results by rank.

        If one fails, the others are woken, and the first failure is raised.
        """
