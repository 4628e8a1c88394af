"""The Ray actor of one rank: it runs the user's script in one thread, and receives messages in others."""

import ctypes
import os
import runpy
import select
import sys
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

from retrograd.pipelining.transports.rank_messaging import Head, Kind, Peers
from retrograd.pipelining.transports.ray import Mailbox, join
from retrograd.pipelining.transports.status_file import open_status_file
from retrograd.pipelining.transports.uncaught import error_at_end, uncaught_report

THREADS = 4  # for concurrent calls: the script, its output, messages
POLL_SECONDS = 0.5  # seconds that a call for output waits
STDOUT, STDERR = 1, 2
CHUNK_BYTES = 1 << 16  # bytes of output in one answer


class Script(NamedTuple):
    """The script that an actor runs.

    command: the script and its arguments; `module`: the name of a module instead.  folder: the working directory.
    environment: variables to set.  captured: the file descriptors whose output is fetched by `Worker.output`.
    """

    command: list[str]
    module: bool
    folder: str
    environment: dict[str, str]
    captured: Sequence[int] = (STDOUT, STDERR)


class Worker:
    """One rank; Ray calls each of its methods in a separate thread."""

    def __init__(self, rank: int, size: int) -> None:
        self._mailbox = Mailbox(rank, size)
        self._peers = Peers(self._mailbox)
        self._thread = 0
        self._writing: dict[int, int] = {}  # by file descriptor, the pipe end it is redirected to
        self._reading: dict[int, int] = {}  # the other ends, and the file descriptor of each
        join(self._peers)

    def location(self) -> tuple[int, str]:
        """Return the process id and host; also serves to check that the actor is alive."""
        return os.getpid(), os.uname().nodename

    def open(self, captured: Sequence[int]) -> None:
        """Prepare to capture what is written to these file descriptors."""
        for descriptor in captured:
            reading, self._writing[descriptor] = os.pipe()
            self._reading[reading] = descriptor

    def run(self, script: Script, others: Sequence[Any]) -> int:
        """Run a script as `python` would, announce its end to the other ranks, and return its exit code."""
        self._mailbox.others = [actor.deliver.options(num_returns=0).remote for actor in others]
        self._thread = threading.get_ident()
        self._redirect()
        try:
            return _exit_code(script, self._peers)
        finally:
            self._peers.doing = lambda: "its script is over"
            self._peers.broadcast(Kind.LEFT, error_at_end())
            self._close_output()

    def deliver(self, rank: int, number: int, head: Head, buffers: Sequence[Any]) -> None:
        """Receive a packet."""
        self._mailbox.take(rank, number, head, buffers)

    def mark_lost(self, rank: int) -> None:
        """Record that the process of another rank is gone."""
        self._mailbox.take_loss(rank)

    def doing(self) -> str:
        """Return the current action of the rank, even while its script does not poll."""
        return self._peers.doing()

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the script, as soon as it runs Python again."""
        with self._mailbox.sending:
            thread, kind = ctypes.c_ulong(self._thread), ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, kind)

    def output(self) -> list[tuple[int, bytes]] | None:
        """Return new output with its file descriptors; None at the end."""
        ready = select.select(list(self._reading), [], [], POLL_SECONDS)[0]
        chunks = [(self._reading[end], os.read(end, CHUNK_BYTES)) for end in ready]
        self._reading = {end: it for end, it in self._reading.items() if (it, b"") not in chunks}
        return [chunk for chunk in chunks if chunk[1]] if self._reading else None

    def _redirect(self) -> None:
        """Redirect output into the pipes, including that of C code and child processes."""
        for descriptor, end in self._writing.items():
            os.dup2(end, descriptor)
            os.close(end)
        sys.stdout = os.fdopen(STDOUT, "w", 1, closefd=False)
        sys.stderr = os.fdopen(STDERR, "w", 1, closefd=False)

    def _close_output(self) -> None:
        """Redirect output to the null device, which closes the pipes."""
        sys.stdout.flush()
        sys.stderr.flush()
        null_device = os.open(os.devnull, os.O_WRONLY)
        for descriptor in self._writing:
            os.dup2(null_device, descriptor)
        os.close(null_device)


def _exit_code(script: Script, peers: Peers) -> int:
    try:
        _execute(script, peers)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF  # as the system does with the code of a process
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as failure:
        failure.__traceback__ = _script_frames(failure.__traceback__)
        sys.stderr.write(uncaught_report(failure, peers))
        return 130 if isinstance(failure, KeyboardInterrupt) else 1
    return 0


def _execute(script: Script, peers: Peers) -> None:
    os.environ.update(script.environment)
    peers.status = open_status_file()
    os.chdir(script.folder)
    sys.argv = list(script.command)
    name = script.command[0]
    if script.module:
        sys.path.insert(0, script.folder)
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(name)))
        runpy.run_path(name, run_name="__main__")


def _script_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames between the actor and the script."""
    ours = (__file__, "<frozen runpy>", runpy.__file__)
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    return trace
