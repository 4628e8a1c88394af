"""Ranks as threads of one process: nothing to set up, everything to see in a debugger."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

from retrograd.pipelining.actions import Message
from retrograd.pipelining.transports.interface import Aborted
from retrograd.utils import blas_threads, short_turns


class Threads:
    """Every rank is a thread; messages are references handed over through one mailbox.

    >>> Threads().launch(2, lambda rank: rank * 10)
    [0, 10]
    """

    def __init__(self) -> None:
        self._arrival = threading.Condition()
        self._mail: dict[Message, Any] = {}
        self._aborted = False

    def send(self, message: Message, payload: Any) -> None:
        """Put the payload into the mailbox."""
        with self._arrival:
            self._check()
            self._mail[message] = payload
            self._arrival.notify_all()

    def receive(self, message: Message) -> Any:
        """Take the payload out of the mailbox, once it is there."""
        with self._arrival:
            self._arrival.wait_for(lambda: self._aborted or message in self._mail)
            self._check()
            return self._mail.pop(message)

    def launch(self, ranks: int, work: Callable[[int], Any]) -> list[Any]:
        """Run `work(rank)` in a thread per rank; the first failure wakes and ends the others, then is raised.

        Context variables, and so `np.errstate`, are in the threads as they are here.
        """
        self._aborted = False
        results: list[Any] = [None] * ranks
        failures: list[BaseException] = []

        def run(rank: int) -> None:
            try:
                results[rank] = work(rank)
            except BaseException as failure:  # carried over to the thread that waits
                failures.append(failure)
                self._abort()

        threads = [
            threading.Thread(target=copy_context().run, args=(run, rank), name=f"rank {rank}") for rank in range(ranks)
        ]
        try:
            self._run_all(threads)
        finally:
            self._mail.clear()  # what a failed step has left
        if failures:
            raise failures[0]
        return results

    def _run_all(self, threads: list[threading.Thread]) -> None:
        try:
            with _shared_fairly(len(threads)):
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
        except BaseException:  # Ctrl-C comes to the thread that waits here
            self._abort()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            raise

    def _abort(self) -> None:
        with self._arrival:
            self._aborted = True
            self._arrival.notify_all()

    def _check(self) -> None:
        if self._aborted:
            raise Aborted("this step has ended: another rank failed, or it was interrupted")


@contextmanager
def _shared_fairly(ranks: int) -> Iterator[None]:
    """Let the ranks be the threads: no threads within their matrix products, and short turns of Python."""
    if ranks == 1:
        yield
        return
    with blas_threads(1), short_turns():
        yield
