"""Sample the use of the machine while a program runs: each core, and the memory of the process."""

import os
import threading
import time
from pathlib import Path

from retrograd.pipelining.timeline.records import Sample

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
IDLE = slice(3, 5)  # of the counters of a core: idle, and waiting for a device
COUNTERS = 8  # the further ones, of guests, are counted in the first ones already


class MachineSampler:
    """A thread that notes the use of each core and the resident memory of this process, on Linux.

    every: seconds between samples.  limit: the number of samples from which every second one is dropped, and the
    time between them doubled.  root: the folder that has /proc.
    """

    def __init__(self, every: float, limit: int = 20_000, root: Path = Path("/")) -> None:
        self.samples: list[Sample] = []
        self.every = every
        self.limit = limit
        self._stat, self._statm = root / "proc/stat", root / "proc/self/statm"
        self._before: dict[int, tuple[int, int]] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def available(self) -> bool:
        """Return whether this system has the files that are read."""
        return self._stat.exists() and self._statm.exists()

    def start(self) -> None:
        """Start the thread, if there is something to read."""
        if self.available:
            self.read()
            self._thread = threading.Thread(target=self._run, name="machine sampler", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread, after a last sample."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self.read()

    def _run(self) -> None:
        while not self._ended.wait(self.every):
            self.read()

    def read(self) -> None:
        """Append a sample; the first call only notes the counters."""
        now = time.perf_counter()
        counters = self._core_counters()
        before, self._before = self._before, counters
        if not before:
            return
        cores = tuple(_busy_share(before.get(core, (0, 0)), counters[core]) for core in sorted(counters))
        self.samples.append(Sample(now, cores, int(self._statm.read_text().split()[1]) * PAGE))
        if len(self.samples) >= self.limit:
            del self.samples[::2]
            self.every *= 2

    def _core_counters(self) -> dict[int, tuple[int, int]]:
        """Return the idle and the total ticks of each core that this process may use."""
        allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
        found = {}
        for line in self._stat.read_text().splitlines():
            name, *numbers = line.split()
            core = name.removeprefix("cpu")
            if name.startswith("cpu") and core and (allowed is None or int(core) in allowed):
                ticks = list(map(int, numbers[:COUNTERS]))
                found[int(core)] = (sum(ticks[IDLE]), sum(ticks))
        return found


def _busy_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Return the share of ticks that were not idle, from 0 to 1."""
    total = after[1] - before[1]
    return min(max(1 - (after[0] - before[0]) / total, 0.0), 1.0) if total > 0 else 0.0
