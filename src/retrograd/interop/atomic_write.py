"""Atomic replacement of files."""

import os
import re
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from retrograd.core.blocks import generator_block
from retrograd.interop.file_locks import open_locked, remove_unlocked


def shorten(message: str, longest: int = 500) -> str:
    """Return a message, which may quote a file, cut to `longest` characters.

    >>> shorten("long" * 10, 9)
    'longlo...'
    """
    return message if len(message) <= longest else message[: longest - 3] + "..."


def open_regular_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Return the file of a path, open to be read.

    Raises OSError where it can't be read, ValueError for anything except a regular file, such as a pipe, which might
    never end, and TypeError for anything except a path, such as the number of an open file, which would be closed.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("whole")
    ...     with open_regular_file(f"{folder}/a.txt") as file:
    ...         file.read()
    b'whole'
    """
    name = os.fspath(path)
    if not stat.S_ISREG(os.stat(name).st_mode) and not os.path.isdir(name):  # of a folder, open() says what is wrong
        raise ValueError(f"{name} is no file")
    return open(name, "rb")


@generator_block
def atomic_replace(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The path of a new file to be written, which takes the place of the file `path` when the block ends.

    At any moment, after a crash of the machine too, `path` holds the old content or all of the new. If the block
    raises, the old file stays as it is and the new one is removed; that of a process that was killed is removed by the
    next call for the same path. A link stays a link: the file that it leads to is replaced.

    Raises OSError that names `path` where the file can't be written.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_replace(f"{folder}/a.txt") as unfinished:
    ...         _ = unfinished.write_text("whole")
    ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
    [('a.txt', 'whole')]
    """
    target = Path(os.path.realpath(path))
    with name_in_errors(target), _locked(target) as unfinished:
        yield unfinished
        _fsync(unfinished)
        os.replace(unfinished, target)


@generator_block
def temporary_folder(target: Path) -> Iterator[Path]:
    """The path of a new folder, in that of `target`, which is removed when the block ends.

    That of a process that was killed is removed by the next call for the same path.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with temporary_folder(Path(folder, "a")) as unfinished:
    ...         unfinished.is_dir(), unfinished.parent == Path(folder)
    ...     list(Path(folder).iterdir())
    (True, True)
    []
    """
    with name_in_errors(target), _locked(target, folder=True) as unfinished:
        yield unfinished


@generator_block
def _locked(target: Path, folder: bool = False) -> Iterator[Path]:
    """The path of a temporary file or folder for `target`, which this process has locked; it is removed at the end."""
    _remove_leftovers(target)
    ending = ".folder.tmp" if folder else ".tmp"
    unfinished = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}{ending}")
    mark = None
    try:
        mark = open_locked(unfinished, folder)
        yield unfinished
    finally:
        if folder:
            shutil.rmtree(unfinished, ignore_errors=True)
        with suppress(OSError):  # which would hide what went wrong
            unfinished.unlink(missing_ok=True)
        if mark is not None:
            os.close(mark)


def _remove_leftovers(target: Path) -> None:
    """Remove the new files for a path that were not completed, and that no process writes."""
    for leftover in leftovers(target, r"(\.folder)?\.tmp"):
        remove_unlocked(leftover)


def leftovers(target: Path, ending: str) -> list[Path]:
    """Return the paths that are named as temporary ones for a path; ending: a regular expression."""
    name = re.compile(re.escape(f".{target.name}.") + r"\d+-\d+" + ending)
    with suppress(OSError):  # as in a folder that can't be listed
        return [Path(entry.path) for entry in os.scandir(target.parent) if name.fullmatch(entry.name)]
    return []


def sync_folder(folder: Path) -> None:
    """Block until the directory entries of a folder have reached the disk; Windows has no call for it."""
    if os.name == "nt":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@generator_block
def name_in_errors(target: Path) -> Iterator[None]:
    """Name `target` in an OSError from the block that names no file, or a temporary one that `target` is made of.

    The name of such a file, or of the folder that it is in, begins with a dot, the target's name and another dot.

    >>> with name_in_errors(Path("/data/a.txt")):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
        ...
    OSError: [Errno 28] No space left on device: '/data/a.txt'
    """
    try:
        yield
    except OSError as error:
        named = error.filename
        temporary = isinstance(named, (str, os.PathLike)) and os.fspath(named).startswith(
            str(target.with_name(f".{target.name}."))
        )
        if error.errno is None or (named is not None and not temporary):
            raise
        found = OSError(error.errno, error.strerror, str(target))
        for note in getattr(error, "__notes__", ()):
            found.add_note(note)
        raise found from error


def _fsync(path: Path) -> None:
    """A new name may reach the disk before what was written, which a crash would then lose."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
