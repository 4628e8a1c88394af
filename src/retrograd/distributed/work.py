"""`Work`: an operation between ranks that may still be running."""

import datetime
from collections.abc import Callable, Generator, Sequence
from time import perf_counter_ns
from typing import Any

from retrograd.autograd.profiler.recorder import note_communication, note_wait
from retrograd.core import Tensor
from retrograd.futures import Future
from retrograd.pipelining.transports.fingerprint import Fingerprint
from retrograd.pipelining.transports.interface import PeerLost
from retrograd.pipelining.transports.process_group import ProcessGroup
from retrograd.pipelining.transports.spmd import default_timeout, report_ranks
from retrograd.pipelining.transports.status_file import wait_for, wait_with

# A running operation: it yields functions that return whether it may continue, and returns the tensors it has written.
Steps = Generator[Callable[[], Any], None, list[Tensor]]
_abandoned: list[Any] = []  # operations that have not ended: MPI may still write to their buffers
# MPI moves the parts of a large array only while it is polled, so ranks do not sleep before about 10 ms have passed.
AWAKE = 5000
GRACE = 0.5  # seconds for the last messages of a rank whose script has ended, or that has gone on to something else


class Work:
    """The handle of an operation that was started with `async_op=True`, or by `isend` and `irecv`.

    The operation makes progress in `wait`, `is_completed`, and whenever this rank takes part in another operation.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> dist.init_process_group()
    >>> x = rg.ones(2)
    >>> work = dist.all_reduce(x, async_op=True)
    >>> work.wait(), work.is_completed(), work.result()
    (True, True, [tensor([1., 1.])])
    >>> dist.destroy_process_group()
    """

    _done = True  # of a handle whose arguments were wrong

    def __init__(
        self,
        group: ProcessGroup,
        call: str,
        steps: Steps,
        compared: Fingerprint | None = None,
        senders: Sequence[int] = (),
        collective: bool = False,
    ) -> None:
        # compared: of an operation that no rank passes before all have started it.  senders: the ranks of the group of
        # which it waits for a message; it waits for all ranks by default.  collective: whether all ranks of the group
        # start it in the same order.
        self._senders, self.is_collective = senders, collective
        self._group, self._call, self._steps, self._compared = group, call, steps, compared
        self._ready: Callable[[], Any] = _always
        self._done = False
        self._result: list[Tensor] = []
        self._error: BaseException | None = None
        self._alarm: float | None = None  # when this rank has found out that the operation may never end
        self.source: int | None = None  # of a received message, the sender's rank in the group
        self._start = perf_counter_ns()
        self._operations = group.peers.operations
        if not self.advance():
            self._operations.running.add(self)

    def __del__(self) -> None:
        if not self._done:
            abandon(self._steps)

    def is_completed(self) -> bool:
        """Return whether the operation has ended, after progress that needs no waiting."""
        self._group.peers.poll()
        return self.advance()

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        """Wait for the end of the operation; return True.

        Raises TimeoutError after `timeout`, by default that of the group; PeerLost if the script of another rank has
        ended; RankMismatchError if the ranks run different operations.
        """
        seconds = self._timeout() if timeout is None else timeout.total_seconds()
        peers = self._group.peers
        before, peers.doing = peers.doing, lambda: f"waits {self._awaited()}"
        waits, start = not self._done, perf_counter_ns()
        try:
            if not peers.until(self._advance_or_fail, seconds, AWAKE, self._wait_text):
                peers.overdue = True
                whom = self._awaited() if self._senders else f"for the other ranks {self._awaited()}"
                remedy = "" if self._senders else "; all ranks of the group must call it"
                report = report_ranks(peers, seconds)
                raise TimeoutError(f"rank {peers.number} has waited {seconds:g} s {whom}{remedy}:\n{report}")
        finally:
            peers.doing = before
            if waits:
                note_wait(self._call, start)
            if peers.status is not None and not peers.status.in_launch:
                peers.status.write(f"after {self._call}")
        if self._error is not None:
            if self._error is self._operations.mismatch:
                self._operations.mismatch = None
            raise self._error
        return True

    def is_success(self) -> bool:
        """Return whether the operation has ended without an error."""
        return self._done and self._error is None

    def exception(self) -> BaseException | None:
        """Return the error of the operation, or None."""
        return self._error

    def result(self) -> list[Tensor]:
        """Return the tensors that the operation has written; it must have ended."""
        if not self._done:
            raise RuntimeError(f"{self._call}: the operation has not ended; call wait() first")
        return self._result

    def get_future(self) -> Future[list[Tensor]]:
        """Return a future of the tensors that the operation writes.

        The operation advances when the future is asked for its state or its result, in the same thread.

        >>> import retrograd as rg
        >>> import retrograd.distributed as dist
        >>> dist.init_process_group()
        >>> work = dist.all_reduce(rg.ones(2), async_op=True)
        >>> work.get_future().then(lambda future: future.value()[0] / 2).wait()
        tensor([0.5000, 0.5000])
        >>> dist.destroy_process_group()
        """

        def advance(future: Future[list[Tensor]], wait: bool) -> None:
            try:
                ended = self.wait() if wait else self.is_completed()
            except Exception as error:
                future.set_exception(error)
                return
            if self._error is not None:
                future.set_exception(self._error)
            elif ended:
                future.set_result(self.result())

        return Future.of_work(advance)

    def source_rank(self) -> int:
        """Return the rank in the group that has sent the received message; -1 for other operations."""
        return -1 if self.source is None else self.source

    def _wait_text(self) -> str:
        peers = self._group.peers
        if len(self._senders) != 1:
            return wait_with(self._call, peers.members)
        return wait_for(self._call, "a message", peers.ranks[self._senders[0]])

    def _awaited(self) -> str:
        """Return what this rank waits for, as text."""
        if not self._senders:
            return f"in {self._call}"
        return f"for a message from {self._group.peers.format(self._senders)} in {self._call}"

    def _timeout(self) -> float:
        found = self._group.transport.timeout
        return default_timeout(self._group.peers.slowest) if found is None else found

    def advance(self) -> bool:
        """Run the operation as far as it can; return whether it has ended."""
        while not self._done and self._ready():
            try:
                self._ready = next(self._steps)
            except StopIteration as end:
                self._done, self._result = True, end.value
                note_communication(self._call, self._start)
            except BaseException as error:
                self._done, self._error = True, error
        if self._done:
            self._operations.running.discard(self)
        return self._done

    def _advance_or_fail(self) -> bool:
        if self.advance():
            return True
        self._advance_others()
        if self._done:
            return True
        peers = self._group.peers
        others_launch = self._compared is not None and peers.awaits_this_rank()
        if self._cannot_end() or others_launch:
            self._alarm = peers.clock() if self._alarm is None else self._alarm
            if peers.clock() - self._alarm > GRACE:
                self._fail(others_launch)
        return False

    def _cannot_end(self) -> bool:
        """Return whether the scripts of all its senders are over, or that of any rank if it needs all of them."""
        left = self._group.peers.left
        return left.keys() >= set(self._senders) if self._senders else bool(left)

    def _advance_others(self) -> None:
        """Advance the other operations of this rank; end with the error of one in which ranks differ.

        Such ranks do not come to this operation, also if it is one of another group.
        """
        for other in self._operations.running - {self}:
            other.is_completed()
        if self._operations.mismatch is not None:
            self.end_with(self._operations.mismatch)

    def end_with(self, error: BaseException) -> None:
        """End an operation that other ranks will not end."""
        if not self._done:
            abandon(self._steps)
            self._done, self._error = True, error
            self._operations.running.discard(self)

    def _fail(self, others_launch: bool) -> None:
        """Raise, because another rank has ended or runs something else; then all ranks learn of the difference."""
        abandon(self._steps)
        if others_launch:
            self._group.launch(lambda link: None, self._compared)
        peers = self._group.peers
        raise PeerLost(
            f"the script of {peers.format(peers.left)} is over, while rank {peers.number} is in {self._call}"
        )


def fail_running(group: ProcessGroup, error: Exception) -> None:
    """End the collective operations of a group that this rank has started, because ranks differ in one of them."""
    group.peers.operations.mismatch = error
    for work in group.peers.operations.running.copy():
        if work.is_collective and work._group is group:
            work.end_with(error)


def abandon(steps: Steps) -> None:
    """Keep the memory of an operation that will not be continued."""
    _abandoned.append(steps)


def _always() -> bool:
    return True
