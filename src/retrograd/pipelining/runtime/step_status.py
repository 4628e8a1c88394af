"""Write the loss and the throughput of steps into the status file of this rank, for `retrograd top`."""

import time
from collections.abc import Callable

from retrograd.core import Tensor
from retrograd.pipelining.transports.status_file import StatusFile, open_status_file


class StepStatus:
    """Counts the steps of a pipeline.

    clock: returns seconds.  file: that of this rank; None: the launcher's, if there is one.
    """

    def __init__(self, clock: Callable[[], float] = time.time, file: StatusFile | None = None) -> None:
        self._file = file or open_status_file()
        self._clock = clock
        self._steps = 0
        self._last = clock()

    def add(self, loss: Tensor, examples: int, steps: int = 1) -> None:
        """Write the numbers of a step that has ended; its seconds are those since the one before.

        steps: how many have ended together; loss is that of the last one, and examples are those of all.
        """
        if self._file is None:
            return
        now = self._clock()
        self._steps += steps
        self._file.write_step(
            step=self._steps,
            loss=float(loss.detach()),
            examples=examples // steps,
            seconds=(now - self._last) / steps,
            at=now,
        )
        self._last = now
