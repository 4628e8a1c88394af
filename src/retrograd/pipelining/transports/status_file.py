"""Files with the last action and the last step of each rank, which a launcher and `retrograd top` read."""

import json
import mmap
import os
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from zlib import crc32

from retrograd.core.blocks import generator_block
from retrograd.interop.file_locks import is_locked, lock_file

# The environment variable of the files: for launchers their folder, for a rank the path of its file, named by its rank.
STATUS_VARIABLE = "RETROGRAD_STATUS"
ACTION = 256  # bytes of the last action, which a file begins with
SIZE = 512  # bytes of a file; the rest is the last step as JSON
PREFIX = "retrograd-status-"  # of the names of folders
JOB = "job.json"  # the launcher's file in the folder
RUNNING = "running"  # a file that the launcher has locked: folders of killed launchers stay


class StatusFile:
    """The file of one rank. A write is a copy into mapped memory, so every action can be written.

    >>> with status_folder() as folder:
    ...     StatusFile(create_status_file(folder, 3)).write("F(2, 0)")
    ...     last_action(folder, 3)
    'F(2, 0)'
    """

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), SIZE)
        self.action = ""
        self.in_launch = False  # then the actions are those of a pipeline

    def write(self, text: str) -> None:
        """Replace the action; only its first 256 bytes are kept."""
        if text != self.action:  # DDP ends the same operation once for each bucket
            self.action = text
            self._write(text)

    def write_wait(self, text: str) -> None:
        """Show a wait, as `wait_for` and `wait_with` describe it, until `end_wait`."""
        self._write(text)

    def end_wait(self) -> None:
        """Show the action again."""
        self._write(self.action)

    def _write(self, text: str) -> None:
        self._memory[:ACTION] = text.encode()[:ACTION].ljust(ACTION, b"\0")

    def write_step(self, **values: int | float) -> None:
        """Replace the numbers of the last step."""
        data = json.dumps(values).encode()
        if len(data) <= SIZE - ACTION:
            self._memory[ACTION:] = data.ljust(SIZE - ACTION, b"\0")


_WAIT = re.compile(r"(?P<action>.*), waits (?P<kind>for .* from|with) ranks? (?P<ranks>[\d, -]+)")


class Wait(NamedTuple):
    """A wait as text in a status file: for a message, or for all ranks to come to the same operation."""

    action: str
    ranks: list[int]  # of the senders, or of all that take part in the operation
    together: bool


def wait_for(action: str, message: str, sender: int) -> str:
    """Return the text of a wait for a message from a rank.

    >>> wait_for("RECV_F1.0<0", "F1.0", 0)
    'RECV_F1.0<0, waits for F1.0 from rank 0'
    """
    return f"{action}, waits for {message} from rank {sender}"


def wait_with(call: str, members: str) -> str:
    """Return the text of a wait in an operation, which is the same on all ranks of it.

    members: the ranks as `format_ranks` writes them.
    """
    return f"{call}, waits with {members}"


def read_wait(text: str) -> Wait | None:
    """Return the wait that an action describes, or None.

    >>> read_wait(wait_with("all_reduce", "ranks 0-2, 5"))
    Wait(action='all_reduce', ranks=[0, 1, 2, 5], together=True)
    """
    found = _WAIT.fullmatch(text)
    if found is None:
        return None
    runs = [[int(end) for end in run.split("-") if end.strip()] for run in found["ranks"].split(",")]
    ranks = [rank for run in runs if run for rank in range(run[0], run[-1] + 1)]
    return Wait(found["action"], ranks, found["kind"] == "with")


def open_status_file() -> StatusFile | None:
    """Return the file of this rank; None if its launcher has made none that this host can read."""
    path = Path(os.environ.get(STATUS_VARIABLE, ""))
    return StatusFile(path) if path.is_file() and path.stat().st_size == SIZE else None


def first_with_error(text: str, rank: int) -> int:
    """Return the rank of this host that was the first to end with this error: `rank` itself if no other was.

    Ranks that fail before they exchange messages, or that all fail alike, find each other by a file.
    """
    path = Path(os.environ.get(STATUS_VARIABLE, ""))
    if not path.is_file() or path.stat().st_size != SIZE or not os.access(path.parent, os.W_OK):
        return rank
    claim = path.with_name(f"error-{crc32(text.encode()):08x}")
    own = path.with_name(f"{claim.name}-{rank}")
    try:
        own.write_text(str(rank))
        os.link(own, claim)  # one rank succeeds, and the file is complete at once
    except FileExistsError:
        return int(claim.read_text())
    except OSError:  # as /dev/fd, where the launcher is on another host
        return rank
    return rank


@generator_block
def status_folder() -> Iterator[Path]:
    """Make a folder for the files of a launch, which exists while entered."""
    with TemporaryDirectory(prefix=PREFIX) as folder, (Path(folder) / RUNNING).open("w") as running:
        lock_file(running.fileno())
        yield Path(folder)


def has_ended(folder: Path) -> bool:
    """Return whether the launcher of a folder was killed, so that the folder stayed.

    >>> with status_folder() as folder:
    ...     has_ended(folder)
    False
    """
    try:
        return is_locked(folder / RUNNING) is False
    except FileNotFoundError:
        return False


def create_status_file(folder: Path, rank: int) -> Path:
    """Create the empty file of a rank, and return its path."""
    path = folder / str(rank)
    path.write_bytes(bytes(SIZE))
    return path


def last_action(folder: Path, rank: int) -> str:
    """Return the last action of a rank, empty if it has written none."""
    path = folder / str(rank)
    return path.read_bytes()[:ACTION].rstrip(b"\0").decode(errors="replace") if path.exists() else ""


def last_step(folder: Path, rank: int) -> dict[str, float]:
    """Return the numbers of the last step of a rank, empty if it has written none, or is just writing them."""
    try:
        found: dict[str, float] = json.loads((folder / str(rank)).read_bytes()[ACTION:].rstrip(b"\0") or b"{}")
    except (OSError, ValueError):
        return {}
    return found


def write_job(folder: Path, **values: Any) -> None:
    """Describe the launch of a folder, for `retrograd top`."""
    (folder / JOB).write_text(json.dumps(values))
