"""The number of a save, by which its files are named, and the removal of the files of saves that were not completed.

While a save runs, rank 0 locks its file `save-N.started`.  The operating system frees the lock of a process that is
killed, so files of a save without a lock are leftovers, also those of another job.  Jobs may do all of this at once.
"""

import os
import re
from pathlib import Path

from retrograd.distributed.checkpoint.layout import completed_save
from retrograd.interop.file_locks import is_locked, open_new_locked, remove_unlocked

_FILE = re.compile(r"\.?save-(\d+)(-rank-\d+\.safetensors|\.manifest|\.started)(\..*\.tmp)?")


class RunningSave:
    """The number of a save on this rank; rank 0 makes it by `begin`, and has the locked file."""

    def __init__(self, number: int, mark: int | None = None) -> None:
        self.number, self._mark = number, mark

    @classmethod
    def begin(cls, folder: Path) -> "RunningSave":
        """Return a save with a number that no file of the folder has; remove the leftovers of earlier ones.

        Raises ValueError for another file of the manifest's name.
        """
        completed_save(folder)
        mark = None
        while mark is None:  # another job has taken the number, or has removed the file before it was locked
            number = max((number for _, number in _numbered(folder)), default=0) + 1
            mark = open_new_locked(_mark_of(folder, number))
        remove_leftovers(folder, number)
        return cls(number, mark)

    def check_folder(self, folder: Path, rank: int) -> None:
        """Raise FileNotFoundError on a rank with another folder than rank 0, which has made the file of the save."""
        if not _mark_of(folder, self.number).exists():
            raise FileNotFoundError(
                f"save: rank 0 does not write to {folder}, which is the folder of rank {rank}; all ranks must pass the "
                f"same folder and see it"
            )

    def end(self, folder: Path) -> None:
        """Free the lock of a save that is completed or has failed, and remove its file."""
        if self._mark is not None:
            _mark_of(folder, self.number).unlink(missing_ok=True)
            os.close(self._mark)
            self._mark = None


def remove_leftovers(folder: Path, own: int | None = None) -> None:
    """Remove the files of saves that neither run nor are the folder's checkpoint, except those of the save `own`."""
    files = _numbered(folder)
    locked = {number: _is_running(folder, number) for number in {number for _, number in files}}
    completed = completed_save(folder)  # last, because a save that no longer runs may have become the checkpoint
    for path, number in files:
        # Without locks, a save may run that is later than the checkpoint.
        may_run = number > (completed or 0) if locked[number] is None else locked[number]
        if may_run or number in (completed, own):
            continue
        if path == _mark_of(folder, number) and locked[number] is False:
            remove_unlocked(path)  # it may be new, and locked since
        else:
            path.unlink(missing_ok=True)


def _numbered(folder: Path) -> list[tuple[Path, int]]:
    """Return the files of saves, unfinished ones included, with the numbers of their saves."""
    found = ((Path(entry.path), _FILE.fullmatch(entry.name)) for entry in os.scandir(folder))
    return [(path, int(match[1])) for path, match in found if match]


def _mark_of(folder: Path, number: int) -> Path:
    return folder / f"save-{number}.started"


def _is_running(folder: Path, number: int) -> bool | None:
    """Return whether a process has locked the file of a save; None where that can't be known."""
    try:
        return is_locked(_mark_of(folder, number))
    except FileNotFoundError:
        return False
