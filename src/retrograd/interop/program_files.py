"""A stored program as files: a folder of two, or a zip of them, written atomically and validated on reading."""

import ctypes
import json
import os
import re
import shutil
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, TypeVar

from retrograd.core.blocks import generator_block
from retrograd.foundation.lazy_imports import lazy_module
from retrograd.interop.atomic_write import atomic_replace, leftovers, shorten, temporary_folder
from retrograd.interop.file_locks import is_locked
from retrograd.interop.json_values import StorageError, expect

GRAPH, TENSORS = "graph.json", "tensors.safetensors"
NAMES = (GRAPH, TENSORS)
MAX_GRAPH_BYTES = 2**28  # bytes of graph.json: about a million nodes
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)  # a fixed date in zip files, so that equal programs give equal files
_OLD = ".old"  # of a folder between two renames, after the name of the temporary folder that its writer has locked
Result = TypeVar("Result")


# ------------------------------------------------------------------------------------------------- writing


def write(path: Path, fill: Callable[[Path], None], is_zip: bool) -> None:
    """Create a folder or a zip from the two files that `fill` writes into a folder.

    An existing stored program is replaced at the end; FileExistsError if something else is there.
    """
    target = Path(os.path.realpath(path))
    for old in _recover(target):
        shutil.rmtree(old, ignore_errors=True)
    _check_replaceable(target, is_zip)
    with temporary_folder(target) as temporary:
        new_folder = temporary / "new"
        new_folder.mkdir()
        fill(new_folder)
        if is_zip:
            with atomic_replace(target) as packed:
                _pack(new_folder, packed)
        else:
            _replace_folder(new_folder, target, Path(f"{temporary}{_OLD}"))


def write_to(file: BinaryIO, fill: Callable[[Path], None]) -> None:
    """Write a zip of the two files that `fill` writes into a folder to a file."""
    with TemporaryDirectory() as folder:
        fill(Path(folder))
        _pack(Path(folder), file)


def _check_replaceable(target: Path, is_zip: bool) -> None:
    if is_zip:
        is_replaceable = not target.exists() or (target.is_file() and _is_stored_zip(target))
    else:
        is_replaceable = not target.exists() or (target.is_dir() and {p.name for p in target.iterdir()} <= {*NAMES})
    if not is_replaceable:
        raise FileExistsError(f"save: {target} exists and is no stored program, so it is not replaced")


def _is_stored_zip(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return {*archive.namelist()} <= {*NAMES}
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def _pack(folder: Path, target: Path | BinaryIO) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name in NAMES:
            with open(folder / name, "rb") as source, archive.open(_entry(name), "w", force_zip64=True) as packed:
                shutil.copyfileobj(source, packed, 2**20)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _ZIP_DATE)
    entry.external_attr = 0o644 << 16
    return entry


def _replace_folder(new_folder: Path, target: Path, old: Path) -> None:
    """Replace a folder by another, atomically if the system supports it.

    Otherwise rename the old folder first, and rename it back if the replacement fails.

    If it cannot be renamed back, it keeps the name `old`, from which `_recover` brings it back.
    """
    new_folder.chmod(0o777 & ~_umask())
    for name in NAMES:
        with open(new_folder / name, "rb+") as file:
            os.fsync(file.fileno())
    if not target.exists():
        os.replace(new_folder, target)
        return
    if _exchange_atomically(new_folder, target):  # the old content is now in the folder that is cleaned up
        return
    os.replace(target, old)
    try:
        os.replace(new_folder, target)
    except BaseException as error:
        try:
            os.replace(old, target)
        except OSError:
            error.add_note(f"the previous content is in {old}")
        raise
    shutil.rmtree(old, ignore_errors=True)


def _recover(target: Path) -> list[Path]:
    """Rename the old folder of a path back, if its writer was killed before the new one had its name.

    Return the old folders that are left, which no process needs: a new one has taken the place of each.
    """
    ended = [old for old in leftovers(target, r"\.folder\.tmp" + re.escape(_OLD)) if not _is_being_replaced(old)]
    if ended and not target.exists():
        latest = max(ended, key=os.path.getmtime)
        with suppress(OSError):  # another process has brought it back, or has written a new one
            os.rename(latest, target)
            ended.remove(latest)
    return ended if target.exists() else []


def _is_being_replaced(old: Path) -> bool:
    with suppress(OSError):
        return is_locked(old.with_name(old.name.removesuffix(_OLD))) is True
    return False


def _exchange_atomically(a: Path, b: Path) -> bool:
    """Exchange two folders atomically, if the system supports it; Python has no function for that."""
    try:
        exchange = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    current_folder, flag = -100, 2  # AT_FDCWD and RENAME_EXCHANGE, see renameat2(2)
    return bool(exchange(current_folder, os.fsencode(a), current_folder, os.fsencode(b), flag) == 0)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


# ------------------------------------------------------------------------------------------------- reading


@generator_block
def open_files(source: Path | BinaryIO) -> Iterator[Path]:
    """Yield a folder with the two files of a stored program: that folder, or one that a zip was unpacked into."""
    if isinstance(source, Path):
        if not source.exists():
            _recover(Path(os.path.realpath(source)))
        if source.is_dir():
            _check_files(source)
            yield source
            return
        if not stat.S_ISREG(os.stat(source).st_mode):
            raise StorageError("it is neither a folder nor a file")
    with TemporaryDirectory() as unpacked:
        try:
            _unpack(source, Path(unpacked))
        except StorageError:
            raise
        except Exception as error:  # zipfile raises various errors for a damaged archive
            raise StorageError(f"it is damaged or no zip: {shorten(str(error))}") from error
        yield Path(unpacked)


def _check_files(folder: Path) -> None:
    for name in NAMES:
        if not (folder / name).exists():
            raise StorageError(f"there is no {name}")
        if not stat.S_ISREG(os.stat(folder / name).st_mode):
            raise StorageError(f"{name} is no file")


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder with the files of a program."""
    return all((path / name).is_file() for name in NAMES)


def _unpack(source: Path | BinaryIO, folder: Path) -> None:
    size = source.stat().st_size if isinstance(source, Path) else source.seek(0, os.SEEK_END)
    with zipfile.ZipFile(source) as archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        if any(name.endswith("/data.pkl") for name in names):
            raise StorageError("it is a file of rg.save or torch.save: rg.load reads it")
        if sorted(names) != sorted(NAMES):
            raise StorageError(f"it must hold {' and '.join(NAMES)} alone, each once, got {names[:10]!a}")
        for entry in entries:
            if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
                raise StorageError(f"{entry.filename} is compressed or encrypted; pack it as it is (zip -0)")
        if sum(entry.file_size for entry in entries) > size:
            raise StorageError(f"its entries say that they are longer than the file, which has {size} bytes")
        for entry in entries:
            with archive.open(entry) as packed, open(folder / entry.filename, "wb") as file:
                shutil.copyfileobj(packed, file, 2**20)


def read_json(path: Path) -> Any:
    """Return the JSON of a file; StorageError if it is too large, invalid, or not in the writer's form."""
    size = path.stat().st_size
    if size > MAX_GRAPH_BYTES:
        raise StorageError(f"it has {size} bytes, more than the {MAX_GRAPH_BYTES} that are read")
    try:
        return json.loads(path.read_bytes().decode(), object_pairs_hook=_unique_object, parse_constant=_refuse_constant)
    except StorageError:
        raise
    except (ValueError, RecursionError) as error:
        raise StorageError(f"it is damaged or no JSON: {error}") from None


def _unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise StorageError(f"an object has a name twice: {ascii([key for key, _ in pairs])[:200]}")
    return members


def _refuse_constant(name: str) -> None:
    raise StorageError(f"{name} is no JSON")


def write_json(path: Path, document: dict[str, Any], lines: tuple[str, ...]) -> None:
    """Write JSON with a line for each member, and for each member of the lists that `lines` names."""
    with open(path, "w", encoding="ascii", newline="\n") as file:
        file.write("{\n")
        for number, (key, value) in enumerate(document.items()):
            file.write(",\n" * bool(number) + f"{json.dumps(key)}: ")
            if key in lines and value:
                file.write("[\n" + ",\n".join(map(_line, value)) + "\n]")
            else:
                file.write(_line(value))
        file.write("\n}\n")


def _line(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError as error:  # an integer of more digits than Python reads
        raise StorageError(str(error)) from None


# ------------------------------------------------------------------------------------------------- versions


def library_version() -> str:
    """Return the version of this library."""
    metadata = lazy_module("importlib.metadata")  # importing it is slow, and most files are of this version
    try:
        return str(metadata.version("retrograd"))
    except metadata.PackageNotFoundError:
        return "unknown"


def check_version(document: Any, format: str, version: int) -> None:
    """Raise StorageError unless a document has a format, in a version up to the given one."""
    expect(type(document) is dict and document.get("format") == format, f"the format {format!r}", document)
    found = document.get("version")
    expect(type(found) is int and found > 0, "the number of a version", found)
    if found > version:
        raise StorageError(
            f"it is of version {found} of the format, written by retrograd {ascii(document.get('retrograd'))[:50]}; "
            f"this retrograd, {library_version()}, reads up to version {version}"
        )
