"""Results that a computation gives later, as in `torch.futures`."""

import concurrent.futures
import functools
import itertools
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from retrograd.foundation.suggestions import suggest_in_module

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A result that is set later, by `set_result` or `set_exception`; devices of results are accepted and not used.

    >>> from retrograd.futures import Future
    >>> future = Future()
    >>> doubled = future.then(lambda one: 2 * one.value())
    >>> future.set_result(3)
    >>> future.done(), doubled.wait()
    (True, 6)
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._advance: Callable[[bool], Any] | None = None

    @classmethod
    def of_work(cls, advance: Callable[["Future[T]", bool], Any]) -> "Future[T]":
        """Return a future of work that advances only when it is called, such as an operation between ranks.

        advance: called with the future, and whether to wait for the end, before each question about the result; it sets
        the result at the end.
        """
        future = cls()
        future._advance = functools.partial(advance, future)
        return future

    def done(self) -> bool:
        """Return whether the result or an exception is set."""
        return self._settle(False)

    def wait(self) -> T:
        """Wait for the result and return it, or raise the exception that is set."""
        self._settle(True)
        return self._future.result()

    def _settle(self, wait: bool) -> bool:
        if self._advance is not None and not self._future.done():
            self._advance(wait)
        return self._future.done()

    def value(self) -> T:
        """Return the result, or raise the exception that is set; RuntimeError before that."""
        if not self.done():
            raise RuntimeError("Future.value: the result is not set yet; call wait()")
        return self.wait()

    def set_result(self, result: T) -> None:
        """Set the result.  Raises RuntimeError if a result or an exception is set already."""
        self._complete(self._future.set_result, result)

    def set_exception(self, result: BaseException) -> None:
        """Set the exception that `wait` raises.  Raises RuntimeError as `set_result` does."""
        self._complete(self._future.set_exception, result)

    def _complete(self, setter: Callable[[Any], None], value: Any) -> None:
        try:
            setter(value)
        except concurrent.futures.InvalidStateError as error:
            raise RuntimeError("Future can only be marked completed once: its result is set already") from error

    def add_done_callback(self, callback: Callable[["Future[T]"], Any]) -> None:
        """Call a function with this future when it is done."""
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[["Future[T]"], S]) -> "Future[S]":
        """Return a future of what a function returns for this one when it is done."""
        found: Future[S] = Future()
        found._advance = None if self._advance is None else self._settle

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


suggest_in_module(globals())
