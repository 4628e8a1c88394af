"""Run one rank of an MPI launch: `python -S rank_process.py first|all COMMAND...`; report how it ends.

Every process starts through this one, on every host. It sets the variables of PyTorch's launcher, which scripts for it
read, and lets only the first rank print if asked to.  If a signal kills the rank, it prints one line and ends itself by
the same signal, upon which mpiexec kills the other ranks; after an interruption, it returns an exit code instead, so
that the others can save their states.  If the script fails or is killed, it reports that to `retrograd run`, for which
the first report is the cause of the end: mpiexec kills the other ranks, and says nothing of which was the first.  It
imports only the standard library, so that it starts in some 10 ms.
"""

import ctypes
import os
import signal
import sys
from types import FrameType

# The variables of the rank, the number of ranks, and both on the rank's host: of MPICH and Intel MPI, and of Open MPI.
NUMBERS = {
    "RANK": ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "0"),
    "WORLD_SIZE": ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "1"),
    "LOCAL_RANK": ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "0"),
    "LOCAL_WORLD_SIZE": ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "1"),
}
END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
FORWARDED = (signal.SIGINT, signal.SIGTERM)


def main(shown: str, command: list[str]) -> int:
    """Run the command as a child; return its exit code, or end by the signal that has killed it."""
    for name, (mpich, open_mpi, default) in NUMBERS.items():
        os.environ[name] = os.environ.get(mpich) or os.environ.get(open_mpi) or default
    rank, folder = os.environ["RANK"], os.environ.get("RETROGRAD_STATUS")
    status = _status_file(folder)
    child = _start(command, silent=shown == "first" and rank != "0")
    forwarded = []
    # MPICH makes this process the first of a group, and interrupts the whole group, the child included.
    interrupts_child = os.getpgrp() == os.getpid()

    def forward(number: int, frame: FrameType | None) -> None:
        forwarded.append(number)
        if number != signal.SIGINT or not interrupts_child:
            os.kill(child, number)

    for number in FORWARDED:
        signal.signal(number, forward)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    last = b"" if status is None else os.pread(status, 256, 0).rstrip(b"\0")
    if code and -code not in forwarded and folder is not None:
        # `retrograd run` takes this out of the standard output.  mpiexec itself returns all codes, combined by OR.
        os.write(1, b"\x1e%s\t%s\t%d\t%s\x1f" % (folder.encode(), rank.encode(), code, last))
    if code >= 0:
        return code
    killer = signal.Signals(-code)
    if killer == signal.SIGINT and killer in forwarded:
        return 128 + killer
    if killer not in forwarded:
        action = f"; last action: {last.decode(errors='replace')}" if last else ""
        host = os.uname().nodename
        os.write(
            2, f"retrograd: rank {rank} (process {child} on {host}{action}) was killed by {killer.name}\n".encode()
        )
    if killer in FORWARDED:
        signal.signal(killer, signal.SIG_DFL)
    os.kill(os.getpid(), killer)
    return 128 + killer


def _status_file(folder: str | None) -> int | None:
    """Return the open file in which the rank writes its last action, and pass its path on; None without a launcher."""
    if folder is None:
        return None
    if os.path.isdir(folder):
        path = os.path.join(folder, os.environ["RANK"])
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    elif hasattr(os, "memfd_create"):  # the launcher is on another host
        file = os.memfd_create("retrograd-status", 0)
        path = f"/dev/fd/{file}"
    else:
        return None
    os.truncate(file, 512)
    os.environ["RETROGRAD_STATUS"] = path
    return file


def _start(command: list[str], silent: bool) -> int:
    """Start the command, which ends with this process; silent: without its standard output."""
    parent, linux = os.getpid(), sys.platform == "linux"
    library = ctypes.CDLL(None) if linux else None
    child = os.fork()
    if child:
        return child
    try:
        if library is not None:
            library.prctl(END_WITH_PARENT, signal.SIGKILL)
        # A shell's background jobs ignore SIGINT, and their children too: ranks would never see an interruption.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if silent:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if os.getppid() == parent:
            os.execvp(command[0], command)
    finally:
        os._exit(127)  # as a shell does if there is no such command


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
