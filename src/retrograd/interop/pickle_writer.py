"""Pickle plain data in protocol 2, with the few opcodes that `safe_unpickler` and PyTorch's reader support."""

import pickle
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

Write = Callable[["Writer", Any, str], None]


class Name(str):
    """A reference to a global object: "torch._utils _rebuild_tensor_v2"."""


class PersistentId(tuple):
    """A reference to data that is stored outside of the pickled data."""


class Call(NamedTuple):
    """The call of a function by name, whose result is written."""

    name: str
    arguments: tuple[Any, ...]


class Writer:
    """Build pickled data from values that are put into it.

    others: by type, the function that writes values that are not plain data.
    """

    def __init__(self, writers: dict[type, Write]) -> None:
        self._parts: list[bytes] = [pickle.PROTO + b"\x02"]
        self._numbers: dict[int, int] = {}  # id of a value -> its index in the reader's memo
        self._alive: list[Any] = []  # keeps values alive, so that ids are not reused
        self._writers = writers

    def data(self) -> bytes:
        """Return the pickled data."""
        return b"".join([*self._parts, pickle.STOP])

    def put(self, value: Any, where: str) -> None:
        """Write a value; `where` is its path, for messages."""
        number = self._numbers.get(id(value))
        if number is not None:
            self._parts.append(pickle.LONG_BINGET + struct.pack("<I", number))
            return
        kind = type(value)
        write = _PLAIN.get(kind) or self._writers.get(kind)
        if write is None:
            write = next((made for base, made in self._writers.items() if isinstance(value, base)), _refuse)
        write(self, value, where)

    def keep(self, value: Any) -> None:
        """Memoize the last value, so that later occurrences refer to it."""
        self._numbers[id(value)] = number = len(self._numbers)
        self._alive.append(value)
        self._parts.append(pickle.LONG_BINPUT + struct.pack("<I", number))

    def call(self, name: str, arguments: tuple, where: str) -> None:
        """Write a call of the function of that name with these arguments."""
        self.put(Name(name), where)
        self.put(arguments, where)
        self._parts.append(pickle.REDUCE)

    def create(self, name: str, arguments: tuple, where: str) -> None:
        """Write a new object of the class of that name, which these arguments of `__new__` make."""
        self.put(Name(name), where)
        self.put(arguments, where)
        self._parts.append(pickle.NEWOBJ)

    def build(self, state: Any, where: str) -> None:
        """Write the state of the last value."""
        self.put(state, where)
        self._parts.append(pickle.BUILD)

    def constant(self, value: Any) -> None:
        """Write None or a boolean."""
        codes = {None: pickle.NONE, True: pickle.NEWTRUE, False: pickle.NEWFALSE}
        self._parts.append(codes[value])

    def integer(self, value: int) -> None:
        if -(2**31) <= value < 2**31:
            self._parts.append(pickle.BININT + struct.pack("<i", value))
            return
        digits = pickle.encode_long(value)
        if len(digits) < 256:
            self._parts.append(pickle.LONG1 + bytes([len(digits)]) + digits)
        else:
            self._parts.append(pickle.LONG4 + struct.pack("<i", len(digits)) + digits)

    def number(self, value: float) -> None:
        self._parts.append(pickle.BINFLOAT + struct.pack(">d", value))

    def text(self, value: str) -> None:
        data = value.encode("utf-8", "surrogatepass")
        self._parts.append(pickle.BINUNICODE + struct.pack("<I", len(data)) + data)

    def name(self, value: str) -> None:
        self._parts.append(pickle.GLOBAL + value.replace(" ", "\n").encode() + b"\n")

    def row(self, value: tuple, where: str) -> None:
        self._parts.append(pickle.MARK)
        for place, member in enumerate(value):
            self.put(member, f"{where}[{place}]")
        self._parts.append(pickle.TUPLE)

    def persistent_id(self, value: tuple, where: str) -> None:
        self.row(value, where)
        self._parts.append(pickle.BINPERSID)

    def members(self, value: list, where: str) -> None:
        self._parts.append(pickle.EMPTY_LIST)
        self.keep(value)
        self._parts.append(pickle.MARK)
        for place, member in enumerate(value):
            self.put(member, f"{where}[{place}]")
        self._parts.append(pickle.APPENDS)

    def pairs(self, value: dict, where: str) -> None:
        self._parts.append(pickle.EMPTY_DICT)
        self._entries(value, where)

    def ordered(self, value: dict, where: str) -> None:
        self.call("collections OrderedDict", (), where)
        self._entries(value, where)
        if hasattr(value, "_metadata"):  # the versions of a state dict
            self.build({"_metadata": value._metadata}, where)

    def _entries(self, value: dict, where: str) -> None:
        self.keep(value)
        self._parts.append(pickle.MARK)
        for key, member in value.items():
            self.put(key, f"{where} (a key)")
            self.put(member, f"{where}[{key!r}]")
        self._parts.append(pickle.SETITEMS)


def _refuse(writer: Writer, value: Any, where: str) -> None:
    kind = type(value)
    raise TypeError(
        f"{where} is of type {kind.__module__}.{kind.__qualname__}, which a file of plain data can't hold; it holds "
        f"tensors, arrays, numbers, text, paths, None, and dicts, lists, tuples and sets of these; {_remedy(value)}"
    )


def _remedy(value: Any) -> str:
    if hasattr(value, "state_dict") and hasattr(value, "graph"):
        return "store the program by export.save(fx.trace(module, example), path), or save its state_dict()"
    if hasattr(value, "state_dict"):
        return "save its state_dict(), and load it by load_state_dict()"
    return "rg.serialization.add_safe_globals([...]) allows further classes"


_PLAIN: dict[type, Write] = {
    type(None): lambda writer, value, where: writer.constant(value),
    bool: lambda writer, value, where: writer.constant(value),
    int: lambda writer, value, where: writer.integer(value),
    float: lambda writer, value, where: writer.number(value),
    complex: lambda writer, value, where: writer.call("__builtin__ complex", (value.real, value.imag), where),
    str: lambda writer, value, where: writer.text(value),
    bytes: lambda writer, value, where: writer.call("_codecs encode", (value.decode("latin1"), "latin1"), where),
    Name: lambda writer, value, where: writer.name(value),
    Call: lambda writer, value, where: writer.call(value.name, value.arguments, where),
    PersistentId: lambda writer, value, where: writer.persistent_id(value, where),
    tuple: lambda writer, value, where: writer.row(value, where),
    list: lambda writer, value, where: writer.members(value, where),
    dict: lambda writer, value, where: writer.pairs(value, where),
    OrderedDict: lambda writer, value, where: writer.ordered(value, where),
    Counter: lambda writer, value, where: writer.call("collections Counter", (dict(value),), where),
    set: lambda writer, value, where: writer.call("__builtin__ set", (list(value),), where),
    bytearray: lambda writer, value, where: writer.call("__builtin__ bytearray", (bytes(value),), where),
}
