"""Programs on disk: a graph as JSON and its tensors as safetensors, in a folder or a zip; loading runs no code.

docs/storage.md describes the format.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from retrograd.autograd.function import Function
from retrograd.export.graph_json import read_graph, write_graph
from retrograd.export.program import ExportedProgram
from retrograd.export.program_codec import from_parts, to_parts
from retrograd.export.tensor_json import (
    Entry,
    build_module,
    entries_of,
    read_entries,
    write_entry,
)
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.fx import GraphModule
from retrograd.fx.traced_writes import ATTRIBUTE, USER_INPUT
from retrograd.interop import program_files
from retrograd.interop.json_values import Codec, StorageError, error_context, expect, fields
from retrograd.interop.program_files import check_version, library_version
from retrograd.interop.safetensors import save_file
from retrograd.interop.stored_tensors import encode_tensor, read_tensors

__all__ = ["Kind", "StorageError", "add_kind", "load", "save"]

FORMAT, VERSION = "retrograd graph", 1


class Kind(NamedTuple):
    """How to store programs of a class: as a `GraphModule`, and the remaining plain values by name.

    `from_parts` gets values from an untrusted file: it must validate them, and raise StorageError.
    """

    name: str
    to_parts: Callable[[Any], tuple[GraphModule, dict[str, Any]]]
    from_parts: Callable[[GraphModule, dict[str, Any]], Any]


def _module_from_parts(module: GraphModule, rest: dict[str, Any]) -> GraphModule:
    expect(not rest, "only a module's graph", rest)
    return module


KINDS: dict[type, Kind] = {
    GraphModule: Kind("module", lambda module: (module, {}), _module_from_parts),
    ExportedProgram: Kind("program", to_parts, from_parts),
}


def add_kind(cls: type, kind: Kind) -> None:
    """Let `save` and `load` accept programs of another class."""
    KINDS[cls] = kind


def save(program: Any, path: str | os.PathLike[str]) -> None:
    """Store a captured program: its graph, signature, parameters, buffers and constants.

    program: a `GraphModule`, such as `fx.trace` returns and a pipeline's stages are, or an `ExportedProgram`, which
    is restored without its example inputs.
    path: a zip if it ends in ".zip", else a folder; an existing stored program is replaced atomically.
    Equal programs give equal files.

    Raises TypeError for other programs, StorageError for unsupported content (constants that are not plain data,
    calls of functions that are not operators), naming the node, and FileExistsError if something else is at `path`.
    After an error the old content is unchanged.

    >>> import retrograd as rg, tempfile
    >>> from retrograd import export, fx
    >>> module = fx.trace(lambda x: (x * 2).sum(), rg.ones(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export.save(module, f"{folder}/double.zip")
    ...     export.load(f"{folder}/double.zip")(rg.tensor([1.0, 2.0, 3.0]))
    tensor(12.)
    """
    kind = next((KINDS[cls] for cls in type(program).__mro__ if cls in KINDS), None)
    if kind is None:
        raise TypeError(f"save: expected a GraphModule or an ExportedProgram, got {type(program).__name__}")
    module, rest = kind.to_parts(program)
    entries = entries_of(module)
    document = _document(kind.name, module, list(entries), rest)
    stored = {entry.stored_as: encode_tensor(tensor) for entry, tensor in entries.items()}

    def fill(folder: Path) -> None:
        program_files.write_json(folder / program_files.GRAPH, document, lines=("tensors", "nodes"))
        save_file(stored, folder / program_files.TENSORS)

    program_files.write(Path(path), fill, is_zip=Path(path).suffix == ".zip")


def _document(kind: str, module: GraphModule, entries: list[Entry], rest: Mapping[str, Any]) -> dict[str, Any]:
    codec = Codec()
    return {
        "format": FORMAT,
        "version": VERSION,
        "retrograd": library_version(),
        "kind": kind,
        "training": module.training,
        "rest": {name: codec.write(value) for name, value in rest.items()},
        "tensors": [write_entry(entry, codec) for entry in entries],
        **write_graph(module.graph),
    }


def load(path: str | os.PathLike[str], *, functions: Iterable[type[Function]] = ()) -> Any:
    """Load the program that `save` stored at `path`, a folder or a zip.

    Everything is validated before use, nothing is imported, and no code from the file runs. Custom operators must
    be registered, classes in the arguments or results known to optree, and the modules of every `autograd.Function`
    imported, before loading. `functions`: more classes that the program may call, such as those defined in functions.

    Raises FileNotFoundError if there is nothing, and StorageError, a ValueError, for invalid
    content: damaged or missing files, a newer format, unknown operators, Functions, classes or arguments,
    tensors that contradict the graph. It names the file and the position in it.
    """
    with error_context(os.fspath(path)), program_files.open_files(Path(path)) as folder:
        with error_context(program_files.GRAPH):
            document = program_files.read_json(folder / program_files.GRAPH)
            check_version(document, FORMAT, VERSION)
            kind, training, rest, entries, graph = _read_document(document, functions)
        with error_context(program_files.TENSORS):
            stored = read_tensors(folder / program_files.TENSORS, {e.stored_as: e.aval for e in entries})
        try:
            home = build_module(entries, stored)
            home.training = training
            module = GraphModule(home, graph, keep=[entry.name for entry in entries])
            return kind.from_parts(module, rest)
        except StorageError:
            raise
        except Exception as error:
            raise StorageError(f"it is not a valid program: {error}") from error


def _read_document(document: dict[str, Any], functions: Iterable[type[Function]]) -> tuple:
    _, _, _, name, training, rest, tensors, operators, signature, nodes = fields(
        document, "a program", format=str, version=int, retrograd=str, kind=str, training=bool, rest=dict,
        tensors=list, operators=dict, signature=(dict, type(None)), nodes=list,
    )  # fmt: skip
    kind = next((kind for kind in KINDS.values() if kind.name == name), None)
    if kind is None:
        raise StorageError(
            f"there are no programs of the kind {name!r}, only {', '.join(k.name for k in KINDS.values())}"
        )
    codec = Codec()
    with error_context("tensors"):
        entries = read_entries(tensors, codec)
    with error_context("rest"):
        values = {key: codec.read(value) for key, value in rest.items()}
    graph = read_graph({"operators": operators, "signature": signature, "nodes": nodes}, functions)
    _check_attributes(graph, {entry.name: entry for entry in entries})
    return kind, training, values, entries, graph


def _check_attributes(graph: Any, entries: dict[str, Entry]) -> None:
    """Check that the attributes the graph reads exist, and have the declared type."""
    for node in graph.find_nodes(op="get_attr"):
        if node.target not in entries:
            raise StorageError(f"{node.name}: there is no tensor {node.target!r}")
        val = node.meta.get("val")
        if val is not None and val != entries[node.target].aval:
            raise StorageError(f"{node.name} is {val}, but the tensor {node.target!r} is {entries[node.target].aval}")
    for kind, target, _ in graph.signature.mutations if graph.signature is not None else ():
        _check_write(kind, target, entries)


def _check_write(kind: str, target: str, entries: dict[str, Entry]) -> None:
    """Check that the graph writes to a tensor of the module, or to an unused attribute."""
    if kind not in (USER_INPUT, ATTRIBUTE) and target not in entries:
        raise StorageError(f"the graph writes to {target!r}, and there is no such tensor")
    pairs = [(f"{name}.", f"{target}.") for name in entries] if kind == ATTRIBUTE else []
    if any(a.startswith(b) or b.startswith(a) for a, b in pairs):
        raise StorageError(f"the graph writes to the attribute {target!r}, where a tensor or module is")


suggest_in_module(globals())
