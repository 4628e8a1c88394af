"""`torch.futures`: results that a computation gives later."""

import concurrent.futures
import itertools
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A result that is set later, by `set_result` or `set_exception`; devices of results are accepted and not used."""

    def __init__(self, *, devices: Any = None) -> None:
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Return whether the result or an exception is set."""
        return self._future.done()

    def wait(self) -> T:
        """Wait for the result and return it, or raise the exception that is set."""
        return self._future.result()

    def value(self) -> T:
        """Return the result, or raise the exception that is set; RuntimeError before that."""
        if not self.done():
            raise RuntimeError("Future.value: the result is not set yet; call wait()")
        return self.wait()

    def set_result(self, result: T) -> None:
        """Set the result; once."""
        self._future.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Set the exception that `wait` raises."""
        self._future.set_exception(result)

    def add_done_callback(self, callback: Callable[["Future[T]"], Any]) -> None:
        """Call a function with this future when it is done."""
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[["Future[T]"], S]) -> "Future[S]":
        """Return a future of what a function returns for this one when it is done."""
        found: Future[S] = Future()

        def run(future: "Future[T]") -> None:
            try:
                found.set_result(callback(future))
            except BaseException as error:  # for the thread that waits
                found.set_exception(error)

        self.add_done_callback(run)
        return found


def wait_all(futures: list[Future]) -> list:
    """Return the results of futures, waiting for each."""
    return [future.wait() for future in futures]


def collect_all(futures: list[Future]) -> Future[list[Future]]:
    """Return a future of the list of futures, done when all of them are."""
    collected: Future[list[Future]] = Future()
    remaining = itertools.count(len(futures) - 1, -1)  # `next` is one step for all threads

    def count(_: Any) -> None:
        if next(remaining) == 0:
            collected.set_result(futures)

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        collected.set_result(futures)
    return collected
