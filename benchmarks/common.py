"""For benchmarks: their command lines, worker processes that are measured in turn, medians, and plain tables.

A benchmark script runs itself once per subject (`script.py --worker NAME`).  A worker first writes a line of
JSON, `true` or the reason why its subject is missing; then it reads one row's name per line and answers with
the seconds that one sample of the row took, or `null` where the row does not apply.  All workers take turns
within every round, so that whatever else the machine does meets all of them.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
OURS_AND_PYTORCH: dict[str, dict[str, str]] = {"retrograd": {}, "PyTorch": {}}  # subjects, and their environments
LEAST_SECONDS = 0.02  # a sample of `sampler` repeats its row until it takes about so long


# ------------------------------------------------------------------------------------------------ command lines


def parser(
    doc: str, rounds: int, figures: str = "the medians, in seconds", *, budgets: bool = True
) -> argparse.ArgumentParser:
    """The options that benchmarks have: the rounds, the file for their figures, and --check where there are budgets."""
    made = argparse.ArgumentParser(description=doc.splitlines()[0])
    made.add_argument("--worker", metavar="NAME", help=argparse.SUPPRESS)
    made.add_argument("--rounds", type=int, default=rounds)
    made.add_argument("--json", metavar="FILE", help=f"write {figures}")
    if budgets:
        made.add_argument("--check", action="store_true", help="exit with 1 if a budget is missed")
    else:
        made.set_defaults(check=False)
    return made


def main(
    arguments: argparse.ArgumentParser,
    report: Callable[[argparse.Namespace], tuple[object, bool]],
    worker: Callable[[str], Callable[[str], Any]] | None = None,
) -> int:
    """A script's exit status, after a worker's loop if it is run as one, or else a report.

    `report` measures and prints; it answers with the figures for --json, and whether every budget is met.
    """
    options = arguments.parse_args()
    if worker and options.worker:
        serve(partial(worker, options.worker))
        return 0
    figures, fine = report(options)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=1)
    return 1 if options.check and not fine else 0


# ----------------------------------------------------------------------------------------------------- subjects


def seconds(function: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


class Worker:
    """A subject in a process of its own."""

    def __init__(self, script: str, name: str, environment: Mapping[str, str]) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, script, "--worker", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ONE_THREAD, **environment},
        )
        self.ready = self._answer()

    def sample(self, row: str) -> Any:
        """The seconds that one sample of the row takes, or what else it measures; None if it does not apply."""
        print(row, file=self._process.stdin, flush=True)
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> object:
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker {self.name!r} ended early, with status {self._process.wait()}")
        return json.loads(line)


@contextmanager
def present(script: str, subjects: Mapping[str, Mapping[str, str]] = OURS_AND_PYTORCH) -> Iterator[list[Worker]]:
    """The workers of subjects, each with its environment, but for those that are missing, which are named."""
    started = [Worker(script, name, environment) for name, environment in subjects.items()]
    for absent in [w for w in started if w.ready is not True]:
        print(f"{absent.name} is left out: {absent.ready}")
    yield [w for w in started if w.ready is True]
    for w in started:  # after an error they end as we do
        w.close()


def serve(make: Callable[[], Callable[[str], Any]]) -> None:
    """A worker's main loop around the function from row to seconds; `make` raises ImportError if it can't be had."""
    try:
        sample, ready = make(), True
    except ImportError as error:
        ready = f"{error.name or error} is not installed"
    print(json.dumps(ready), flush=True)
    for line in sys.stdin if ready is True else ():
        print(json.dumps(sample(line.strip())), flush=True)


def interleaved(workers: Iterable[Worker], rows: Iterable[str], rounds: int) -> dict[str, dict[str, float]]:
    """Medians in seconds, by row and subject, over rounds in which every subject has its turn at every row."""
    times: dict[str, dict[str, list[float]]] = {row: {} for row in rows}
    for number in range(rounds + 1):
        for row in list(times) if number % 2 else reversed(times):  # no row always follows the same one
            by_subject = times[row]
            for worker in workers:
                taken = worker.sample(row)
                if taken is not None and number:  # the first round warms up
                    by_subject.setdefault(worker.name, []).append(taken)
    return {row: {name: statistics.median(t) for name, t in found.items()} for row, found in times.items()}


def library(name: str) -> ModuleType:
    """A subject's module, on one thread."""
    if name == "PyTorch":
        import torch

        torch.set_num_threads(1)
        return torch
    return importlib.import_module(name.lower())


def sampler(calls: Callable[[str], Callable[[], object] | None]) -> Callable[[str], float | None]:
    """The function from row to seconds per call: `calls` makes a row's call, once, or answers that there is none."""
    made: dict[str, tuple[Callable[[], object] | None, int]] = {}

    def sample(row: str) -> float | None:
        if row not in made:
            made[row] = calls(row), 0
        call, times = made[row]
        if call is None:
            return None
        call()  # finds memory as other rows left it, which may cost more than the call
        if not times:
            times = max(1, round(LEAST_SECONDS / seconds(call)))
            made[row] = call, times
        return seconds(lambda: _repeated(call, times)) / times

    return sample


def _repeated(call: Callable[[], object], times: int) -> None:
    """Every result is dropped before the next is made, so that large ones take turns in one place of memory."""
    for _ in range(times):
        call()


# ------------------------------------------------------------------------------------------------------- tables


def beside(found: Mapping[str, Mapping[str, float]], rows: Mapping[str, float | None], peer: str) -> tuple[str, bool]:
    """A table of milliseconds beside a peer's, with budgets for the ratio, and whether all of these are met."""
    lines, fine = [], True
    for row, budget in rows.items():
        ours, its = found[row].get("retrograd"), found[row].get(peer)
        ratio = ours / its if ours and its else None
        ok = ratio is None or budget is None or ratio <= budget
        fine = fine and ok
        times = cells([t and t * 1e3 for t in (ours, its)], "{:.2f}")
        lines.append([row, *times, *cells([ratio, budget], "{:.2f}"), verdict(ok) if ratio and budget else ""])
    return table([f"ms, beside {peer}", "retrograd", peer, "ratio", "budget", ""], lines), fine


def verdict(ok: bool) -> str:
    """One word."""
    return "met" if ok else "MISSED"


def cells(values: Iterable[float | None], form: str) -> list[str]:
    """Figures as text, nothing for None."""
    return ["" if v is None else form.format(v) for v in values]


def judged(found: Mapping[str, float], budget: float | None) -> tuple[list[str], bool]:
    """Our share of PyTorch's figure, its budget and the verdict as cells; and whether the budget, if any, is met."""
    ratio = found["retrograd"] / found["PyTorch"] if {"retrograd", "PyTorch"} <= set(found) else None
    ok = ratio is None or budget is None or ratio <= budget
    return [*cells([ratio, budget], "{:.2f}"), verdict(ok) if ratio and budget else ""], ok


def table(header: list[str], lines: list[list[str]]) -> str:
    """Columns as wide as they need to be; the first is aligned to the left, the others to the right."""
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]

    def one(line: list[str]) -> str:
        cells = [line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))]
        return "  ".join(cells).rstrip()

    return "\n".join([one(header), "  ".join("-" * w for w in widths), *map(one, lines)])
