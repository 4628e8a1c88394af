"""Take the reports of the ranks, and the banner of mpiexec, out of the output of a script."""

import re
import signal
from typing import NamedTuple

from retrograd.cli.mpi_banner import BannerFilter

BEGIN, END = b"\x1e", b"\x1f"  # of a report


class ExitReport(NamedTuple):
    """The exit code of a rank whose script has ended with one that is not 0, or minus a signal; and its last action."""

    rank: int
    code: int
    action: str = ""


class RankOutput:
    """Removes the reports of `rank_process.py` and the banner of mpiexec; everything else is shown.

    token: marks the reports of this run.  by_line: show whole lines only, because mpiexec puts the rank before each.
    exits: the reports, the first one first.

    >>> output = RankOutput("1a2b")
    >>> output.feed(b"loss\\x1e1a2b\\t1\\t3\\tF1.0\\x1f 1.0"), output.exits
    (b'loss 1.0', [ExitReport(rank=1, code=3, action='F1.0')])
    """

    def __init__(self, token: str, by_line: bool = False) -> None:
        self.exits: list[ExitReport] = []
        self._start = BEGIN + token.encode() + b"\t"
        self._report = re.compile(
            (rb"(?:\[\d+\] )?" if by_line else b"") + re.escape(self._start) + b"([^" + END + b"]*)" + END
        )
        self._by_line = by_line
        self._held = b""  # bytes that may begin a report
        self._banner = BannerFilter()

    @property
    def signal(self) -> signal.Signals | None:
        """Return the signal that mpiexec's banner reports, or None."""
        return self._banner.signal

    def feed(self, data: bytes) -> bytes:
        """Return the bytes to show now."""
        data = self._report.sub(self._take, self._held + data)
        length = data.rfind(b"\n") + 1 if self._by_line else self._shown_length(data)
        self._held = data[length:]
        return self._banner.feed(data[:length])

    def finish(self) -> bytes:
        """Return the bytes to show at the end."""
        return self._banner.feed(self._held) + self._banner.finish()

    def _take(self, report: re.Match[bytes]) -> bytes:
        """Record a report; return nothing, which is shown instead of it."""
        rank, code, action = report[1].decode(errors="replace").split("\t", 2)
        self.exits.append(ExitReport(int(rank), int(code), action))
        return b""

    def _shown_length(self, data: bytes) -> int:
        """Return how many bytes come before a possible beginning of a report."""
        begin = data.rfind(BEGIN)
        if begin < 0:
            return len(data)
        rest = data[begin:]
        return begin if rest.startswith(self._start) or self._start.startswith(rest) else len(data)
