"""Start a benchmark's script as the processes of a transport, and collect what they measured."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from retrograd.bench import main, parser
from retrograd.bench.subjects import thread_limits
from retrograd.cli.mpi import mpiexec

RANKS = 2


def run_script(script: str, worker: str, rounds: int, ranks: int = RANKS) -> Any:
    """Return what the script's processes measured: one process with a thread per rank, or an MPI process per rank.

    `worker`, which begins with the transport, says what they are to measure.
    """
    transport = worker.split()[0]
    launcher = [mpiexec(), "-n", str(ranks)] if transport == "mpi" else []
    command = [*launcher, sys.executable, script, "--worker", worker, "--rounds", str(rounds)]
    environment = {**os.environ, **thread_limits(1 if transport == "mpi" else RANKS)}
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout)


def send_results(found: Any) -> None:
    """Send this process's results to `run_script`; the first of several processes reports for all."""
    if os.environ.get("PMI_RANK", "0") == "0":
        print(json.dumps(found))


def main_of_ranks(documentation: str | None, rounds: int, measure: Callable, tables: Callable) -> int:
    """Run a script's command line: measure in a process that `run_script` has started, else report; return the status.

    `measure` and `tables` take the options.
    """
    arguments = parser(documentation, rounds=rounds)
    given = arguments.parse_args()
    if given.worker:
        send_results(measure(given))
        return 0
    return main(arguments, tables)
