"""Scripts whose ranks find each other by environment variables, as PyTorch's and retrograd's do."""

import os
import socket
import subprocess
import sys


def run_ranks(ranks, script, arguments, *options):
    """Run a script in a process for each rank, with options of Python; all must exit with 0."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shared = os.environ | {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    line = [sys.executable, *options, str(script), *arguments]
    processes = [subprocess.Popen(line, env={**shared, "RANK": str(rank)}) for rank in range(ranks)]
    try:
        assert [process.wait(240) for process in processes] == [0] * ranks
    finally:
        for process in processes:
            process.kill()
            process.wait()
