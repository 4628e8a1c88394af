"""Handle Ctrl-C, or the SIGTERM that stops a container, after the running step."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

HANDLERS: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class SignalGuard:
    """While entered, the first signal only sets `asked`, to its number; a second one stops at once, as usual."""

    def __init__(self) -> None:
        self.signal_number = 0

    def __enter__(self) -> "SignalGuard":
        # Only the main thread can handle signals.
        self._in_main_thread = threading.current_thread() is threading.main_thread()
        if self._in_main_thread:
            self._old_handlers = {number: signal.signal(number, self._record_signal) for number in HANDLERS}
        return self

    def _record_signal(self, number: int, frame: FrameType | None) -> None:
        self.signal_number = number
        for known, handler in HANDLERS.items():
            signal.signal(known, handler)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._in_main_thread:
            for number, handler in self._old_handlers.items():
                signal.signal(number, handler)
