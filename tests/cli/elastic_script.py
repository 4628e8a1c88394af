"""`recovery_script.py`, except that a rank alone waits at a step until it is ended to run with others."""

import os
import sys
import time
from pathlib import Path

from tests.pipelining import recovery_script

WAITS_AT = 24


class Training(recovery_script.Training):
    """The training, which stops at a step where there is one rank only."""

    def step(self, number):
        """Return the loss of a step."""
        if number == WAITS_AT and os.environ["WORLD_SIZE"] == "1":
            while True:  # over Ray the script is not in the main thread, where signals end a wait
                time.sleep(0.01)
        return super().step(number)


if __name__ == "__main__":
    recovery_script.Training = Training
    recovery_script.main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
