"""Check that subjects agree row by row, then time them in turns."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from retrograd.bench.figures import Row, Table
from retrograd.bench.subjects import OURS, Subject
from retrograd.bench.workers import Cases, RowError, Worker, difference, present

TOLERANCE = 1e-4  # relative to a result's largest value


@dataclass
class Suite:
    """The content of a benchmark: rows with their budgets by peer, subjects, and how a worker creates their cases.

    `cases(subject, threads)` runs in the subject's process; `at` has the x coordinate of a row if the table is a curve.
    """

    title: str
    script: str
    rows: Mapping[str, Mapping[str, float]]
    subjects: Mapping[str, Subject]
    cases: Callable[[str, int], Cases]
    unit: str = "ms"
    threads: int = 1
    ours: str = OURS
    tolerance: float = TOLERANCE
    axis: str = ""
    at: Mapping[str, float] = field(default_factory=dict)


def run_suite(suite: Suite, options: argparse.Namespace) -> Table:
    """Return a table of the chosen rows; in each round every subject runs every row once."""
    chosen = [name for name in suite.rows if options.only in name]
    subjects = {name: s for name, s in suite.subjects.items() if name not in options.without}
    with present(suite.script, subjects, suite.threads) as (workers, notes):
        workers_by_row, fine, more = check_agreement(workers, chosen, suite)
        samples = sample_rounds(workers_by_row, options.rounds, "fastest" if options.minima else "sample")
    if options.minima:
        samples = {row: {name: [min(taken)] for name, taken in by_name.items()} for row, by_name in samples.items()}
        more.append(f"Minima of {options.rounds} rounds.")
    rows = [Row(name, samples[name], suite.rows[name], suite.at.get(name)) for name in chosen]
    return Table(suite.title, suite.unit, rows, suite.ours, suite.threads, suite.axis, [*notes, *more], fine)


def check_agreement(
    workers: list[Worker], rows: Iterable[str], suite: Suite
) -> tuple[dict[str, list[Worker]], bool, list[str]]:
    """Return by row the workers whose results agree with ours, whether all agree, and notes of omissions."""
    workers_by_row: dict[str, list[Worker]] = {row: [] for row in rows}
    fine, notes = True, list[str]()
    for row, workers_of_row in workers_by_row.items():
        ours: Any = None
        for worker in sorted(workers, key=lambda w: w.name != suite.ours):
            with _append_failure(notes, worker, row) as failed:
                found = worker.ask("check", row)
                if worker.name == suite.ours:
                    ours = found
                distance = _distance(ours, found) if ours and found else None  # a case may have nothing to compare
                if distance is not None and not distance <= suite.tolerance:
                    notes.append(f"{row}: {worker.name} disagrees with {suite.ours} by {distance:.2g}; it is not timed")
                    fine = False
                elif found is not None:
                    workers_of_row.append(worker)
            fine = fine and not (failed and worker.name == suite.ours)
    return workers_by_row, fine, notes


@contextmanager
def _append_failure(notes: list[str], worker: Worker, row: str) -> Iterator[list[RowError]]:
    """Append a failure to a list of notes."""
    failed: list[RowError] = []
    try:
        yield failed
    except RowError as error:
        failed.append(error)
        notes.append(f"{row}: {worker.name} failed: {error}")


def _distance(ours: list[dict[str, Any]], its: list[dict[str, Any]]) -> float:
    if len(ours) != len(its):
        return float("inf")
    return max((difference(a, b) for a, b in zip(ours, its, strict=True)), default=0.0)


def sample_rounds(
    workers_by_row: Mapping[str, list[Worker]], rounds: int, what: str = "sample"
) -> dict[str, dict[str, list[float]]]:
    """Return samples by row and subject; the order of rows and subjects is reversed every other round."""
    found: dict[str, dict[str, list[float]]] = {
        row: {w.name: [] for w in workers_of_row} for row, workers_of_row in workers_by_row.items()
    }
    for number in range(rounds):
        for row in list(workers_by_row)[:: 1 if number % 2 else -1]:
            for worker in workers_by_row[row][:: 1 if number % 2 else -1]:
                found[row][worker.name].append(worker.ask(what, row))
    return found
