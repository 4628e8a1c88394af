"""The files of a checkpoint: parts of tensors in a safetensors file of each rank, and a JSON manifest.

A checkpoint is a folder.  `manifest.json` names, for each tensor, its shape and dtype, and its parts: the file, the
name in the file, and the range of elements in row-major order.  For a tensor that was divided along another dimension
than 0, it also has that dimension, `dim`: its elements are in row-major order with this dimension moved to the front.
If several dimensions were divided, a part also has its box: its elements count within these ranges of indices.
Files of a save have a number that no other save has; the manifest is replaced as a whole when all files are written.
So the folder holds the old checkpoint or the new one.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from retrograd.distributed.checkpoint.boxes import Range, boxes_of, check_cover, narrowed
from retrograd.distributed.local_slice import LocalSlice
from retrograd.distributed.tensor.dtensor import DTensor
from retrograd.interop.atomic_write import atomic_replace, sync_folder
from retrograd.interop.safetensors import load_ranges, save_file

FORMAT = "retrograd distributed checkpoint"
# Some tensors have a `dim`, or a part has a box: releases that only know the version before cannot read these.
VERSION, WITH_DIMENSIONS, WITH_BOXES = 1, 2, 3
MANIFEST = "manifest.json"
Keys = tuple[Any, ...]  # the keys that lead to a value in nested dicts and lists


class Index(int):
    """The index of a member of a list among keys."""


class FirstState(dict[str, Any]):
    """The state that the first step of an optimizer would make, for `load` to read into if the checkpoint has it.

    It is neither saved nor set.
    """


def leaves(tree: Any, path: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Yield the values of nested dicts and lists, with the keys that lead to them; empty ones are values."""
    if isinstance(tree, FirstState):
        return
    if isinstance(tree, Mapping | list | tuple) and not tree and path:
        yield path, tree
    elif isinstance(tree, Mapping):
        for key, value in tree.items():
            if not isinstance(key, str | int):
                raise TypeError(f"checkpoint: keys must be strings or whole numbers, got {key!r} in {name_of(path)}")
            yield from leaves(value, (*path, key))
    elif isinstance(tree, list | tuple):
        for index, value in enumerate(tree):
            yield from leaves(value, (*path, Index(index)))
    else:
        yield path, tree


def put(tree: dict[Any, Any], path: Keys, value: Any) -> None:
    """Add a value to nested dicts and lists, which are made as its keys need them."""
    level: Any = tree
    for key, following in pairwise(path):
        made: Any = [] if isinstance(following, Index) else {}
        level = level.setdefault(key, made) if isinstance(level, dict) else _member(level, key, made)
    if isinstance(level, list):
        _member(level, path[-1], value)
    else:
        level[path[-1]] = value


def _member(members: list[Any], index: int, made: Any) -> Any:
    """Return a member of a list, to which the next one may be added."""
    if index == len(members):
        members.append(made)
    return members[index]


def name_of(path: Keys) -> str:
    """Return the keys of a value as one text, which differs from that of other keys, if all are numbers or all strings.

    >>> name_of(("state", 0, "exp_avg"))
    'state/0/exp_avg'
    """
    return "/".join(str(key).replace("~", "~0").replace("/", "~1") for key in path)


def as_slice(value: Any) -> LocalSlice:
    """Return a part of a tensor as a slice, a tensor as a slice of all its elements, a slice as it is."""
    if isinstance(value, DTensor):
        return value.local_slice
    return value if isinstance(value, LocalSlice) else LocalSlice(value, tuple(value.shape), 0)


def merged(by_rank: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the entries of all ranks, each as the first rank has it that has it."""
    return {name: value for entries in reversed(by_rank) for name, value in entries.items()}


def write_part(folder: Path, number: int, rank: int, tensors: Mapping[str, LocalSlice]) -> dict[str, Any]:
    """Write the slices of a rank; return the rows of the manifest."""
    file = f"save-{number}-rank-{rank}.safetensors"
    flat = {f"{name}@{piece.low}": piece.tensor.detach().reshape(-1) for name, piece in tensors.items()}
    if flat:
        save_file(flat, folder / file)
        sync_folder(folder)  # so that no manifest that names the file reaches the disk before it
    return {
        name: {
            "shape": list(piece.shape),
            "dtype": str(piece.tensor.dtype),
            **({"dim": piece.dim} if piece.dim else {}),
            "part": [file, f"{name}@{piece.low}", piece.low, piece.high, *([] if piece.box is None else [piece.box])],
        }
        for name, piece in tensors.items()
    }


def write_manifest(
    folder: Path,
    number: int,
    rows: Sequence[Mapping[str, Any]],
    values: Mapping[str, Any],
    paths: Mapping[str, Keys],
) -> None:
    """Write the manifest, given the rows of all ranks and the values that are no tensors.

    paths: the keys of each name.  It does nothing if a later save is complete.
    """
    if (completed_save(folder) or 0) > number:
        return
    tensors: dict[str, Any] = {}
    for row in rows:
        for name, entry in row.items():
            kind = {key: value for key, value in entry.items() if key != "part"}
            known = tensors.setdefault(name, {**kind, "parts": []})
            if known.get("dim") != kind.get("dim"):
                raise ValueError(f"checkpoint: the ranks have divided {name} along different dimensions")
            if known["shape"] != entry["shape"] or known["dtype"] != entry["dtype"]:
                raise ValueError(
                    f"checkpoint: {name} is {known['dtype']}{known['shape']} on one rank and "
                    f"{entry['dtype']}{entry['shape']} on another"
                )
            known["parts"].append(entry["part"])
    for name, entry in tensors.items():
        entry["parts"].sort(key=lambda part: part[2])
        check_cover(name, entry["shape"], [(_box(entry, part), part[2], part[3]) for part in entry["parts"]])
    stored = {"tensors": tensors, "values": values, "paths": {name: _coded(path) for name, path in paths.items()}}
    version = WITH_DIMENSIONS if any("dim" in entry for entry in tensors.values()) else VERSION
    if any(len(part) > 4 for entry in tensors.values() for part in entry["parts"]):
        version = WITH_BOXES
    text = json.dumps({"format": FORMAT, "version": version, "save": number, **stored})
    written = folder / f"save-{number}.manifest"
    with atomic_replace(written) as unfinished:
        unfinished.write_text(text)
    os.replace(written, folder / MANIFEST)
    sync_folder(folder)


def completed_save(folder: Path) -> int | None:
    """Return the number of the save that a folder's checkpoint is of; None if it has none.

    Raises ValueError for another file of the manifest's name.
    """
    if not (folder / MANIFEST).is_file():
        return None
    number: int = read_manifest(folder)["save"]
    return number


def _coded(path: Keys) -> list[Any]:
    """Return keys for JSON, in which lists of one number are indices of lists."""
    return [[key] if isinstance(key, Index) else key for key in path]


def expect_stored(tree: Any, manifest: Mapping[str, Any]) -> None:
    """Make dicts of the first states of which a checkpoint has entries, in place in nested dicts."""
    parents = {name.rpartition("/")[0] for kind in ("tensors", "values") for name in manifest[kind]}

    def visit(tree: Any, path: Keys) -> None:
        for key, value in tree.items() if isinstance(tree, dict) else ():
            if isinstance(value, FirstState) and name_of((*path, key)) in parents:
                tree[key] = dict(value)
            elif not isinstance(value, FirstState):
                visit(value, (*path, key))

    visit(tree, ())


def path_of(manifest: Mapping[str, Any], name: str) -> Keys:
    """Return the keys of a name in a checkpoint."""
    return tuple(Index(key[0]) if isinstance(key, list) else key for key in manifest["paths"][name])


def has(manifest: Mapping[str, Any], name: str) -> bool:
    """Return whether a checkpoint has a tensor or value of this name."""
    return name in manifest["tensors"] or name in manifest["values"]


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest.  Raises FileNotFoundError if there is none, ValueError for another file."""
    path = folder / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no complete checkpoint: there is no {MANIFEST}")
    try:
        found: dict[str, Any] = json.loads(path.read_text())
        fits = found["format"] == FORMAT and VERSION <= found["version"] <= WITH_BOXES
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged or no manifest: {error!r}") from error
    if not fits:
        raise ValueError(
            f"{path} is a {found['format']!r}, version {found['version']}; expected {FORMAT!r}, "
            f"{VERSION} to {WITH_BOXES}"
        )
    return found


def read_into(piece: LocalSlice, folder: Path, entry: Mapping[str, Any]) -> None:
    """Read the elements of a slice from a checkpoint; entry: the manifest's, of its tensor.

    Elements between them in a file are read too if they are few.
    """
    target = piece.tensor.detach()
    flat = target.reshape(-1) if target.is_contiguous() else target.contiguous().reshape(-1)
    own = boxes_of(piece.bounds, piece.dim, piece.low, piece.high)
    for part in entry["parts"]:
        file, stored, low, high = part[:4]
        found = []
        for box in boxes_of(_box(entry, part), entry.get("dim", 0), low, high):
            for wanted in own:
                bounds = wanted.shared_bounds(box)
                if bounds is not None:
                    view = wanted.view(flat)
                    found += [(view, wanted, read) for read in box.pieces(bounds, target.element_size())]
        if found:
            values = load_ranges(folder / file, stored, [(read.low, read.high) for *_, read in found])
            for (view, wanted, read), each in zip(found, values, strict=True):
                narrowed(view, wanted.bounds, read.bounds).copy_(read.view(each))
    if not target.is_contiguous():
        target.copy_(flat.reshape(target.shape))


def _box(entry: Mapping[str, Any], part: Sequence[Any]) -> tuple[Range, ...]:
    """Return the ranges of indices among which the elements of a part count."""
    if len(part) > 4:
        return tuple([(low, high) for low, high in part[4]])
    return tuple([(0, size) for size in entry["shape"]])
