"""Count the instructions of the eager path per operation with callgrind.

    python benchmarks/instructions.py [--json FILE]

The counts are the same in every run on the same kind of machine, so they show small changes that times hide.  A chain
of multiplications of 4 elements runs at two lengths.  The difference of the counts is divided by the difference of the
lengths, which cancels startup and imports.  Garbage is not collected, since that takes the longer, the more objects the
imports have left.  Needs valgrind.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from tempfile import TemporaryDirectory

from retrograd.bench import Row, Table, main, parser
from retrograd.bench.subjects import thread_limits

SHORT, LONG = 500, 1500
PROGRAM = """
import gc
gc.disable()
import retrograd as m
w, y = m.tensor([1.0, 1.0, 1.0, 1.0], requires_grad={grad}), m.tensor([1.0, 1.0, 1.0, 1.0])
for _ in range({length}):
    w = w * y
{end}
"""
ROWS = {
    "multiplication, not recorded": (False, ""),
    "multiplication, recorded": (True, ""),
    "multiplication, forward and backward": (True, "w.sum().backward()"),
}
COUNTED = re.compile(r"Collected : (\d+)")


def count_instructions(grad: bool, end: str, length: int) -> int:
    """Return the instructions of one process."""
    code = PROGRAM.format(grad=grad, end=end, length=length)
    environment = {**os.environ, **thread_limits(1), "PYTHONHASHSEED": "0", "PYTHONMALLOC": "pymalloc"}
    with TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found = COUNTED.search(done.stderr)
    assert found, done.stderr
    return int(found[1])


def report(options: argparse.Namespace) -> list[Table]:
    """Return instructions per operation; without valgrind a note."""
    if shutil.which("valgrind") is None:
        return [
            Table(
                "Instructions per operation", "", [], notes=["valgrind is not installed; no instructions are counted."]
            )
        ]
    rows = []
    for row, (grad, end) in ROWS.items():
        few, many = (count_instructions(grad, end, length) for length in (SHORT, LONG))
        rows.append(Row(row, {"retrograd": [(many - few) / (LONG - SHORT)]}))
    return [Table("Instructions per operation on 4 elements", "", rows, threads=1)]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 1), report))
