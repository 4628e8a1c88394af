"""The number of a save, by which its files are named, and the removal of the files of saves that were not completed.

While a save runs, rank 0 locks its file `save-N.started`.  The operating system frees the lock of a process that is
killed, so files of a save without a lock are leftovers, also those of another job.
"""

import os
import re
from pathlib import Path

from retrograd.interop.file_locks import is_locked, lock_file

_FILE = re.compile(r"\.?save-(\d+)(-rank-\d+\.safetensors|\.manifest|\.started)(\..*\.tmp)?")


class RunningSave:
    """The number of a save on this rank; rank 0 makes it by `begin`, and has the locked file."""

    def __init__(self, number: int, mark: int | None = None) -> None:
        self.number, self._mark = number, mark

    @classmethod
    def begin(cls, folder: Path, completed: int | None) -> "RunningSave":
        """Return a save with a number that no file of the folder has; remove the leftovers of earlier ones.

        completed: the number of the folder's checkpoint.
        """
        number = max((number for _, number in _numbered(folder)), default=0) + 1
        mark = os.open(_mark_of(folder, number), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        lock_file(mark)
        remove_leftovers(folder, completed, number)
        return cls(number, mark)

    def end(self, folder: Path) -> None:
        """Free the lock of a save that is completed or has failed, and remove its file."""
        if self._mark is not None:
            _mark_of(folder, self.number).unlink(missing_ok=True)
            os.close(self._mark)
            self._mark = None


def remove_leftovers(folder: Path, completed: int | None, own: int | None = None) -> None:
    """Remove the files of saves that neither run nor are the folder's checkpoint, whose number is `completed`."""
    files = list(_numbered(folder))
    kept = {number for number in {number for _, number in files} if _may_run(folder, number, completed)}
    for path, number in files:
        if number not in (*kept, completed, own):
            path.unlink(missing_ok=True)


def _numbered(folder: Path) -> list[tuple[Path, int]]:
    """Return the files of saves, unfinished ones included, with the numbers of their saves."""
    found = ((Path(entry.path), _FILE.fullmatch(entry.name)) for entry in os.scandir(folder))
    return [(path, int(match[1])) for path, match in found if match]


def _mark_of(folder: Path, number: int) -> Path:
    return folder / f"save-{number}.started"


def _may_run(folder: Path, number: int, completed: int | None) -> bool:
    """Return whether a process may be writing a save; without locks, whether it is later than the checkpoint."""
    try:
        found = is_locked(_mark_of(folder, number))
    except FileNotFoundError:
        return False
    return number > (completed or 0) if found is None else found
