"""Train with checkpoints while faults are provoked on one rank; every fault is caught, and training continues.

FOLDER FAULT COUNT: provoke the fault in COUNT steps, and print the outcomes of all ranks as JSON.
FOLDER ends: rank 1 runs another script, which ends after three steps, while the others train on.
"""

import errno
import json
import os
import random
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

import retrograd as rg
from retrograd.pipelining.checkpoint import Checkpoints
from retrograd.pipelining.transports.fingerprint import qualified_name

from .recovery_script import Training

EVERY = 4  # steps between two checkpoints
PERIOD = 5  # steps between two faults


def raise_in_loss(training, number):
    """Make the step raise."""

    def loss_fn(*_):
        raise ZeroDivisionError("provoked")

    before, training.pipeline.loss_fn = training.pipeline.loss_fn, loss_fn
    loss_fn.__qualname__ = qualified_name(before)  # the fault is no difference between the ranks
    try:
        training.step(number)
    finally:
        training.pipeline.loss_fn = before


def write_nan(training, number):
    """Make a parameter NaN, which only the restored checkpoint undoes."""
    with rg.no_grad():
        for parameter in training.pipeline.model.parameters():
            parameter.fill_(float("nan"))
    training.step(number)


def change_shape(training, number):
    """Pass a smaller batch."""
    training.pipeline.step(rg.zeros(28, 16), target=rg.zeros(28, 4))


def change_seed(training, number):
    """Seed the generator, which dropout draws from."""
    rg.manual_seed(1000 + number)
    training.step(number)


def call_another(training, number):
    """Call what the other ranks do not call."""
    training.pipeline.predict(rg.zeros(32, 16))


@contextmanager
def full_disk(changes):
    """Let the disk be full after the given number of changes of it."""
    before = os.fsync, os.replace
    left = changes

    def limited(call):
        def instead(*args, **kwargs):
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return call(*args, **kwargs)

        return instead

    os.fsync, os.replace = [limited(call) for call in before]
    try:
        yield
    finally:
        os.fsync, os.replace = before


@contextmanager
def filled(ballast):
    """Fill the file system of a file, which is small, up to its last byte."""
    size = 1 << 16
    try:
        with open(ballast, "wb", buffering=0) as file:
            while size:
                try:
                    file.write(bytes(size))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    size //= 2
        yield
    finally:
        ballast.unlink()


FAULTS = {
    "exception": raise_in_loss,
    "nan": write_nan,
    "shape": change_shape,
    "seed": change_seed,
    "call": call_another,
}
DISKS = ("disk", "tmpfs")  # the disk is full: by errors of the calls, or in fact


class Run:
    """One run with its faults, on one rank."""

    def __init__(self, folder, fault, count):
        self.folder, self.fault = folder, fault
        self.training, self.checkpoints = Training(), Checkpoints(folder / "checkpoints")
        self.training.pipeline.watch_nan = True
        self.rank = self.training.pipeline.rank
        self.source = random.Random(fault)  # on all ranks alike
        self.due = [3 + PERIOD * number for number in range(count)]
        self.losses, self.errors, self.seconds, self.repeated, self.begun = {}, [], [], 0, 0

    def provoke(self, step):
        """Run a step with the fault on rank 1; return whether all went well."""
        start = time.monotonic()
        try:
            if self.fault in DISKS:
                self.save_on_full_disk(step)
            elif self.rank == 1:
                FAULTS[self.fault](self.training, step)
            else:
                self.training.step(step)
        except Exception as error:
            self.seconds.append(time.monotonic() - start)
            self.errors.append((type(error).__name__, str(error)[:160]))
            return
        self.errors.append(("nothing", ""))

    def save_on_full_disk(self, step):
        """Save while the disk of one rank is full."""
        writer, changes = self.source.randrange(2), self.source.randrange(2)
        full = nullcontext()
        if self.fault == "tmpfs" and self.rank == 0:
            full = filled(self.folder / "ballast")
        elif self.fault == "disk" and self.rank == writer:
            full = full_disk(changes)
        with full:
            self.checkpoints.save(step, *self.training.everything)
            self.training.pipeline.on_ranks(lambda rank: None)  # the disk is full until all have saved

    def run(self):
        """Train to the end, past all faults."""
        step, steps, saved = 0, PERIOD * len(self.due) + 5, -1
        while step < steps:
            if self.due and step == self.due[0]:
                self.due.pop(0)
                self.provoke(step)
                restored = self.checkpoints.restore(*self.training.everything)
                assert (restored.step if restored else -1) == saved, (restored, saved)
                if restored is None:
                    self.training = Training()
                    self.training.pipeline.watch_nan = True
                self.repeated += step - (saved + 1)
                step = saved + 1
                continue
            loss = self.training.step(step)
            assert self.losses.setdefault(step, loss) == loss, f"step {step} gives another loss after a fault"
            if (step + 1) % EVERY == 0:
                self.checkpoints.save(step, *self.training.everything)
                saved = step
            step += 1
        return {
            "losses": list(self.losses.values()),
            "errors": self.errors,
            "seconds": max(self.seconds, default=0.0),
            "repeated": self.repeated,
        }


def end_early(folder):
    """Train without end, except that the script of rank 1 is another one."""
    training = Training()
    for number in range(10**6):
        if training.pipeline.rank == 1 and number == 3:
            return
        training.step(number)


if __name__ == "__main__":
    place, kind = Path(sys.argv[1]), sys.argv[2]
    if kind == "ends":
        end_early(place)
    else:
        run = Run(place, kind, int(sys.argv[3]))
        outcome = run.run()
        every = run.training.pipeline.on_ranks(lambda rank: json.dumps(outcome))
        if run.rank == 0:
            print(f"[{', '.join(every)}]")
