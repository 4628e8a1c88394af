"""Run a process, and end it when this one is asked to end."""

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Protocol

from retrograd.core.blocks import generator_block

GRACE = 10.0  # seconds for a process to end by itself after a forwarded signal
REPEATED = 1.0  # seconds after a signal in which another one is the same request, as from a terminal and a wrapper
CHUNK_BYTES = 1 << 16  # bytes of output read at a time
POLL_INTERVAL = 0.5  # seconds between two checks for a signal


class OutputFilter(Protocol):
    """Decides which bytes of a process's standard output are shown."""

    def feed(self, data: bytes) -> bytes:
        """Return the bytes to show now."""

    def finish(self) -> bytes:
        """Return the bytes to show at the end."""


def watch(
    command: Sequence[str],
    environment: Mapping[str, str],
    output: OutputFilter | None = None,
    ends: Callable[[], bool] | None = None,
) -> int:
    """Run a command; return its exit code, negative if a signal ended it, or one that this process received.

    The first SIGINT or SIGTERM interrupts the command by SIGINT, which mpiexec forwards to its ranks and Python raises
    as KeyboardInterrupt; a second one, or the end of the grace period, kills it. It has no standard input, and its own
    session, so that Ctrl-C reaches it only through this process.

    output: a filter of its standard output; None: it writes to that of this process.  ends: is called now and then;
    once it returns True, the command is interrupted.
    """
    with record_signals() as received:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=None if output is None else subprocess.PIPE,
            start_new_session=True,
        )
        forwarding = threading.Thread(target=_forward, args=(process, output), daemon=True)
        forwarding.start()
        end = None
        while (code := _wait(process)) is None:
            if end is None and (received or (ends is not None and ends())):
                process.send_signal(signal.SIGINT)
                end = time.monotonic() + GRACE
            elif end is not None and (len(received) > 1 or time.monotonic() > end):
                process.kill()
        # A child of the script that still holds the output does not delay the end.
        forwarding.join(GRACE)
        return -received[0] if received and code else code


def _forward(process: subprocess.Popen, output: OutputFilter | None) -> None:
    """Write the output of a process to that of this one, through the filter."""
    if output is None or process.stdout is None:
        return
    with process.stdout:
        while data := os.read(process.stdout.fileno(), CHUNK_BYTES):
            _write_all(output.feed(data))
    _write_all(output.finish())


def _write_all(data: bytes) -> None:
    """Write to the standard output's file descriptor, as the process itself would."""
    while data:
        data = data[os.write(sys.__stdout__.fileno() if sys.__stdout__ else 1, data) :]


def _wait(process: subprocess.Popen) -> int | None:
    try:
        return process.wait(POLL_INTERVAL)
    except subprocess.TimeoutExpired:
        return None


@generator_block
def record_signals(clock: Callable[[], float] = time.monotonic) -> Iterator[list[signal.Signals]]:
    """Record the termination signals that arrive while entered, repeated ones once; otherwise ignore them."""
    received: list[signal.Signals] = []
    latest = -math.inf

    def record(number: int, frame: FrameType | None) -> None:
        nonlocal latest
        now = clock()
        if now - latest > REPEATED:
            latest = now
            received.append(signal.Signals(number))

    before = {number: signal.signal(number, record) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
