"""Run the demo from beginning to end."""

import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from retrograd.cli.demo import checkpoint, report
from retrograd.cli.demo.data import load_digits
from retrograd.cli.demo.figure import check_pictures
from retrograd.cli.demo.interrupt import SignalGuard
from retrograd.cli.demo.measure import Training, measure
from retrograd.cli.demo.training import EPOCHS, Settings, Trainer
from retrograd.cli.errors import UsageError
from retrograd.core.blocks import generator_block
from retrograd.utils import progress

INTERRUPTED, UNSOUND = 130, 1


def run(settings: Settings) -> int:
    """Train, report, and return the exit code: 0, 130 after Ctrl-C, 143 after SIGTERM, or 1 for wrong gradients.

    Raises UsageError, before anything is written, for settings that cannot work.
    """
    check_pictures()
    path = settings.output / "checkpoint.safetensors"
    trainer = _resumed_trainer(settings, path) if settings.resume else _new_trainer(settings)
    _make_folder(settings.output)
    console = Console(highlight=False, soft_wrap=True)
    _print_header(console, trainer)
    try:
        training, stopped = _train(trainer, settings.quiet)
    except KeyboardInterrupt:
        console.print("Stopped within a step; nothing was saved")
        return INTERRUPTED
    with _report_write_errors():
        checkpoint.save(path, trainer)
    if stopped:
        console.print(f"Stopped after step {trainer.done}; --resume continues from {path}")
        return 128 + stopped
    measured = measure(trainer, training)
    with _report_write_errors():
        report.write(settings.output, trainer, measured)
    report.show(console, settings.output, measured)
    return 0 if measured.sound else UNSOUND


def _new_trainer(settings: Settings) -> Trainer:
    return Trainer(settings, load_digits(), settings.epochs or EPOCHS, settings.seed or 0)


def _resumed_trainer(settings: Settings, path: Path) -> Trainer:
    state = checkpoint.read(path)
    if settings.seed not in (None, state["seed"]):
        raise UsageError(f"--seed {settings.seed}: the checkpoint was made with seed {state['seed']}; leave it out")
    trainer = Trainer(settings, load_digits(), settings.epochs or state["epochs"], state["seed"])
    done = len(state["losses"]) / trainer.steps_per_epoch
    if done > trainer.epochs:
        raise UsageError(f"--epochs {trainer.epochs}: the checkpoint has {done:g} epochs behind it; ask for more")
    try:
        checkpoint.restore(path, state, trainer)
    except (LookupError, ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise UsageError(f"--resume: {path} does not fit this version of the demo: {error}") from error
    return trainer


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--output: can't make the folder {folder}: {error.strerror}") from error


@generator_block
def _report_write_errors() -> Iterator[None]:
    """Report in one line a file that could not be written."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"--output: can't write {error.filename}: {error.strerror}") from error


def _print_header(console: Console, trainer: Trainer) -> None:
    data, count = trainer.digits, sum(p.numel() for p in trainer.model.parameters())
    console.print(
        f"A transformer of {count:,} parameters learns to read {len(data.train_y):,} scanned digits; "
        f"{len(data.test_y)} others are the test."
    )
    if trainer.done:
        console.print(f"Continuing after step {trainer.done}; {trainer.remaining} steps remain.")
    if not trainer.remaining:
        console.print(f"All {trainer.epochs} epochs are done; --epochs {2 * trainer.epochs} would continue.")


def _train(trainer: Trainer, quiet: bool) -> tuple[Training, int]:
    """Train to the end, or until a signal; return its number, or 0."""
    start, examples = time.perf_counter(), 0
    with SignalGuard() as interruption, progress(trainer.remaining, "training", quiet=quiet) as bar:
        while trainer.remaining and not interruption.signal_number:
            examples += trainer.step()
            speed = examples / (time.perf_counter() - start)
            bar.advance(loss=trainer.history.losses[-1], speed=f"{speed:,.0f} examples/s")
    return Training(examples, time.perf_counter() - start), interruption.signal_number
