"""Locks of files: a sign that a process still runs, which the operating system removes however the process ends."""

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]


def lock_file(descriptor: int) -> None:
    """Lock an open file until it is closed; nothing happens where the file system has no locks."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def open_locked(path: Path, folder: bool = False) -> int | None:
    """Return the descriptor of a file or folder that is made if it is not there, and locked until it is closed.

    None on Windows, which has no such locks, and where an open file cannot be renamed.
    """
    while True:
        if folder:
            path.mkdir(exist_ok=True)
        if fcntl is None:
            return None
        with suppress(FileNotFoundError):  # `remove_unlocked` has removed it before it was locked
            found = os.open(path, os.O_RDONLY) if folder else os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            lock_file(found)
            if _is_at(path, found):
                return found
            os.close(found)
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def open_new_locked(path: Path) -> int | None:
    """Return the descriptor of a new file that is locked until it is closed.

    None if there is a file of that name, and if another process has removed it before it was locked.
    """
    try:
        found = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return None
    lock_file(found)
    if _is_at(path, found):
        return found
    os.close(found)
    return None


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def remove_unlocked(path: Path) -> None:
    """Remove a file or folder that no process has locked; one of which that can't be known stays."""
    if fcntl is None:
        return
    with suppress(OSError):
        is_folder = path.is_dir()
        found = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
        try:
            fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_folder:  # while it is locked, see `open_locked`
                shutil.rmtree(path)
            else:
                path.unlink()
        finally:
            os.close(found)


def is_locked(path: Path) -> bool | None:
    """Return whether a process has locked a file or a folder; None where that can't be known.

    Raises FileNotFoundError for a path that does not exist.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile() as file:
    ...     before = is_locked(Path(file.name))
    ...     lock_file(file.fileno())
    ...     before, is_locked(Path(file.name))
    (False, True)
    """
    if fcntl is None:
        os.stat(path)
        return None
    found = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(found)
    return False
