"""Ranks as threads of one process: no setup, easy to debug."""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from typing import Any

from retrograd.core.blocks import generator_block
from retrograd.pipelining.schedules.actions import Message
from retrograd.pipelining.transports.fingerprint import Fingerprint
from retrograd.pipelining.transports.interface import Aborted, Arrival, Link
from retrograd.utils import blas_threads, short_turns


class Threads:
    """Every rank is a thread; messages are references passed through one mailbox.

    timeout: seconds that a rank waits for a message; None or infinity: no limit.

    >>> Threads().launch(2, lambda link: link.rank * 10)
    [0, 10]
    """

    world = None
    local = None

    def __init__(self, timeout: float | None = None) -> None:
        self.timeout = None if timeout == math.inf else timeout

    def launch(self, ranks: int, work: Callable[[Link], Any], fingerprint: Fingerprint | None = None) -> list[Any]:
        """Run `work(link)` in a thread per rank; the first failure wakes and ends the others, then is raised.

        The threads inherit context variables, and so `np.errstate`.
        """
        return _Launch(ranks, self.timeout).run(work)


class _Launch:
    """One launch: its mailbox and its links."""

    def __init__(self, ranks: int, timeout: float | None) -> None:
        self.timeout = timeout
        self.arrival = threading.Condition()
        self.mail: dict[Message, Any] = {}
        self.aborted = False
        self.links = [_ThreadLink(rank, self) for rank in range(ranks)]
        self.results: list[Any] = [None] * ranks
        self.failures: list[BaseException] = []

    def run(self, work: Callable[[Link], Any]) -> list[Any]:
        """Run every rank in its thread, and return the results by rank."""
        threads = [
            threading.Thread(
                target=copy_context().run, args=(self._work, work, link), name=f"rank {link.rank}", daemon=True
            )
            for link in self.links
        ]
        try:
            with _divide_cores(len(threads)):
                for thread in threads:
                    thread.start()
                for thread in threads:
                    self._join(thread)
        except BaseException:  # Ctrl-C arrives in the thread that waits here
            self.abort()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            raise
        finally:
            self.mail.clear()  # left by a failed step
        if self.failures:
            raise self.failures[0]
        return self.results

    def _join(self, thread: threading.Thread) -> None:
        """Wait for a rank; after a failure only for the timeout, because a thread cannot be ended."""
        thread.join(self.timeout)
        while thread.is_alive():
            if self.failures:
                self.failures[0].add_note(f"{thread.name} still runs, in a thread that is not joined:\n{self.report()}")
                return
            thread.join(self.timeout)

    def _work(self, work: Callable[[Link], Any], link: "_ThreadLink") -> None:
        try:
            self.results[link.rank] = work(link)
            link.doing = "done"
        except BaseException as failure:  # raised again in the waiting thread
            self.failures.append(failure)
            self.abort()

    def abort(self) -> None:
        """Wake and end all ranks that wait, now or later."""
        with self.arrival:
            self.aborted = True
            self.arrival.notify_all()

    def check(self) -> None:
        """Raise if the launch has ended."""
        if self.aborted:
            raise Aborted("this step has ended: another rank failed, or it was interrupted")

    def report(self) -> str:
        """Return the current action of every rank, one per line."""
        return "\n".join(f"  rank {link.rank}: {link.doing}" for link in self.links)


class _ThreadLink:
    """One rank's end of the mailbox."""

    def __init__(self, rank: int, launch: _Launch) -> None:
        self.rank = self.number = rank
        self.doing = "starts"
        self._launch = launch

    def expect(self, arrivals: Sequence[Arrival]) -> None:
        """Do nothing: a message is in the mailbox as soon as it is sent."""

    def send(self, rank: int, message: Message, payload: Any) -> None:
        """Put the payload into the mailbox."""
        launch = self._launch
        with launch.arrival:
            launch.check()
            launch.mail[message] = payload
            launch.arrival.notify_all()

    def has_arrived(self, rank: int, message: Message) -> bool:
        """Return whether the payload is in the mailbox."""
        return message in self._launch.mail

    def wait_any(self, arrivals: Sequence[Arrival]) -> None:
        """Wait until one of these messages is in the mailbox."""
        launch = self._launch
        with launch.arrival:
            if not launch.arrival.wait_for(
                lambda: launch.aborted or any(message in launch.mail for _, message in arrivals), launch.timeout
            ):
                rank, message = arrivals[0]
                raise TimeoutError(
                    f"rank {self.rank} has waited {launch.timeout:g} s for {message} from rank {rank}:\n"
                    f"{launch.report()}"
                )
            launch.check()

    def receive(self, rank: int, message: Message) -> Any:
        """Wait for the payload, and take it out of the mailbox."""
        self.wait_any([Arrival(rank, message)])
        return self._launch.mail.pop(message)


@generator_block
def _divide_cores(ranks: int) -> Iterator[None]:
    """Give the cores to the ranks: single-threaded matrix products, and short turns of the interpreter."""
    if ranks == 1:
        yield
        return
    with blas_threads(1), short_turns():
        yield
