"""Count the instructions of 20 small programs with callgrind, next to those of another version of the library.

    python benchmarks/instructions.py [--base FOLDER] [--only TEXT] [--json FILE] [--check]

The counts hardly differ between runs on the same kind of machine, so they show small changes that times hide. Each
program runs with two numbers of repetitions. The difference of the counts is divided by the difference of these
numbers, which cancels imports and everything that only the first repetitions do. Garbage is not collected. FOLDER has
the package `retrograd` of the other version, compiled: `make instructions BASE=commit` builds it. With --check, a
program that takes 3 % more instructions than in that version is an error. Needs valgrind.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from instructions_programs import PROGRAMS

from retrograd.bench import Row, Table, main, parser
from retrograd.bench.subjects import thread_limits

SCRIPT = Path(__file__).with_name("instructions_programs.py")
SOURCES = Path(__file__).parents[1] / "src"
BOUND = 1.03  # of the other version's instructions
COUNTED = re.compile(r"==(\d+)== Collected : (\d+)")
RAN = re.compile(r"(\d+) (\d+) (.+)")


def count_instructions(sources: Path, only: str) -> tuple[dict[str, float], list[str]]:
    """Return the instructions of a repetition of each program, and what the programs that failed report."""
    environment = {**os.environ, **thread_limits(1), "PYTHONHASHSEED": "0", "PYTHONPATH": str(sources)}
    with TemporaryDirectory() as folder:
        command = [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={folder}/%p",
            sys.executable,
            str(SCRIPT),
            only,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    counted = {process: int(count) for process, count in COUNTED.findall(done.stderr)}
    totals: dict[str, dict[int, int]] = {}
    failed = []
    for line in done.stdout.splitlines():
        if (ran := RAN.fullmatch(line)) is None:
            failed.append(line)
        else:
            totals.setdefault(ran[3], {})[int(ran[2])] = counted[ran[1]]
    return {name: _slope(found) for name, found in totals.items()}, failed


def _slope(found: dict[int, int]) -> float:
    """Return the instructions of one repetition, from those of two numbers of repetitions."""
    (few, first), (many, second) = sorted(found.items())
    return (second - first) / (many - few)


def report(options: argparse.Namespace) -> list[Table]:
    """Return instructions per repetition; without valgrind a note."""
    title = "Instructions of small programs"
    if shutil.which("valgrind") is None:
        return [Table(title, "", [], notes=["valgrind is not installed; no instructions are counted."])]
    ours, failed = count_instructions(SOURCES, options.only)
    found, notes, fine = {"retrograd": ours}, list(failed), not failed
    if options.base:
        found["base"], others = count_instructions(options.base, options.only)
        notes += [f"base: {line}" for line in others]
    rows = [
        Row(name, {subject: [counts[name]] for subject, counts in found.items() if name in counts}, {"base": BOUND})
        for name in PROGRAMS
        if name in ours
    ]
    return [Table(title, "", rows, threads=1, notes=notes, fine=fine)]


if __name__ == "__main__":
    arguments = parser(__doc__, 1)
    arguments.add_argument("--base", type=Path, metavar="FOLDER", help="the folder with another version's package")
    sys.exit(main(arguments, report))
