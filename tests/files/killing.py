"""Kill `retrograd demo` at random moments and resume it: no incomplete file is read, and no step is lost.

python -m tests.files.killing [COUNT]: COUNT kills by SIGINT, SIGTERM and SIGKILL; prints the outcomes.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from retrograd.cli.demo.checkpoint import read
from retrograd.interop.safetensors import load_file

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
# A process that a shell has put into the background ignores SIGINT, and so would the runs that it starts.
PROGRAM = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from retrograd.cli import main; sys.exit(main())"
)
COMMAND = [sys.executable, "-c", PROGRAM, "demo", "--quiet"]


class Run:
    """A training run in a folder."""

    def __init__(self, folder: Path, epochs: int) -> None:
        self.folder, self.epochs = folder, epochs
        self.checkpoint = folder / "checkpoint.safetensors"

    def start(self, epochs: int | None = None) -> subprocess.Popen[str]:
        """Start, or resume from a checkpoint."""
        options = ["--epochs", str(epochs or self.epochs), "--output", str(self.folder)]
        if self.checkpoint.exists():
            options.append("--resume")
        return subprocess.Popen(
            [*COMMAND, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip

    def finish(self) -> float:
        """Wait for the end; return the seconds that it took."""
        start, process = time.monotonic(), self.start()
        said = process.communicate()[0]
        assert process.returncode == 0, said
        return time.monotonic() - start

    def losses(self) -> list[float]:
        """Return the losses of the checkpoint, which is complete; none without one."""
        if not self.checkpoint.exists():
            return []
        assert load_file(self.checkpoint)
        losses: list[float] = read(self.checkpoint)["losses"]
        return losses


def kill(run: Run, number: int, seconds: float) -> int:
    """Start a run, send a signal after some seconds, and return the exit code."""
    process = run.start()
    time.sleep(seconds)
    process.send_signal(number)
    said = process.communicate()[0]
    assert process.returncode in (0, -number, 128 + number), said
    return process.returncode


def leftovers(folder: Path) -> list[str]:
    """Return the names of incomplete files; a killed process could not remove them."""
    return sorted(path.name for path in folder.glob(".*.tmp"))


def soak(count: int, epochs: int = 6) -> str:
    """Kill a training run that often, then finish it: the losses equal an undisturbed run's; return a summary."""
    source, codes, begun = random.Random(count), Counter[str](), time.monotonic()
    with tempfile.TemporaryDirectory() as space:
        whole, run, kept = Run(Path(space, "whole"), epochs), Run(Path(space, "killed"), epochs), 0
        length = whole.finish()
        expected, done = whole.losses(), 0
        for turn in range(count):
            number = SIGNALS[turn % len(SIGNALS)]
            code = kill(run, number, source.uniform(0.05, 0.95) * length)
            found = run.losses()
            assert found == expected[: len(found)], f"after {number!r}: other losses than those of a run without kills"
            assert len(found) >= done, f"after {number!r}: {len(found)} steps, and {done} before"
            codes[f"{signal.Signals(number).name}: {code}"] += 1
            kept += len(found) > done
            done = len(found)
            if done == len(expected):  # finished in time: from the beginning
                run.checkpoint.unlink()
                done = 0
        torn = len(leftovers(run.folder)) if run.folder.exists() else 0
        run.finish()
        assert run.losses() == expected
        for name in ("metrics.json", "timeline.json"):
            assert (run.folder / name).read_text().endswith(("}\n", "}"))
    shown = ", ".join(f"{key} x{times}" for key, times in sorted(codes.items()))
    return (
        f"{count} kills, {kept} saved in time, {torn} unfinished files left by SIGKILL; no torn checkpoint, all losses "
        f"those of the undisturbed run, {time.monotonic() - begun:.0f} s ({shown})"
    )


if __name__ == "__main__":
    print(soak(int(sys.argv[1]) if len(sys.argv) > 1 else 30), flush=True)
