"""Scripts whose ranks are processes, run by PyTorch over gloo and by retrograd over MPI."""

import os
import subprocess
import sys

from ..rank_scripts import run_ranks


def over_gloo(ranks, script, arguments):
    """Run the script with PyTorch, a process for each rank."""
    os.environ["RENDEZVOUS"] = f"{arguments[0]}.rendezvous"
    try:
        run_ranks(ranks, script, arguments, "-W", "ignore")
    finally:
        del os.environ["RENDEZVOUS"]


def over_mpi(ranks, script, arguments):
    """Run the script with retrograd, by its launcher."""
    command = [sys.executable, "-m", "retrograd", "run", "-n", str(ranks), "--timeout", "120", str(script), *arguments]
    subprocess.run(command, check=True, timeout=240)
