"""Ctrl-C that lets the running step end."""

import signal
import threading
from types import FrameType, TracebackType


class Interruption:
    """While it is entered, the first Ctrl-C only sets `asked`; a second one stops at once, as usual."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> "Interruption":
        self._in_charge = threading.current_thread() is threading.main_thread()  # others can't handle signals
        if self._in_charge:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._in_charge:
            signal.signal(signal.SIGINT, self._before)
