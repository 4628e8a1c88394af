"""Time a training step while other processes keep the processors busy: retrograd, PyTorch and JAX.

    python benchmarks/busy.py [--rounds 7] [--only TEXT] [--json FILE] [--check]

n processors run k busy processes next to the step of a small MLP with n threads: k = 0, n/2, n, 2n. Or other processes
of the same library train next to it, each with n threads. The fair share is the time without them times (n + k) / n,
what n threads get of a scheduler that shares evenly, for k other threads. Threads that wait for threads that do not run
take many times as long. A sample is the mean of two hundred steps.

A last table has the processor time of a suite of tests that each train for about a second, by pytest with four workers
of pytest-xdist, and in one process. Each process has a thread for each processor. No other plugins are loaded: the
imports of those in a developer's environment take as long as two of the tests, in each worker.
"""

import argparse
import contextlib
import itertools
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

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


# ----------------------------------------------------------------------------------------------- suites of tests

TESTS = """
import pytest
import retrograd as rg

@pytest.mark.parametrize("seed", range(20))
def test_training(seed):
    rg.manual_seed(seed)
    model = rg.nn.Sequential(rg.nn.Linear(784, 128), rg.nn.ReLU(), rg.nn.Linear(128, 10))
    optimizer = rg.optim.Adam(model.parameters())
    x, y = rg.randn(32, 784), rg.arange(32) % 10
    for _ in range(1000):
        optimizer.zero_grad()
        loss = rg.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    assert loss < 0.1
"""
ONE_PROCESS = "one process"


def suite_seconds(workers: int) -> float:
    """Return the processor seconds of pytest and its workers for the suite."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with TemporaryDirectory() as folder:
        Path(folder, "test_training.py").write_text(TESTS)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-n", str(workers)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def suites_of_tests(options: argparse.Namespace) -> Table:
    """Return the processor time of the suite with four workers, next to that of one process."""
    title, rows, notes = "Processor time of 20 tests that train", [], []
    if find_spec("xdist") is None:
        notes.append("pytest-xdist is not installed; no tests are run.")
    elif options.only in (name := "pytest -n 4"):
        samples: dict[str, list[float]] = {"retrograd": [], ONE_PROCESS: []}
        for _ in range(min(options.rounds, 3)):
            samples[ONE_PROCESS].append(suite_seconds(0))
            samples["retrograd"].append(suite_seconds(4))
        rows.append(Row(name, samples, {ONE_PROCESS: 1.3}))
    return Table(title, "s", rows, threads=PROCESSORS, notes=notes)


def report(options: argparse.Namespace) -> list[Table]:
    """Return the tables of steps, and of suites of tests."""
    return [with_fair_share(run_suite(SUITE, options)), suites_of_tests(options)]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 7), report, lambda name, threads: cases(name, threads)))
