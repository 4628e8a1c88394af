"""Remove what MPICH's mpiexec adds to the output of a script, and read the signal that it reports."""

import re
import signal

RULE = b"=" * 83
TITLE = b"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES"
SIGNAL = re.compile(rb"EXIT STRING: .* \(signal (\d+)\)")
# The lines of mpiexec at an interruption: it forwards the first one, and ends at the second one.
INTERRUPTION = re.compile(
    rb"\[mpiexec@[^]]*\] (Sending Ctrl-C to processes as requested|Press Ctrl-C again to force abort)"
)
OWN_LINE = b"[mpiexec@"
LAST = b"Please see the FAQ page"


class BannerFilter:
    """Removes what mpiexec writes to the standard output: lines at an interruption, a banner if a signal ends a rank.

    signal: the signal that it reports, or None.  Everything else is shown at once, except that an empty line and a
    rule wait for the next line, and what may begin a line of mpiexec for the end of the line.

    >>> output = BannerFilter()
    >>> shown = output.feed(b"loss 1.0\\n\\n" + RULE + b"\\n" + TITLE + b"\\n=   EXIT CODE: 9\\n")
    >>> shown += output.feed(b"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\\n")
    >>> shown + output.finish(), output.signal
    (b'loss 1.0\\n', <Signals.SIGKILL: 9>)
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._line = b""  # the part of a line that has arrived and is not shown
        self._held: list[bytes] = []  # lines that may begin the banner
        self._inside = False
        self._begun = False  # whether the beginning of the present line is shown

    def feed(self, data: bytes) -> bytes:
        """Return the bytes to show now."""
        *lines, rest = (self._line + data).split(b"\n")
        shown = b"".join(self._take(line) for line in lines)
        self._line = rest
        if rest and not self._inside and (self._begun or not self._may_begin_banner(rest)):
            shown += b"".join(self._held) + rest
            self._held, self._line, self._begun = [], b"", True
        return shown

    def finish(self) -> bytes:
        """Return the bytes to show at the end."""
        return b"" if self._inside else b"".join(self._held) + self._line

    def _may_begin_banner(self, start: bytes) -> bool:
        own_line = start.startswith(OWN_LINE) or OWN_LINE.startswith(start)
        return own_line or RULE.startswith(start) or TITLE.startswith(start)

    def _take(self, line: bytes) -> bytes:
        """Return what to show when a line is complete."""
        begun, self._begun = self._begun, False
        if begun:
            return line + b"\n"
        if self._inside:
            self._read(line)
            return b""
        if line == TITLE and self._held and self._held[-1] == RULE + b"\n":
            self._inside, self._held = True, []
            return b""
        if INTERRUPTION.fullmatch(line):
            return b""
        self._held.append(line + b"\n")
        if line in (b"", RULE):
            kept, self._held = self._held[:-2], self._held[-2:]
        else:
            kept, self._held = self._held, []
        return b"".join(kept)

    def _read(self, line: bytes) -> None:
        """Read a line of the banner."""
        if found := SIGNAL.search(line):
            self.signal = signal.Signals(int(found[1]))
        if line.startswith(LAST):
            self._inside = False
