"""Locks of files: a sign that a process still runs, which the operating system removes however the process ends."""

import os
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


def is_locked(path: Path) -> bool | None:
    """Return whether a process has locked a file; None where that can't be known.

    Raises FileNotFoundError for a file that does not exist.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile() as file:
    ...     before = is_locked(Path(file.name))
    ...     lock_file(file.fileno())
    ...     before, is_locked(Path(file.name))
    (False, True)
    """
    found = os.open(path, os.O_RDWR)
    try:
        if fcntl is None:
            return None
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(found)
    return False
