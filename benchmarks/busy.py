"""Time a training step while other processes keep the processors busy: retrograd, PyTorch and JAX.

    python benchmarks/busy.py [--rounds 7] [--only TEXT] [--json FILE] [--check]

n processors run k busy processes next to the step of a small MLP with n threads: k = 0, n/2, n, 2n. Or other processes
of the same library train next to it, each with n threads. The fair share is the time without them times (n + k) / n,
what n threads get of a scheduler that shares evenly, for k other threads. Threads that wait for threads that do not run
take many times as long. A sample is the mean of two hundred steps.
"""

import argparse
import contextlib
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from statistics import median

from steps import cases as step_cases

from retrograd.bench import Case, Row, Suite, Table, Worker, main, parser, run_suite, subjects

STEP = "MLP 784-128-10, batch 32, Adam"
CALLS = 200
PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
BUSY = {f"{count} busy processes": count for count in (0, PROCESSORS // 2, PROCESSORS, 2 * PROCESSORS)}
TRAINING = {f"{count} more training processes": count for count in (1,)}
OTHER_THREADS = BUSY | {row: count * PROCESSORS for row, count in TRAINING.items()}
ENDLESS = "steps without end"
FAIR = "fair share"
SUITE = Suite(
    f"A step of {STEP} next to busy processes",
    __file__,
    {row: {} for row in OTHER_THREADS},
    subjects("retrograd", "PyTorch", "JAX jit"),
    cases=lambda name, threads: cases(name, threads),
    threads=PROCESSORS,
)


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Run processes that compute until the end."""
    code = "print(flush=True)\nwhile True: pass"
    running = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for process in running:
            assert process.stdout
            process.stdout.readline()
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()
            assert process.stdout
            process.stdout.close()


@contextlib.contextmanager
def training_processes(name: str, count: int) -> Iterator[None]:
    """Run processes that train with the same library until the end."""
    running = [Worker(SUITE.script, name, SUITE.subjects[name], PROCESSORS) for _ in range(count)]
    try:
        for process in running:
            process.ask("check", STEP)
            process.request("sample", ENDLESS)
        yield
    finally:
        for process in running:
            process.kill()


def cases(name: str, threads: int) -> Callable[[str], Case | None]:
    """Return a function from row to case in a subject's process."""
    made = step_cases(name, threads)

    def case(row: str) -> Case | None:
        step = made(STEP)
        if step is None:
            return None

        def steps() -> None:
            for _ in itertools.count() if row == ENDLESS else range(CALLS):
                step.call()

        if row in TRAINING:
            return Case(steps, step.check, CALLS, once=True, around=lambda: training_processes(name, TRAINING[row]))
        return Case(steps, step.check, CALLS, once=True, around=lambda: busy_processes(BUSY.get(row, 0)))

    return case


def with_fair_share(timed: Table) -> Table:
    """Return the table with the fair share of our own time, which a step may exceed by 30 %."""
    quiet = median(timed.rows[0].samples["retrograd"])
    rows = []
    for row in timed.rows:
        others = OTHER_THREADS[row.name]
        fair = quiet * (PROCESSORS + others) / PROCESSORS
        samples = {**row.samples, FAIR: [fair] * len(row.samples["retrograd"])}
        rows.append(Row(row.name, samples, {FAIR: 1.3} if others else {}))
    return Table(timed.title, timed.unit, rows, timed.ours, timed.threads, timed.axis, timed.notes, timed.fine)


def report(options: argparse.Namespace) -> list[Table]:
    """Return the table."""
    return [with_fair_share(run_suite(SUITE, options))]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 7), report, lambda name, threads: cases(name, threads)))
