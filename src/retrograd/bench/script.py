"""The common command line of benchmarks."""

import argparse
import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from retrograd.bench.figures import Table
from retrograd.bench.plots import draw
from retrograd.bench.report import as_dict, as_markdown, as_text, environment, environment_line, load
from retrograd.bench.subjects import CPU_LEVELS, cpu_limits
from retrograd.bench.workers import Cases, serve


def parser(doc: str, rounds: int) -> argparse.ArgumentParser:
    """Return the options: rounds, rows, files for the results, and --check."""
    command = argparse.ArgumentParser(description=doc.splitlines()[0])
    command.add_argument("--worker", metavar="NAME", help=argparse.SUPPRESS)
    command.add_argument("--threads", type=int, help="threads of each subject, if the benchmark does not set them")
    command.add_argument("--rounds", type=int, default=rounds, help=f"samples per row and subject (default {rounds})")
    command.add_argument("--minima", action="store_true", help="compare minima of short samples: for a busy machine")
    command.add_argument("--only", default="", metavar="TEXT", help="run only rows whose name contains TEXT")
    command.add_argument("--without", action="append", default=[], metavar="SUBJECT", help="skip a subject")
    command.add_argument("--cpu", choices=CPU_LEVELS, help="limit all libraries to the vectors of this level")
    command.add_argument("--json", type=Path, metavar="FILE", help="write all results as JSON")
    command.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables as Markdown")
    command.add_argument("--plot", type=Path, metavar="FILE", help="plot the tables as .svg or .png")
    command.add_argument("--check", action="store_true", help="exit with 1 if a budget is missed or results differ")
    return command


def changed_options(options: argparse.Namespace, **changes: Any) -> argparse.Namespace:
    """Return a copy of parsed options with some changed, for a suite that a report runs with other rounds or rows."""
    return argparse.Namespace(**{**vars(options), **changes})


def main(
    arguments: argparse.ArgumentParser,
    report: Callable[[argparse.Namespace], Sequence[Table]],
    worker: Callable[[str, int], Cases] | None = None,
    given: Sequence[str] | None = None,
) -> int:
    """Return a script's exit status, after a worker's loop if it runs as one, or else after its report."""
    options = arguments.parse_args(given)
    if worker and options.worker:
        serve(partial(worker, options.worker, options.threads or 1))
        return 0
    before = load()
    if options.cpu:
        os.environ.update(cpu_limits(options.cpu))  # for the processes of all subjects
    return output_tables(report(options), options, before)


def output_tables(tables: Sequence[Table], options: argparse.Namespace, before: float | None) -> int:
    """Print the tables, write the requested files, with the load before the run; return the exit status."""
    environment_info = environment(before)
    print("\n\n".join([*map(as_text, tables), environment_line(environment_info)]))
    if options.json:
        found: dict[str, Any] = {**environment_info, "tables": [as_dict(table) for table in tables]}
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text("\n\n".join(map(as_markdown, tables)) + "\n")
    if options.plot:
        draw(tables, options.plot)
    return 1 if options.check and not all(table.all_met for table in tables) else 0
