"""Train with checkpoints; the run can be killed at any moment and restarted, as `recovery.py` does.

python recovery_script.py FOLDER STEPS EVERY: checkpoints in FOLDER after every EVERY steps.  Events are written line
by line to the pipe FOLDER/notes.  A file FOLDER/kill-RANK-STEP with a number requests that the rank kills itself in
the save of that step, before that many changes of the disk.
"""

import hashlib
import os
import shutil
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import retrograd as rg
from retrograd.nn import Dropout, Linear, Sequential, Tanh
from retrograd.nn.functional import mse_loss
from retrograd.optim import AdamW
from retrograd.optim.lr_scheduler import CosineAnnealingLR
from retrograd.pipelining import Pipeline
from retrograd.pipelining.checkpoint import Checkpoints

STAGES, PERIOD = 2, 40


class Training:
    """A model over stages, and everything else that a checkpoint contains."""

    def __init__(self, stages=STAGES):
        rg.manual_seed(0)
        layers = [Linear(16, 64), Tanh(), Dropout(0.25), Linear(64, 64), Tanh(), Linear(64, 4)]
        self.pipeline = Pipeline(Sequential(*layers), stages, micro_batches=4, loss_fn=mse_loss)
        self.optimizer = AdamW(self.pipeline.model.parameters(), lr=0.01)
        self.scheduler = CosineAnnealingLR(self.optimizer, PERIOD)

    @property
    def everything(self):
        """Return the arguments of `save` and `restore`."""
        return self.pipeline, self.optimizer, self.scheduler

    def step(self, number):
        """Return the loss of a step, exactly; its data are a function of its number."""
        source = rg.Generator().manual_seed(number)
        loss = self.pipeline.step(rg.randn(32, 16, generator=source), target=rg.randn(32, 4, generator=source))
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.scheduler.step()
        return loss.item().hex()


def digest(state):
    """Return a number that identifies a model's state."""
    made = hashlib.sha256()
    for name, tensor in state.items():
        made.update(name.encode() + tensor.numpy().tobytes())
    return made.hexdigest()


@contextmanager
def killed_as_wished(wish):
    """Kill this process in the block before as many changes of the disk as the file says; only once."""
    if not wish.exists():
        yield
        return
    left = int(wish.read_text())
    wish.unlink()

    def killing(call):
        def instead(*args, **kwargs):
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return instead

    calls = [(os, "fsync"), (os, "replace"), (os, "mkdir"), (shutil, "rmtree")]
    before = [getattr(module, name) for module, name in calls]
    for (module, name), call in zip(calls, before, strict=True):
        setattr(module, name, killing(call))
    try:
        yield
    finally:
        for (module, name), call in zip(calls, before, strict=True):
            setattr(module, name, call)


def main(folder, steps, every):
    """Train, from the last checkpoint."""
    training, checkpoints = Training(), Checkpoints(folder / "checkpoints")
    rank, pipe = training.pipeline.rank, os.open(folder / "notes", os.O_WRONLY)

    def note(what, step, value="-"):
        os.write(pipe, f"{rank} {os.getpid()} {what} {step} {value}\n".encode())  # at once, as it is short

    restored = checkpoints.restore(*training.everything)
    note("restored", restored.step if restored else -1)
    for step in range(restored.step + 1 if restored else 0, steps):
        note("begins", step)
        note("loss", step, training.step(step))
        if (step + 1) % every == 0:
            with killed_as_wished(folder / f"kill-{rank}-{step}"):
                checkpoints.save(step, *training.everything)
            note("saved", step)
    note("state", steps, digest(training.pipeline.state_dict()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
