"""The files of a checkpoint: parts of tensors in a safetensors file of each rank, and a JSON manifest.

A checkpoint is a folder.  `manifest.json` names, for each tensor, its shape and dtype, and its parts: the file, the
name in the file, and the range of elements in row-major order.  Files of a save have a number that no other save has;
the manifest is replaced as a whole when all files are written.  So the folder holds the old checkpoint or the new one.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from retrograd.core import Tensor
from retrograd.distributed.local_slice import LocalSlice
from retrograd.interop.atomic_write import atomic_replace
from retrograd.interop.safetensors import load_slices, save_file

FORMAT, VERSION = "retrograd distributed checkpoint", 1
MANIFEST = "manifest.json"
_FILE = re.compile(r"save-(\d+)(-rank-\d+\.safetensors|\.started)")
Keys = tuple[Any, ...]  # the keys that lead to a value in nested dicts and lists
Part = tuple[str, str, int, int]  # the file, the name in it, the first element and the one after the last


def leaves(tree: Any, path: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Yield the values of nested dicts and lists, with the keys that lead to them."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            if not isinstance(key, str | int):
                raise TypeError(f"checkpoint: keys must be strings or whole numbers, got {key!r} in {name_of(path)}")
            yield from leaves(value, (*path, key))
    elif isinstance(tree, list | tuple):
        for index, value in enumerate(tree):
            yield from leaves(value, (*path, index))
    else:
        yield path, tree


def name_of(path: Keys) -> str:
    """Return the keys of a value as one text, which differs from that of other keys.

    >>> name_of(("state", 0, "exp_avg"))
    'state/0/exp_avg'
    """
    return "/".join(str(key).replace("~", "~0").replace("/", "~1") for key in path)


def as_slice(value: Any) -> LocalSlice:
    """Return a tensor as a slice of all its elements; a slice as it is."""
    return value if isinstance(value, LocalSlice) else LocalSlice(value, tuple(value.shape), 0)


def start_save(folder: Path) -> int:
    """Return the number of a new save, which no file of the folder has, and mark it as started."""
    number = max(_numbers(folder).values(), default=0) + 1
    (folder / f"save-{number}.started").touch(exist_ok=False)
    return number


def _numbers(folder: Path) -> dict[Path, int]:
    """Return the files of saves with the numbers of their saves."""
    return {path: int(match[1]) for path in folder.glob("save-*") if (match := _FILE.fullmatch(path.name))}


def write_part(folder: Path, number: int, rank: int, tensors: Mapping[str, LocalSlice]) -> dict[str, Any]:
    """Write the slices of a rank; return the rows of the manifest."""
    file = f"save-{number}-rank-{rank}.safetensors"
    flat = {f"{name}@{piece.low}": piece.tensor.detach().reshape(-1) for name, piece in tensors.items()}
    if flat:
        save_file(flat, folder / file)
    return {
        name: {
            "shape": list(piece.shape),
            "dtype": str(piece.tensor.dtype),
            "part": [file, f"{name}@{piece.low}", piece.low, piece.high],
        }
        for name, piece in tensors.items()
    }


def write_manifest(folder: Path, number: int, rows: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> None:
    """Write the manifest, given the rows of all ranks and the values that are no tensors; then remove older files.

    It does nothing if a later save is complete.
    """
    if (folder / MANIFEST).is_file() and read_manifest(folder)["save"] > number:
        return
    tensors: dict[str, Any] = {}
    for row in rows:
        for name, entry in row.items():
            known = tensors.setdefault(name, {"shape": entry["shape"], "dtype": entry["dtype"], "parts": []})
            if known["shape"] != entry["shape"] or known["dtype"] != entry["dtype"]:
                raise ValueError(
                    f"checkpoint: {name} is {known['dtype']}{known['shape']} on one rank and "
                    f"{entry['dtype']}{entry['shape']} on another"
                )
            known["parts"].append(entry["part"])
    for name, entry in tensors.items():
        entry["parts"].sort(key=lambda part: part[2])
        _check_cover(name, entry)
    text = json.dumps({"format": FORMAT, "version": VERSION, "save": number, "tensors": tensors, "values": values})
    with atomic_replace(folder / MANIFEST) as unfinished:
        unfinished.write_text(text)
    for path, other in _numbers(folder).items():
        if other < number or (other == number and path.suffix == ".started"):
            path.unlink(missing_ok=True)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest.  Raises FileNotFoundError if there is none, ValueError for another file."""
    path = folder / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no complete checkpoint: there is no {MANIFEST}")
    try:
        found: dict[str, Any] = json.loads(path.read_text())
        fits = found["format"] == FORMAT and found["version"] == VERSION
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged or no manifest: {error!r}") from error
    if not fits:
        raise ValueError(f"{path} is a {found['format']!r}, version {found['version']}; expected {FORMAT!r}, {VERSION}")
    return found


def read_slice(folder: Path, name: str, entry: Mapping[str, Any], low: int, high: int) -> list[tuple[int, Tensor]]:
    """Return the elements from `low` to `high` of a tensor: those of each part, with the index of the first one."""
    found = []
    for file, stored, first, last in entry["parts"]:
        start, end = max(low, first), min(high, last)
        if start < end:
            (part,) = load_slices(folder / file, {stored: (start - first, end - first)}).values()
            found.append((start, part))
    return found


def _check_cover(name: str, entry: Mapping[str, Any]) -> None:
    """Raise ValueError unless the parts have each element of the tensor once."""
    count, reached = 1, 0
    for size in entry["shape"]:
        count *= size
    for _, _, low, high in entry["parts"]:
        if low != reached and low < high:
            raise ValueError(f"checkpoint: the ranks' slices of {name} have gaps or overlap at element {reached}")
        reached = max(reached, high)
    if reached != count:
        raise ValueError(f"checkpoint: the ranks' slices of {name} end at element {reached} of {count}")
