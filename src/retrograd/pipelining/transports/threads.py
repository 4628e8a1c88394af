"""Ranks as threads of one process: nothing to set up, everything to see in a debugger."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from typing import Any

from retrograd.core.level import generator_block
from retrograd.pipelining.schedules.actions import Message
from retrograd.pipelining.transports.interface import Aborted, Arrival, Link
from retrograd.utils import blas_threads, short_turns


class Threads:
    """Every rank is a thread; messages are references handed over through one mailbox.

    timeout: seconds that a rank waits for a message; None: forever.

    >>> Threads().launch(2, lambda link: link.rank * 10)
    [0, 10]
    """

    world = None
    local = None

    def __init__(self, timeout: float | None = None) -> None:
        self.timeout = timeout

    def launch(self, ranks: int, work: Callable[[Link], Any]) -> list[Any]:
        """Run `work(link)` in a thread per rank; the first failure wakes and ends the others, then is raised.

        Context variables, and so `np.errstate`, are in the threads as they are here.
        """
        return _Launch(ranks, self.timeout).run(work)


class _Launch:
    """One launch: its mailbox, and the ends that its ranks have of it."""

    def __init__(self, ranks: int, timeout: float | None) -> None:
        self.timeout = timeout
        self.arrival = threading.Condition()
        self.mail: dict[Message, Any] = {}
        self.aborted = False
        self.links = [_End(rank, self) for rank in range(ranks)]
        self.results: list[Any] = [None] * ranks
        self.failures: list[BaseException] = []

    def run(self, work: Callable[[Link], Any]) -> list[Any]:
        """Let every rank work in its thread; the results by rank."""
        threads = [
            threading.Thread(
                target=copy_context().run, args=(self._work, work, link), name=f"rank {link.rank}", daemon=True
            )
            for link in self.links
        ]
        try:
            with _shared_fairly(len(threads)):
                for thread in threads:
                    thread.start()
                for thread in threads:
                    self._join(thread)
        except BaseException:  # Ctrl-C comes to the thread that waits here
            self.abort()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            raise
        finally:
            self.mail.clear()  # what a failed step has left
        if self.failures:
            raise self.failures[0]
        return self.results

    def _join(self, thread: threading.Thread) -> None:
        """Wait for a rank; where others have given up waiting for it, only as long again: a thread can't be ended."""
        thread.join(self.timeout)
        while thread.is_alive():
            if self.failures:
                self.failures[0].add_note(f"{thread.name} goes on in a thread that nobody waits for:\n{self.report()}")
                return
            thread.join(self.timeout)

    def _work(self, work: Callable[[Link], Any], link: "_End") -> None:
        try:
            self.results[link.rank] = work(link)
            link.doing = "done"
        except BaseException as failure:  # carried over to the thread that waits
            self.failures.append(failure)
            self.abort()

    def abort(self) -> None:
        """Wake and end whoever waits, now or later."""
        with self.arrival:
            self.aborted = True
            self.arrival.notify_all()

    def check(self) -> None:
        """Raise where there is nothing more to do."""
        if self.aborted:
            raise Aborted("this step has ended: another rank failed, or it was interrupted")

    def report(self) -> str:
        """What every rank is at."""
        return "\n".join(f"  rank {link.rank}: {link.doing}" for link in self.links)


class _End:
    """One rank's end of the mailbox."""

    def __init__(self, rank: int, launch: _Launch) -> None:
        self.rank = rank
        self.doing = "starts"
        self._launch = launch

    def expect(self, arrivals: Sequence[Arrival]) -> None:
        """Nothing to prepare: a message is in the mailbox as soon as it is sent."""

    def send(self, rank: int, message: Message, payload: Any) -> None:
        """Put the payload into the mailbox."""
        launch = self._launch
        with launch.arrival:
            launch.check()
            launch.mail[message] = payload
            launch.arrival.notify_all()

    def receive(self, rank: int, message: Message) -> Any:
        """Take the payload out of the mailbox, once it is there."""
        launch = self._launch
        with launch.arrival:
            if not launch.arrival.wait_for(lambda: launch.aborted or message in launch.mail, launch.timeout):
                raise TimeoutError(
                    f"rank {self.rank} has waited {launch.timeout:g} s for {message} from rank {rank}:\n"
                    f"{launch.report()}"
                )
            launch.check()
            return launch.mail.pop(message)


@generator_block
def _shared_fairly(ranks: int) -> Iterator[None]:
    """Let the ranks be the threads: no threads within their matrix products, and short turns of Python."""
    if ranks == 1:
        yield
        return
    with blas_threads(1), short_turns():
        yield
