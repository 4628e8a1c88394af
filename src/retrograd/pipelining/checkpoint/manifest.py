"""The files of a checkpoint: a safetensors file for each rank, and a JSON manifest, which is written last.

docs/resume.md describes the format.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import optree

from retrograd.core import Aval, Tensor
from retrograd.export.tensor_json import Entry
from retrograd.interop.atomic_write import atomic_replace, sync_folder
from retrograd.interop.json_values import Codec, StorageError, error_context, expect, fields
from retrograd.interop.program_files import read_json, write_json
from retrograd.interop.safetensors import load_file, save_file
from retrograd.interop.stored_tensors import decode_tensor, encode_tensor
from retrograd.ops.functions import functions
from retrograd.ops.generator import Generator, default_generator

FORMAT, VERSION = "retrograd checkpoint", 1
MANIFEST = "manifest.json"
_PART = re.compile(r"rank-\d+\.safetensors")
_CODEC = Codec()

States = dict[str, dict[str, Any]]  # optimizer state by parameter name, then by state name
Group = dict[str, Any]  # {"params": names, "settings": by name}


class Content(NamedTuple):
    """The content of a checkpoint.

    model: its state under its own names.  groups, states: of the optimizer; None and empty without one.  scheduler:
    its state, or None.  rng: the default generator's state of each rank.
    """

    step: int
    model: dict[str, Tensor]
    groups: list[Group] | None
    states: States
    scheduler: Any
    extra: Any
    rng: list[Any]


# ------------------------------------------------------------------------------------------------- writing


def write_part(folder: Path, rank: int, model: Mapping[str, Tensor], states: States) -> dict[str, Any]:
    """Write the tensors of a rank, and return its row of the manifest."""
    tensors = {f"model/{name}": tensor for name, tensor in model.items()}
    rows = []
    for name, state in states.items():
        for key, value in state.items():
            with error_context(f"the optimizer's {key} of {name}"):
                rows.append([name, key, _to_json(value, _TensorCodec(tensors, f"optimizer/{key}/{name}"))])
    path = folder / f"rank-{rank}.safetensors"
    save_file({name: encode_tensor(tensor) for name, tensor in tensors.items()}, path)
    return {
        "file": path.name,
        "bytes": path.stat().st_size,
        "sha256": _checksum(path),
        "rng": _to_json(default_generator._plain_state()),
        "tensors": [[name, _CODEC.write(tensor.aval)] for name, tensor in tensors.items()],
        "states": rows,
    }


class _TensorCodec(Codec):
    """A codec for values that contain tensors, which are stored separately under names that begin with `name`."""

    def __init__(self, tensors: dict[str, Tensor], name: str = "") -> None:
        super().__init__()
        self.tensors = tensors
        self.name = name

    def write(self, value: Any, depth: int = 0) -> Any:
        """Return a value as JSON, with each tensor replaced by its name among the separately stored ones."""
        if not isinstance(value, Tensor):
            return super().write(value, depth)
        names = chain([self.name], (f"{self.name}#{number}" for number in count(2)))
        name = next(name for name in names if name not in self.tensors)
        self.tensors[name] = value
        return {"tensor": name}

    def read(self, data: Any, depth: int = 0) -> Any:
        """Return the value encoded by JSON data."""
        if type(data) is not dict or data.keys() != {"tensor"}:
            return super().read(data, depth)
        return _lookup(data["tensor"], self.tensors)


def _to_json(value: Any, codec: Codec = _CODEC) -> Any:
    """Return a value as JSON; NumPy scalars and arrays become numbers and lists."""
    plain: Any = optree.tree_map(_to_list, value, none_is_leaf=True)
    return codec.write(plain)


def _to_list(value: Any) -> Any:
    return value if isinstance(value, Tensor) or not hasattr(value, "tolist") else value.tolist()


def write_common(names: Mapping[str, str], groups: list[Group] | None, scheduler: Any, extra: Any) -> dict[str, Any]:
    """Return the entries of a manifest that do not depend on the rank; StorageError for other than plain data.

    names: the name under which each state entry is stored, because a tensor may have several names.
    """
    common: dict[str, Any] = {"names": dict(names), "groups": None}
    if groups is not None:
        with error_context("the optimizer's settings"):
            common["groups"] = [{**group, "settings": _to_json(group["settings"])} for group in groups]
    for what, value in (("scheduler", scheduler), ("extra", extra)):
        with error_context(what):
            common[what] = _to_json(value)
    return common


def write_manifest(folder: Path, step: int, parts: Sequence[Mapping[str, Any]], common: Mapping[str, Any]) -> None:
    """Write the manifest, once all rank files exist; it makes the folder a checkpoint."""
    for part in parts:
        path = folder / part["file"]
        if not path.is_file() or path.stat().st_size != part["bytes"]:
            raise FileNotFoundError(
                f"save: {path.name}, which its rank has written, is not in the folder that rank 0 sees; all ranks must "
                f"share {folder.parent}"
            )
    body = {"format": FORMAT, "version": VERSION, "step": step, **common, "parts": list(parts)}
    with atomic_replace(folder / MANIFEST) as unfinished:
        write_json(unfinished, {**body, "sha256": _content_checksum(body)}, lines=("parts", "groups"))
    sync_folder(folder)


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _content_checksum(body: Mapping[str, Any]) -> str:
    """Return the checksum of a manifest, computed from its content and not its whitespace."""
    return hashlib.sha256(json.dumps(body, allow_nan=False).encode()).hexdigest()


# ------------------------------------------------------------------------------------------------- reading


class FutureVersionError(StorageError):
    """A checkpoint was written by a later release."""


def find_damage(folder: Path, share: slice) -> str | None:
    """Return a description of the damage of a checkpoint, or None; checksums of a `share` of its files are verified.

    Raises FutureVersionError for a checkpoint of a later release, which cannot be judged.
    """
    try:
        for part in read_manifest(folder)["parts"][share]:
            with error_context(part["file"]):
                _check_file(folder / part["file"], part)
    except FutureVersionError:
        raise
    except (StorageError, OSError) as error:
        return str(error)
    return None


def _check_file(path: Path, part: Mapping[str, Any]) -> None:
    _require(path.is_file(), "there is no such file")
    _require(path.stat().st_size == part["bytes"], f"it has {path.stat().st_size} bytes, not {part['bytes']}")
    _require(_checksum(path) == part["sha256"], "by its checksum it is not what was written")


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise StorageError(problem)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a manifest; raise StorageError if it is not one that `write_manifest` writes."""
    with error_context(MANIFEST):
        _require((folder / MANIFEST).is_file(), "there is no such file")
        document = read_json(folder / MANIFEST)
        expect(type(document) is dict and document.get("format") == FORMAT, f"the format {FORMAT!r}", document)
    version = document.get("version")
    if type(version) is int and version > VERSION:
        raise FutureVersionError(
            f"{folder / MANIFEST} is of version {version} of the format; this release reads up to {VERSION}"
        )
    with error_context(MANIFEST):
        checksum = document.pop("sha256", None)
        _require(checksum == _content_checksum(document), "by its checksum it is not what was written")
        _check_fields(document)
    return dict(document)


def _check_fields(document: dict[str, Any]) -> None:
    fields(
        document, "a checkpoint", format=str, version=int, step=int, names=dict, groups=(list, type(None)),
        scheduler=_ANY, extra=_ANY, parts=list,
    )  # fmt: skip
    expect(document["parts"], "a part at least", document["parts"])
    for part in document["parts"]:
        fields(part, "a part", file=str, bytes=int, sha256=str, rng=_ANY, tensors=list, states=list)
        expect(_PART.fullmatch(part["file"]), "the name of a rank's file", part["file"])


_ANY = (type(None), bool, int, float, str, list, dict)


def read(folder: Path, skipped: Collection[str] = ()) -> Content:
    """Read a complete checkpoint; raise StorageError that names it if it is invalid.  Checksums are not verified.

    skipped: names of the model whose tensors and optimizer states are not read; the tensors have shapes only.
    """
    with error_context(str(folder)):
        try:
            return _content(folder, skipped)
        except StorageError:
            raise
        except (TypeError, ValueError, LookupError, OverflowError, OSError) as error:
            raise StorageError(f"it is damaged: {error}") from error


def _content(folder: Path, skipped: Collection[str]) -> Content:
    manifest = read_manifest(folder)
    wanted = {f"model/{stored}" for name, stored in manifest["names"].items() if name not in skipped}
    tensors: dict[str, Tensor] = {}
    for part in manifest["parts"]:
        of_states = {f"optimizer/{key}/{name}" for name, key, _ in part["states"] if name not in skipped}
        with error_context(part["file"]):
            tensors |= _read_tensors(folder / part["file"], part["tensors"], wanted | of_states)
    with error_context(MANIFEST):
        states: States = {}
        for row in [row for part in manifest["parts"] for row in part["states"]]:
            name, key, value = _check_row(row, 3)
            if name in skipped:
                continue
            expect(type(key) is str, "the name of a state", key)
            states.setdefault(name, {})[key] = _TensorCodec(tensors).read(value)
        return Content(
            manifest["step"],
            {name: _lookup(f"model/{stored}", tensors) for name, stored in manifest["names"].items()},
            None if manifest["groups"] is None else [_read_group(group) for group in manifest["groups"]],
            states,
            _CODEC.read(manifest["scheduler"]),
            _CODEC.read(manifest["extra"]),
            [_read_rng(part["rng"]) for part in manifest["parts"]],
        )


def _check_row(row: Any, count: int) -> list[Any]:
    expect(type(row) is list and len(row) == count and type(row[0]) is str, f"a row of {count}", row)
    return list(row)


def _read_tensors(path: Path, rows: list[Any], wanted: Collection[str]) -> dict[str, Tensor]:
    """Return the tensors of a file by name; those that are not wanted have shapes only."""
    expected = {name: _entry(name, aval) for name, aval in (_check_row(row, 2) for row in rows)}
    # More values of a state have a number after its name.
    read = {name for name in expected if name.partition("#")[0] in wanted or name in wanted}
    try:
        found = load_file(path, names=None if len(read) == len(expected) else read)
    except (ValueError, TypeError) as error:
        raise StorageError(str(error)) from error
    expect(found.keys() == read, f"the tensors {sorted(read)}", sorted(found))
    return {
        name: decode_tensor(name, entry.aval, found[name]) if name in found else _without_elements(entry.aval)
        for name, entry in expected.items()
    }


def _without_elements(aval: Aval) -> Tensor:
    return functions["empty"](aval.shape, dtype=aval.dtype, device="meta")


def _entry(name: str, aval: Any) -> Entry:
    known = _CODEC.read(aval)
    expect(type(known) is Aval and all(type(size) is int for size in known.shape), "a shape and a dtype", aval)
    return Entry(name, "constant", False, known, name)


def _lookup(name: Any, tensors: Mapping[str, Tensor]) -> Tensor:
    expect(type(name) is str and name in tensors, "the name of a tensor in the files", name)
    return tensors[name]


def _read_group(data: Any) -> Group:
    names, settings = fields(data, "a group", params=list, settings=dict)
    expect(all(type(name) is str for name in names), "names of parameters", names)
    known = _CODEC.read(settings)
    expect(type(known) is dict, "settings by name", settings)
    return {"params": names, "settings": known}


def _read_rng(data: Any) -> Any:
    state = _CODEC.read(data)
    try:
        Generator()._set_plain_state(state)
    except Exception as error:  # NumPy raises various errors for the state of another kind of generator
        raise StorageError(f"no generator has the state {ascii(data)[:80]}: {error}") from error
    return state
