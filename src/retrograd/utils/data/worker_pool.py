"""The workers of a loader: threads or processes, which always end with it."""

import multiprocessing
import os
import pickle
import queue
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from typing import Any, Protocol

from retrograd.utils.data.shared_batches import Packed, pack, receive_packed, send_packed, skip_packed
from retrograd.utils.data.worker import Failure, FetchSettings, use_worker_generator, work

STOP_TIMEOUT = 1.0  # seconds that a process has to end by itself, and again after SIGTERM
KILL_TIMEOUT = 60.0  # seconds that a busy machine may take to end a killed process


class Worker(Protocol):
    """Runs tasks in order."""

    def send(self, task: Any) -> None:
        """Send it another task."""

    def receive(self, timeout: float | None) -> Any:
        """Return the result of the earliest outstanding task; TimeoutError after that many seconds."""

    def stop(self) -> None:
        """End it; outstanding tasks are dropped."""


class ThreadWorker:
    """A worker thread: it shares the dataset, and runs in parallel while NumPy or file access releases the GIL."""

    def __init__(self, settings: FetchSettings, number: int) -> None:
        self._tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._stopped = threading.Event()
        name = f"DataLoader worker {number}"
        # The thread references the queues, not this object or the loader, so these can be collected.
        args = (settings, number, self._tasks, self._results, self._stopped)
        threading.Thread(target=_run_in_thread, args=args, name=name, daemon=True).start()

    def send(self, task: Any) -> None:
        self._tasks.put(task)

    def receive(self, timeout: float | None) -> Any:
        try:
            return self._results.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError from None

    def stop(self) -> None:
        self._stopped.set()
        self._tasks.put(None)


def _run_in_thread(
    settings: FetchSettings,
    number: int,
    tasks: "queue.SimpleQueue[Any]",
    results: "queue.SimpleQueue[Any]",
    stopped: threading.Event,
) -> None:
    with use_worker_generator():
        for result in work(settings, number, _until_stopped(tasks, stopped)):
            results.put(result)


def _until_stopped(tasks: "queue.SimpleQueue[Any]", stopped: threading.Event) -> Iterator[Any]:
    while True:
        task = tasks.get()
        if task is None or stopped.is_set():
            return
        yield task


class ProcessWorker:
    """A worker process with a copy of the dataset; tasks and results are pickled, large arrays shared."""

    def __init__(self, settings: FetchSettings, number: int, context: BaseContext) -> None:
        self._number = number
        self._connection, theirs = context.Pipe()
        forked = context.get_start_method() == "fork"
        self._hint = "" if forked else _describe_unfound(settings)
        self._process = context.Process(  # type: ignore[attr-defined]
            target=_run_in_process,
            args=(settings, number, theirs, self._connection if forked else None),
            name=f"DataLoader worker {number}",
            daemon=True,
        )
        try:
            self._process.start()
        except BaseException:
            self._connection.close()  # which ends the process, if it was started before an interrupt
            raise
        theirs.close()  # so that the connection closes when the process ends

    def send(self, task: Any) -> None:
        with suppress(OSError):  # it is dead, which `receive` reports
            self._connection.send(task)

    def receive(self, timeout: float | None) -> Any:
        if not self._connection.poll(timeout):
            raise TimeoutError
        try:
            return receive_packed(self._connection)
        except (EOFError, ConnectionResetError):
            self._process.join(STOP_TIMEOUT)
            raise RuntimeError(
                f"DataLoader: worker {self._number}, process {self._process.pid}, ended with exit code "
                f"{self._process.exitcode} before its work was done; a negative code is that of a signal, -9 often "
                f"one of a system that had no memory left{self._hint}"
            ) from None

    def stop(self) -> None:
        with self._connection:  # which ends the process after an interrupt, too
            self.send(None)
            deadline = time.monotonic() + STOP_TIMEOUT
            self._drain(deadline)
            self._process.join(max(deadline - time.monotonic(), 0))
            for end, patience in ((self._process.terminate, STOP_TIMEOUT), (self._process.kill, KILL_TIMEOUT)):
                if self._process.exitcode is None:
                    end()
                    self._process.join(patience)
        self._process.close()

    def _drain(self, deadline: float) -> None:
        """Discard results, because the process may be blocked writing them."""
        with suppress(EOFError, OSError):
            while (left := deadline - time.monotonic()) > 0 and self._connection.poll(left):
                skip_packed(self._connection)


def _describe_unfound(settings: FetchSettings) -> str:
    """Return a hint if a process that is not forked may not find a class or a function where it is defined."""
    given: tuple[Any, ...] = (type(settings.dataset), settings.collate_fn, settings.worker_init_fn)
    names = [part.__qualname__ for part in given if getattr(part, "__module__", "") == "__main__"]
    if not names:
        return ""
    return (
        f"; it has to import {', '.join(names)} from __main__: define them in a module, where this is a notebook, and "
        f"in a script begin below if __name__ == '__main__'; or leave out multiprocessing_context, for threads"
    )


def _run_in_process(settings: FetchSettings, number: int, connection: Connection, parents: Connection | None) -> None:
    if parents is not None:
        parents.close()  # the copy of the parent's end: so the connection closes with the parent's own
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    stopped = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent, which ends this process
    threading.Thread(target=_receive_tasks, args=(connection, tasks, stopped), daemon=True).start()
    with use_worker_generator():
        for result in work(settings, number, _until_stopped(tasks, stopped)):
            try:
                send_packed(connection, _pack_result(result, number))
            except OSError:
                return  # the parent no longer reads


def _receive_tasks(connection: Connection, tasks: "queue.SimpleQueue[Any]", stopped: threading.Event) -> None:
    """Queue tasks as they arrive, so that the sender never blocks; end the process when its parent is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    while True:
        # A forked process has both ends of earlier connections, so end of file alone does not show that the parent is
        # gone.
        if connection not in wait([connection, parent.sentinel]):
            os._exit(1)  # the parent is gone
        try:
            task = connection.recv()
        except (EOFError, OSError):
            os._exit(1)
        if task is None:
            stopped.set()
            tasks.put(None)
            return
        tasks.put(task)


class _RemoteTraceback(Exception):  # noqa: N818 (shown as the cause of one)
    """The traceback of an error in another process, as text."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


class _PicklableError:
    """An error and its traceback, joined when unpickled."""

    def __init__(self, error: BaseException, text: str) -> None:
        self.error = error
        self.text = text

    def __reduce__(self) -> Any:
        return _unpickle_failure, (self.error, self.text)


def _unpickle_failure(error: BaseException, text: str) -> Failure:
    error.__cause__ = _RemoteTraceback(text)
    return Failure(error)


def _pack_result(result: Any, number: int) -> Packed:
    """Return a result to be sent, or a failure if it cannot be pickled."""
    if isinstance(result, Failure):
        return Packed(_pickle_failure(result.error))
    try:
        return pack(result)
    except Exception as error:
        error.add_note(f"DataLoader: worker {number} can't send what collate_fn made to another process")
        return Packed(_pickle_failure(error))


def _pickle_failure(error: BaseException) -> bytes:
    text = "".join(traceback.format_exception(error))
    error.__traceback__ = error.__cause__ = error.__context__ = None
    try:
        data = pickle.dumps(_PicklableError(error, text))
        pickle.loads(data)  # some errors can be pickled, but not unpickled
    except Exception:
        data = pickle.dumps(_PicklableError(RuntimeError(f"{type(error).__name__}: {error}"), text))
    return data
