"""Python values as JSON: plain ones unchanged, all others with a tag for their type."""

import base64
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from retrograd.backend.ragged import RaggedSize, Structure
from retrograd.core import Aval
from retrograd.core import dtype as dtypes
from retrograd.core.blocks import generator_block
from retrograd.interop.atomic_write import shorten
from retrograd.ops.create import as_tensor
from retrograd.ops.index import Slot, T
from retrograd.ops.layout import Size

MAX_DEPTH = 50  # maximum nesting of values; Python's compiler and recursion have limits not far above
MAX_DIMS = 64
MAX_BYTES = 2**62  # maximum size that a tensor may claim
MAX_MESSAGE_LENGTH = 1_500  # including quotes from a file


class StorageError(ValueError):
    """The error if a program cannot be read or stored; the message names the part and the reason."""


@generator_block
def error_context(position: str) -> Iterator[None]:
    """Prefix a StorageError from the block with its position in the file or program."""
    try:
        yield
    except StorageError as error:
        raise StorageError(shorten(f"{position}: {error}", MAX_MESSAGE_LENGTH)) from error.__cause__


class Encoding(NamedTuple):
    """The encoding of a type: its tag, and functions that write and read the content.

    Both functions get the codec, for nested values, and the nesting depth.
    """

    tag: str
    write: Callable[["Codec", Any, int], Any]
    read: Callable[["Codec", Any, int], Any]


class Codec:
    """Writes values as JSON and reads them.  `node_named` returns the node of a graph with a name in the file.

    >>> codec = Codec()
    >>> codec.write((1, [None, -0.0], slice(2, None)))
    {'tuple': [1, [None, -0.0], {'slice': [2, None, None]}]}
    >>> codec.read(_)
    (1, [None, -0.0], slice(2, None, None))
    """

    def __init__(
        self,
        node_named: Callable[[str], Any] | None = None,
        nesting: int = 0,
        functions: Iterable[type] = (),
    ) -> None:
        self.node_named = node_named
        self.nesting = nesting  # of sub-graphs in the arguments of nodes
        self.functions = tuple(
            functions
        )  # users' Functions that graphs may call, in addition to those of imported modules
        self.structures: dict[Structure, Structure] = {}  # equal ones become one

    def write(self, value: Any, depth: int = 0) -> Any:
        """Return a value as JSON; StorageError if it cannot be stored."""
        kind = type(value)
        if kind in _PLAIN or (kind is float and math.isfinite(value)):
            return value
        if depth > MAX_DEPTH:
            raise StorageError(f"values are nested more than {MAX_DEPTH} deep, or contain themselves")
        if kind in LISTS:
            return [self.write(v, depth + 1) for v in value]
        encoding = ENCODINGS.get(kind) or (ENCODINGS[_DTYPE] if isinstance(value, _DTYPE) else None)
        if encoding is None:
            raise StorageError(f"{_short(value)} of type {kind.__name__} can't be stored")
        return {encoding.tag: encoding.write(self, value, depth + 1)}

    def read(self, data: Any, depth: int = 0) -> Any:
        """Return the value encoded by JSON; StorageError for anything that `write` does not produce."""
        kind = type(data)
        if kind in _PLAIN or (kind is float and math.isfinite(data)):
            return data
        if depth > MAX_DEPTH:
            raise StorageError(f"values are nested more than {MAX_DEPTH} deep")
        if kind is list:
            return [self.read(d, depth + 1) for d in data]
        if kind is not dict or len(data) != 1:
            raise StorageError(f"expected a value, got {_short(data)}")
        [(tag, inner)] = data.items()
        if tag not in _TAGS:
            raise StorageError(f"there is no value with the tag {tag!r}")
        return _TAGS[tag].read(self, inner, depth + 1)


# ------------------------------------------------------------------------------------------------- checks


def expect(condition: Any, what: str, got: Any) -> None:
    """Raise StorageError with the expectation and the actual value, unless the condition holds."""
    if not condition:
        raise StorageError(f"expected {what}, got {_short(got)}")


def fields(data: Any, what: str, **kinds: Any) -> list:
    """Return the members of a JSON object that has exactly these keys, each of its type or one of its types."""
    expect(type(data) is dict, what, data)
    if data.keys() != kinds.keys():
        raise StorageError(f"expected {what} with {', '.join(kinds)}, got {_short(sorted(data))}")
    for name, kind in kinds.items():
        expect(type(data[name]) in (kind if isinstance(kind, tuple) else (kind,)), f"{what} with a valid {name}", data)
    return [data[name] for name in kinds]


def members(data: Any, count: int | None, what: str) -> list:
    """Check and return a JSON array, of the given length if any."""
    expect(type(data) is list and count in (None, len(data)), what, data)
    return data


def text(data: Any, what: str) -> str:
    """Check and return a one-line string: generated code shows it in comments, and messages in full."""
    expect(type(data) is str and data.isprintable() and len(data) <= 10_000, f"{what} on one line", data)
    return data


def _short(value: Any) -> str:
    shown = ascii(value) if not isinstance(value, (list, dict)) or len(value) < 20 else f"a long {type(value).__name__}"
    return shown if len(shown) <= 80 else shown[:77] + "..."


# -------------------------------------------------------------------------------------------------- forms


def _write_all(codec: Codec, values: Any, depth: int) -> list:
    return [codec.write(v, depth) for v in values]


def _read_all(codec: Codec, data: Any, depth: int, count: int | None = None) -> list:
    return [codec.read(d, depth) for d in members(data, count, "a list")]


def _write_dict(codec: Codec, value: dict, depth: int) -> list:
    return [[codec.write(k, depth), codec.write(v, depth)] for k, v in value.items()]


def _read_dict(codec: Codec, data: Any, depth: int) -> dict:
    found: dict = {}
    for item in members(data, None, "the items of a dict"):
        key, value = _read_all(codec, item, depth, 2)
        expect(_is_key(key) and key not in found, "a key of a dict that is new", key)
        found[key] = value
    return found


def _is_key(key: Any) -> bool:
    """Return whether a value may be a dict key: one that is hashed by value."""
    return all(map(_is_key, key)) if type(key) is tuple else type(key) in (*_PLAIN, float, complex, bytes)


def _read_float(codec: Codec, data: Any, depth: int) -> float:
    expect(data in ("nan", "inf", "-inf"), "nan, inf or -inf", data)
    return float(data)


def _read_complex(codec: Codec, data: Any, depth: int) -> complex:
    parts = _read_all(codec, data, depth, 2)
    expect(all(type(part) is float for part in parts), "two floats", data)
    return complex(*parts)


def _read_bytes(codec: Codec, data: Any, depth: int) -> bytes:
    try:
        return base64.b64decode(data.encode("ascii"), validate=True)
    except (AttributeError, ValueError):
        raise StorageError(f"expected bytes as base64, got {_short(data)}") from None


def _read_dtype(codec: Codec, data: Any, depth: int) -> Any:
    expect(type(data) is str and data in dtypes.TABLE, "the name of a dtype", data)
    return dtypes.TABLE[data].dtype


def _read_constant(value: Any) -> Callable[[Codec, Any, int], Any]:
    def read(codec: Codec, data: Any, depth: int) -> Any:
        expect(data is None, "null", data)
        return value

    return read


def _read_size(codec: Codec, data: Any, depth: int) -> Size:
    return Size(_integers(data, "the sizes of a shape"))


def _integers(data: Any, what: str) -> list[int]:
    expect(type(data) is list and all(type(d) is int and -(2**63) <= d < 2**63 for d in data), what, data)
    return data


def _write_structure(codec: Codec, value: Structure, depth: int) -> list:
    return [value.sizes.tolist(), None if value.starts is None else value.starts.tolist()]


def _read_structure(codec: Codec, data: Any, depth: int) -> Structure:
    """Read the sizes of the components, a row for each, and the starts of the components."""
    sizes, starts = members(data, 2, "sizes and starts of a ragged array")
    rows = [_integers(row, "sizes of a component") for row in members(sizes, None, "sizes of components")]
    columns = len(rows[0]) if rows else 1
    expect(all(len(row) == columns and min(row, default=-1) >= 0 for row in rows), "as many sizes in each row", sizes)
    expect(sum(math.prod(row) for row in rows) < MAX_BYTES, "a size that can be", sizes)
    array = as_tensor(rows, dtypes.int64).numpy().reshape(len(rows), columns)
    if starts is not None:
        expect(len(_integers(starts, "starts")) == len(rows) and min(starts, default=0) >= 0, "a start each", starts)
    structure = Structure(array, None if starts is None else as_tensor(starts, dtypes.int64).numpy())
    return codec.structures.setdefault(structure, structure)


def _write_ragged_size(codec: Codec, value: RaggedSize, depth: int) -> list:
    return [codec.write(value.structure, depth), value.column, value.axis, value.number]


def _read_ragged_size(codec: Codec, data: Any, depth: int) -> RaggedSize:
    structure, column, axis, number = _read_all(codec, data, depth, 4)
    numbers = all(type(n) is int and 0 <= n <= MAX_DIMS for n in (column, axis, number))
    expect(type(structure) is Structure and numbers and column < structure.sizes.shape[1], "a ragged size", data)
    return RaggedSize(structure, column, axis, number)


def _write_aval(codec: Codec, value: Aval, depth: int) -> list:
    return [str(value.dtype), _write_all(codec, value.shape, depth)]


def _read_aval(codec: Codec, data: Any, depth: int) -> Aval:
    dtype, shape = members(data, 2, "a dtype and a shape")
    sizes = _read_all(codec, shape, depth)
    parsed_dtype = _read_dtype(codec, dtype, depth)
    expect(len(sizes) <= MAX_DIMS and all(map(_is_size, sizes)), "a shape", shape)
    numbers = [size for size in sizes if type(size) is int]
    expect(
        math.prod(numbers) * parsed_dtype.itemsize < MAX_BYTES or 0 in numbers,
        "a shape of something that can be",
        shape,
    )
    return Aval(tuple(sizes), parsed_dtype)


def _is_size(size: Any) -> bool:
    return type(size) in SIZES or (type(size) is int and 0 <= size < 2**63)


_PLAIN = (type(None), bool, int, str)
_DTYPE = dtypes.DType
LISTS: set[type] = {list}  # the classes whose objects are written as lists
SIZES: list[type] = [RaggedSize]  # the non-integers that a shape may contain
ENCODINGS: dict[type, Encoding] = {
    float: Encoding("float", lambda codec, value, depth: str(value), _read_float),
    complex: Encoding("complex", lambda codec, v, depth: _write_all(codec, (v.real, v.imag), depth), _read_complex),
    bytes: Encoding("bytes", lambda codec, value, depth: base64.b64encode(value).decode(), _read_bytes),
    tuple: Encoding("tuple", _write_all, lambda codec, data, depth: tuple(_read_all(codec, data, depth))),
    dict: Encoding("dict", _write_dict, _read_dict),
    slice: Encoding(
        "slice",
        lambda codec, v, depth: _write_all(codec, (v.start, v.stop, v.step), depth),
        lambda codec, data, depth: slice(*_read_all(codec, data, depth, 3)),
    ),
    type(...): Encoding("ellipsis", lambda codec, value, depth: None, _read_constant(...)),
    Slot: Encoding("slot", lambda codec, value, depth: None, _read_constant(T)),
    Size: Encoding("size", lambda codec, value, depth: list(value), _read_size),
    _DTYPE: Encoding("dtype", lambda codec, value, depth: str(value), _read_dtype),
    Structure: Encoding("structure", _write_structure, _read_structure),
    RaggedSize: Encoding("ragged size", _write_ragged_size, _read_ragged_size),
    Aval: Encoding("aval", _write_aval, _read_aval),
}
_TAGS = {encoding.tag: encoding for encoding in ENCODINGS.values()}


def add_encoding(kind: type, encoding: Encoding) -> None:
    """Register the encoding of a type under its tag."""
    ENCODINGS[kind] = _TAGS[encoding.tag] = encoding
