"""Run `recovery_script.py` and kill its processes: a few times for `test_recovery.py`, and often as a script.

python -m tests.pipelining.recovery [TRANSPORT]...: kill over each transport, at random moments; print the outcomes.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import NamedTuple

from . import recovery_script

RANKS = 2
COMMAND = [sys.executable, "-c", "import sys; from retrograd.cli import main; sys.exit(main())"]
MARK = "RETROGRAD_RECOVERY_TEST"  # an environment variable by which the processes of a trial are known


class Note(NamedTuple):
    """An event that the script reports."""

    rank: int
    process: int
    what: str
    step: int
    value: str


class Kill(NamedTuple):
    """Send a signal to a rank some seconds after it has begun a step."""

    step: int
    rank: int = 0
    delay: float = 0.0
    signal: int = signal.SIGKILL


def undisturbed(steps):
    """Return the losses of an undisturbed run, on threads."""
    training = recovery_script.Training()
    return [training.step(number) for number in range(steps)]


class Trial:
    """Run the script over a transport until it is complete; `kills` are made in their order.

    in_saves: (rank, step, changes of the disk that it survives) for the ranks to kill themselves in a save.
    timeout: seconds that a rank waits for another one; None: the default.
    """

    def __init__(self, folder, transport, steps, every=1, kills=(), in_saves=(), timeout=None):
        self.folder, self.steps, self.every, self.transport = Path(folder), steps, every, transport
        self.kills, self.wanted = list(kills), len(kills) + len(in_saves)
        self.notes, self.ends, self.said = [], [], ""
        self.options = [] if timeout is None else ["--timeout", str(timeout)]
        self.variables = {}
        self.mark = uuid.uuid4().hex
        for rank, step, survived in in_saves:
            (self.folder / f"kill-{rank}-{step}").write_text(str(survived))
        os.mkfifo(self.folder / "notes")

    def run(self):
        """Run it, and restart it after each kill; return the exit code of the last run."""
        with open(os.open(self.folder / "notes", os.O_RDWR), encoding="ascii") as notes:
            self._start()
            for line in notes:
                fields = line.split()
                if fields[0] == "ended":
                    self.ends.append(int(fields[1]))
                    if not self.starts_again(self.ends[-1]):
                        return self.ends[-1]
                    self._start()
                else:
                    self._take(Note(int(fields[0]), int(fields[1]), fields[2], int(fields[3]), fields[4]))
        return None

    def _start(self):
        process = subprocess.Popen(
            self.command(),
            env={**os.environ, **self.variables, "OMP_NUM_THREADS": "1", MARK: self.mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        threading.Thread(target=self._wait, args=(process,), daemon=True).start()

    def command(self):
        """Return the command line of a start."""
        script = [recovery_script.__file__, str(self.folder), str(self.steps), str(self.every)]
        if self.transport == "threads":
            return [sys.executable, *script]
        options = ["--transport", self.transport, "--restarts", str(self.wanted), *self.options]
        return [*COMMAND, "run", "-n", str(RANKS), *options, *script]

    def strike(self, process, due):
        """Send the signal that is due to a process."""
        os.kill(process, due.signal)

    def starts_again(self, code):
        """Return whether the script is to be started again after an exit code; `retrograd run` does so itself."""
        return self.transport == "threads" and code == -signal.SIGKILL

    def _wait(self, process):
        self.said = process.communicate()[0].decode()
        with open(self.folder / "notes", "w", encoding="ascii") as notes:
            notes.write(f"ended {process.returncode}\n")

    def _take(self, note):
        self.notes.append(note)
        due = self.kills[0] if self.kills else None
        if due and note.what == "begins" and note.step >= due.step and note.rank == due.rank:
            self.kills.pop(0)
            if due.delay:
                time.sleep(due.delay)
            if self._is_ours(note.process):
                self.strike(note.process, due)

    def _is_ours(self, process):
        try:
            return f"{MARK}={self.mark}".encode() in Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        except OSError:
            return False

    def left(self, patience=60.0):
        """Return the processes of this trial that have not ended after a while."""
        end = time.monotonic() + patience
        while found := [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and self._is_ours(p.name)]:
            if time.monotonic() > end:
                break
            os.sched_yield()
        return found

    # ------------------------------------------------------------------------------------------------ what it shows

    def lives(self):
        """Return the notes of rank 0, one list for each start."""
        found = []
        for note in self.notes:
            if note.rank == 0:
                if note.what == "restored":
                    found.append([])
                found[-1].append(note)
        return found

    def losses(self):
        """Return all losses of each step, of all starts and ranks."""
        found = {step: set() for step in range(self.steps)}
        for note in self.notes:
            if note.what == "loss":
                found[note.step].add(note.value)
        return found

    def check(self, expected):
        """Check that only steps after a checkpoint were lost, and all losses are the expected ones."""
        assert self.losses() == {step: {loss} for step, loss in enumerate(expected)}
        saved = -1
        for life in self.lives():
            restored = life[0].step
            assert restored >= saved, f"step {saved} was saved, and {restored} restored"
            begun = [note.step for note in life if note.what == "begins"]
            assert begun == list(range(restored + 1, restored + 1 + len(begun)))
            saved = max([restored, *[note.step for note in life if note.what == "saved"]])
        assert not self.kills
        assert self.left() == []

    def repeated(self):
        """Return how many steps were begun more than once."""
        begun = [note.step for life in self.lives() for note in life if note.what == "begins"]
        return len(begun) - len(set(begun))


def soak(transport, kills=9):
    """Make many kills over a transport, every third one in a save; return a line with the outcomes."""
    source, steps = random.Random(transport), 5 * kills
    ranks = 1 if transport == "threads" else RANKS  # that have processes of their own
    places = [(source.randrange(ranks), step) for step in range(2, steps - 2, 5)]
    in_saves = [(rank, step, source.randrange(2 if rank else 10)) for rank, step in places[::3]]
    others = [Kill(step, rank, source.uniform(0, 0.02)) for n, (rank, step) in enumerate(places) if n % 3]
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(folder, transport, steps, 1, others, in_saves)
        assert trial.run() == 0, trial.said
        trial.check(undisturbed(steps))
    assert len(trial.lives()) == 1 + trial.wanted, "a kill has hit nobody"
    return (
        f"{transport:8} {len(others)} kills in mid-step, {len(in_saves)} in a save; {len(trial.lives()) - 1} restarts, "
        f"{trial.repeated()} of {steps} steps repeated, all losses equal, no process left, "
        f"{time.monotonic() - start:.0f} s"
    )


if __name__ == "__main__":
    for name in sys.argv[1:] or ["threads", "mpi", "ray"]:
        print(soak(name), flush=True)
