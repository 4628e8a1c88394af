"""The actor that is one rank on Ray: it runs the user's script in one thread, and takes in mail in others."""

import ctypes
import os
import runpy
import select
import sys
import threading
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

from retrograd.pipelining.transports.rank_messaging import Head, Kind, Peers
from retrograd.pipelining.transports.ray import Mailbox, join

THREADS = 4  # for calls at the same time: the script, its output, mail
LOOK = 0.5  # seconds that a call for output waits for some
STDOUT, STDERR = 1, 2
AT_ONCE = 1 << 16  # bytes of output in one answer


class Script(NamedTuple):
    """What an actor runs.

    command: the script and its arguments; `module`: the name of a module in its place.  folder: the working directory.
    environment: variables to set.  shown: the file descriptors whose output is fetched by `Worker.output`.
    """

    command: list[str]
    module: bool
    folder: str
    environment: dict[str, str]
    shown: Sequence[int] = (STDOUT, STDERR)


class Worker:
    """One rank; Ray calls its methods in threads of their own."""

    def __init__(self, rank: int, size: int) -> None:
        self._mailbox = Mailbox(rank, size)
        self._peers = Peers(self._mailbox)
        self._thread = 0
        self._writing: dict[int, int] = {}  # by file descriptor, the end of a pipe that it shall write to
        self._reading: dict[int, int] = {}  # the other ends, and which file descriptor writes there
        join(self._peers)

    def where(self) -> tuple[int, str]:
        """The process and its host; the answer to whether the actor is there."""
        return os.getpid(), os.uname().nodename

    def open(self, shown: Sequence[int]) -> None:
        """Prepare to hand over what is written to these file descriptors."""
        for descriptor in shown:
            reading, self._writing[descriptor] = os.pipe()
            self._reading[reading] = descriptor

    def run(self, script: Script, others: Sequence[Any]) -> int:
        """Run a script as `python` would, and tell the other ranks when it is over; its exit code."""
        self._mailbox.others = [actor.deliver.options(num_returns=0).remote for actor in others]
        self._thread = threading.get_ident()
        self._redirect()
        try:
            return _exit_code(script)
        finally:
            self._peers.doing = lambda: "its script is over"
            self._peers.tell(Kind.LEFT, None)
            self._hang_up()

    def deliver(self, rank: int, number: int, head: Head, buffers: Sequence[Any]) -> None:
        """Take in a letter."""
        self._mailbox.take(rank, number, head, buffers)

    def lost(self, rank: int) -> None:
        """Learn that the process of another rank is gone."""
        self._mailbox.take_loss(rank)

    def doing(self) -> str:
        """What the rank is at, even where its script does not listen."""
        return self._peers.doing()

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the script, as soon as it runs Python again."""
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(KeyboardInterrupt))

    def output(self) -> list[tuple[int, bytes]] | None:
        """What was written since, and to which file descriptor; None when there will be no more."""
        ready = select.select(list(self._reading), [], [], LOOK)[0]
        chunks = [(self._reading[end], os.read(end, AT_ONCE)) for end in ready]
        self._reading = {end: it for end, it in self._reading.items() if (it, b"") not in chunks}
        return [chunk for chunk in chunks if chunk[1]] if self._reading else None

    def _redirect(self) -> None:
        """Write into the pipes from now on, what C code and child processes write included."""
        for descriptor, end in self._writing.items():
            os.dup2(end, descriptor)
            os.close(end)
        sys.stdout = os.fdopen(STDOUT, "w", 1, closefd=False)
        sys.stderr = os.fdopen(STDERR, "w", 1, closefd=False)

    def _hang_up(self) -> None:
        """Write nowhere from now on, which ends what is read from the pipes."""
        sys.stdout.flush()
        sys.stderr.flush()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in self._writing:
            os.dup2(nowhere, descriptor)
        os.close(nowhere)


def _exit_code(script: Script) -> int:
    try:
        _execute(script)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as failure:
        trace = _from_the_script(failure.__traceback__)
        sys.stderr.write("".join(traceback.format_exception(type(failure), failure, trace)))
        return 130 if isinstance(failure, KeyboardInterrupt) else 1
    return 0


def _execute(script: Script) -> None:
    os.environ.update(script.environment)
    os.chdir(script.folder)
    sys.argv = list(script.command)
    name = script.command[0]
    if script.module:
        sys.path.insert(0, script.folder)
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(name)))
        runpy.run_path(name, run_name="__main__")


def _from_the_script(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without what lies between the actor and the script."""
    ours = (__file__, "<frozen runpy>", runpy.__file__)
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    return trace
