"""Run a process, and end it when this one is asked to end."""

import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence

from retrograd.core.level import generator_block

GRACE = 10.0  # seconds for a process to end by itself after a forwarded signal
POLL_INTERVAL = 0.5  # seconds between two checks for a signal


def watch(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command; return its exit code, negative if a signal ended it, or one that this process received.

    The first SIGINT or SIGTERM is forwarded; a second one, or the end of the grace period, kills the command. It has no
    standard input, and its own session, so that Ctrl-C reaches it only through this process.
    """
    with record_signals() as received:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
        end = None
        while (code := _wait(process)) is None:
            if received and end is None:
                process.send_signal(received[0])
                end = time.monotonic() + GRACE
            elif end is not None and (len(received) > 1 or time.monotonic() > end):
                process.kill()
        return -received[0] if received and code else code


def _wait(process: subprocess.Popen) -> int | None:
    try:
        return process.wait(POLL_INTERVAL)
    except subprocess.TimeoutExpired:
        return None


@generator_block
def record_signals() -> Iterator[list[signal.Signals]]:
    """Record the termination signals that arrive while entered; otherwise ignore them."""
    received: list[signal.Signals] = []
    before = {
        number: signal.signal(number, lambda number, _: received.append(signal.Signals(number)))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
