"""The tensors of a graph by name: their descriptions, without the values, which another file holds."""

import re
from typing import Any, NamedTuple

from retrograd.core import Aval, Tensor
from retrograd.core.dtype import is_differentiable
from retrograd.fx import GraphModule
from retrograd.fx.graph_module import tensor_names
from retrograd.fx.traced_writes import get_or_add_submodule
from retrograd.interop.json_values import Codec, StorageError, expect, fields, text
from retrograd.nn import Module, Parameter
from retrograd.nn.members import all_attributes

KINDS = ("parameter", "buffer", "transient buffer", "constant")
_CONSTANT = re.compile(r"_tensor_constant\d+")


class Entry(NamedTuple):
    """A tensor of a module: its qualified name, its kind, and the name under which its values are stored."""

    name: str
    kind: str
    requires_grad: bool
    aval: Aval
    stored_as: str


def entries_of(module: GraphModule) -> dict[Entry, Tensor]:
    """Return all tensors of a module, in the order of its state; a tensor with two names is stored once."""
    read = [node.target for node in module.graph.find_nodes(op="get_attr")]
    names = dict.fromkeys([*tensor_names(module), *read, *_constants(module)])
    first: dict[int, str] = {}
    found = {}
    for name in names:
        path, _, last = name.rpartition(".")
        owner = module.get_submodule(path)
        tensor = getattr(owner, last)
        if not isinstance(tensor, Tensor) or tensor.level is not None:
            raise StorageError(f"{name}: {type(tensor).__name__} can't be stored, only tensors outside transforms")
        if any(type(size) is not int for size in tensor.shape):
            raise StorageError(f"{name}: a nested tensor can't be stored; create it from its buffer in the code")
        if not is_valid_name(name):
            raise StorageError(f"{name}: a graph's module has attributes of such a name; choose another")
        stored_as = first.setdefault(id(tensor), name)
        found[Entry(name, _kind(owner, last), tensor.requires_grad and tensor.is_leaf, tensor.aval, stored_as)] = tensor
    return found


def _constants(module: Module) -> list[str]:
    """Return the names of all tensors, registered or not."""
    found = [
        (path, n) for path, m in module.named_modules() for n, x in all_attributes(m).items() if isinstance(x, Tensor)
    ]
    return [f"{path}.{name}" if path else name for path, name in found]


def _kind(owner: Module, name: str) -> str:
    if isinstance(getattr(owner, name), Parameter):
        return "parameter"
    if name not in dict(owner.named_buffers(recurse=False)):
        return "constant"
    return "buffer" if name in owner.state_dict(keep_vars=True) else "transient buffer"


def is_valid_name(name: str) -> bool:
    """Return whether every part of a qualified name is valid in a module, so that it hides no method."""
    return all(part and (_CONSTANT.fullmatch(part) or not _is_reserved(part)) for part in name.split("."))


def _is_reserved(part: str) -> bool:
    return part in _RESERVED or part.startswith("__") or hasattr(GraphModule, part)


_RESERVED = {*vars(Module()), *all_attributes(Module()), "_graph", "_code"}


# ------------------------------------------------------------------------------------------------- as JSON


def write_entry(entry: Entry, codec: Codec) -> dict[str, Any]:
    """Return an entry as JSON."""
    return {**entry._asdict(), "aval": codec.write(entry.aval)}


def read_entries(data: list, codec: Codec) -> list[Entry]:
    """Return the entries encoded by JSON; StorageError if they cannot coexist in a module."""
    entries = [_read_entry(row, codec) for row in data]
    names = {entry.name for entry in entries}
    expect(len(names) == len(entries), "names of tensors, each once", [entry.name for entry in entries])
    stored = {entry.stored_as: entry for entry in entries}
    for entry in entries:
        parts = entry.name.split(".")
        above = {".".join(parts[:i]) for i in range(1, len(parts))} & names
        expect(not above, f"no tensor where {entry.name} needs a module", above)
        same = _may_alias(entry, stored[entry.stored_as])
        expect(same, f"{entry.name} to have the type of the tensor it is stored with", entry.stored_as)
    return entries


def _may_alias(a: Entry, b: Entry) -> bool:
    """Return whether two names may refer to one tensor."""
    return (
        a.aval == b.aval and a.requires_grad == b.requires_grad and (a.kind == "parameter") == (b.kind == "parameter")
    )


def _read_entry(data: Any, codec: Codec) -> Entry:
    name, kind, requires_grad, aval, stored_as = fields(
        data, "a tensor", name=str, kind=str, requires_grad=bool, aval=dict, stored_as=str
    )
    known = codec.read(aval)
    expect(type(known) is Aval and all(type(size) is int for size in known.shape), "a shape and a dtype", aval)
    text(name, "a name")
    expect(is_valid_name(name) and name.count(".") < 100, "the name of a tensor", name)
    expect(kind in KINDS, f"one of {', '.join(KINDS)}", kind)
    expect(not requires_grad or is_differentiable(known.dtype), "a gradient of floats only", aval)
    expect(kind != "parameter" or is_differentiable(known.dtype), "floats in a parameter", aval)
    return Entry(name, kind, requires_grad, known, text(stored_as, "a name"))


# --------------------------------------------------------------------------------------------- modules


def build_module(entries: list[Entry], numbers: dict[str, Tensor]) -> Module:
    """Return a bare module with the tensors under their names."""
    home = Module()
    by_stored_name: dict[str, Tensor] = {}
    for entry in entries:
        path, _, last = entry.name.rpartition(".")
        owner = get_or_add_submodule(home, path)
        if entry.stored_as not in by_stored_name:
            by_stored_name[entry.stored_as] = _as_kind(entry, numbers[entry.stored_as])
        tensor = by_stored_name[entry.stored_as]
        if entry.kind == "parameter":
            owner.register_parameter(last, tensor)  # type: ignore[arg-type]
        elif entry.kind == "constant":
            setattr(owner, last, tensor)
        else:
            owner.register_buffer(last, tensor, persistent=entry.kind == "buffer")
    return home


def _as_kind(entry: Entry, tensor: Tensor) -> Tensor:
    if entry.kind == "parameter":
        return Parameter(tensor, entry.requires_grad)
    tensor.requires_grad = entry.requires_grad
    return tensor
