"""Handle Ctrl-C, or the SIGTERM that stops a container, after the running step."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

HANDLERS: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Interruption:
    """While entered, the first signal only sets `asked`, to its number; a second one stops at once, as usual."""

    def __init__(self) -> None:
        self.asked = 0

    def __enter__(self) -> "Interruption":
        self._in_charge = threading.current_thread() is threading.main_thread()  # other threads cannot handle signals
        if self._in_charge:
            self._before = {number: signal.signal(number, self._note) for number in HANDLERS}
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = number
        for known, handler in HANDLERS.items():
            signal.signal(known, handler)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._in_charge:
            for number, handler in self._before.items():
                signal.signal(number, handler)
