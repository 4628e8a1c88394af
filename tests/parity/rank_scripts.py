"""Scripts whose ranks are processes, run by PyTorch over gloo and by retrograd over MPI."""

import os
import socket
import subprocess
import sys


def over_gloo(ranks, script, arguments):
    """Run the script with PyTorch, a process for each rank."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    shared = {
        **os.environ,
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "RENDEZVOUS": f"{arguments[0]}.rendezvous",
    }
    line = [sys.executable, "-W", "ignore", str(script), *arguments]
    processes = [subprocess.Popen(line, env={**shared, "RANK": str(rank)}) for rank in range(ranks)]
    assert [process.wait(240) for process in processes] == [0] * ranks


def over_mpi(ranks, script, arguments):
    """Run the script with retrograd, by its launcher."""
    command = [sys.executable, "-m", "retrograd", "run", "-n", str(ranks), "--timeout", "120", str(script), *arguments]
    subprocess.run(command, check=True, timeout=240)
