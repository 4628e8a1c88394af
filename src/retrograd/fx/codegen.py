"""A graph as the source of a Python function: what a `GraphModule` runs, and what people read."""

import keyword
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from retrograd.core import Op, operator_named
from retrograd.core import dtype as dtypes
from retrograd.core.source import LINES
from retrograd.fx.node import Node

if TYPE_CHECKING:
    from retrograd.fx.graph import Graph

DType = type(dtypes.float32).__mro__[1]  # NumPy's dtype


class Operators:
    """The registry as a namespace: `ops.add`, or `ops["package::add"]`.

    >>> Operators().add
    <op add(Tensor a, Tensor b) -> Tensor>
    """

    def __getattr__(self, name: str) -> Op:
        try:
            return operator_named(name)
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __getitem__(self, name: str) -> Op:
        return operator_named(name)


class Code(NamedTuple):
    """Source of a function `forward(self, ...)`, the objects that it names, and where its lines come from."""

    src: str
    objects: dict[str, Any]
    made_at: dict[int, str]

    def compile(self) -> Any:
        """The function.  Tracebacks and debuggers show its source, which its globals keep."""
        # Modules say by this name where their source is; a file of this name need not be there.
        filename = f"retrograd.fx/{crc32(self.src.encode()):08x}.py"
        scope = {
            "__name__": "retrograd.fx.generated",
            "__loader__": _Source(self.src),
            LINES: self.made_at,
            "ops": Operators(),
            **self.objects,
        }
        exec(compile(self.src, filename, "exec"), scope)
        return scope["forward"]


class _Source:
    """What linecache asks for the source of a module that is in no file."""

    def __init__(self, src: str) -> None:
        self._src = src

    def get_source(self, name: str) -> str:
        """The source."""
        return self._src


def generate(graph: "Graph") -> Code:
    """The graph as code: a line per operator, its shape beside it, and above it the user's line."""
    return _Writer(graph).code()


class _Writer:
    """Writes one function, line by line."""

    def __init__(self, graph: "Graph") -> None:
        self._nodes = list(graph.nodes)
        self._taken = {"self", "ops", *[node.name for node in self._nodes]}
        self._lines: list[str] = []
        self._objects: dict[str, Any] = {}
        self._made_at: dict[int, str] = {}
        self._shown = ""  # the user's line that was last written
        self._dying = _last_uses(self._nodes)

    def code(self) -> Code:
        """The finished function."""
        inputs = [node for node in self._nodes if node.op == "placeholder"]
        self._lines.append(f"def forward({', '.join(['self', *[node.name for node in inputs]])}):")
        shapes = [f"{node.name}: {node.meta['val']}" for node in inputs if "val" in node.meta]
        if shapes:
            self._lines.append(f"    # {', '.join(shapes)}")
        for node in self._nodes:
            self._write(node)
        return Code("\n".join([*self._lines, ""]), self._objects, self._made_at)

    def _write(self, node: Node) -> None:
        if node.op == "call_function":
            self._write_place(node)
            dying = self._dying.get(node, [])
            ending = f";  del {', '.join(n.name for n in dying)}" if dying else ""
            shape = f"  # {node.meta['val']}" if "val" in node.meta else ""
            self._lines.append(f"    {node.name} = {self._call(node)}{ending}{shape}")
            self._made_at[len(self._lines)] = node.meta.get("stack_trace", "")
        elif node.op == "output":
            self._lines.append(f"    return {self._value(node.args[0])}")

    def _write_place(self, node: Node) -> None:
        place = node.meta.get("stack_trace", "")
        if place and place != self._shown:
            self._lines.append(f"    # {PurePath(place).name}")
            self._shown = place

    def _call(self, node: Node) -> str:
        arguments = [self._value(a) for a in node.args]
        arguments += [f"{k}={self._value(v)}" for k, v in node.kwargs.items()]
        name = node.target.name
        function = f"ops.{name}" if name.isidentifier() and not keyword.iskeyword(name) else f"ops[{name!r}]"
        return f"{function}({', '.join(arguments)})"

    def _value(self, value: Any) -> str:
        """A value as an expression; what Python has no literal for becomes a global of the function."""
        if isinstance(value, Node):
            return _attribute(value.target) if value.op == "get_attr" else value.name
        if type(value) in _WRITERS:
            return _WRITERS[type(value)](self, value)
        if isinstance(value, DType):
            return repr(str(value))
        return self._global(value)

    def _members(self, values: Any) -> str:
        return ", ".join(map(self._value, values))

    def _item(self, item: tuple) -> str:
        return ": ".join(map(self._value, item))

    def _global(self, value: Any) -> str:
        for name, known in self._objects.items():
            if known is value:
                return name
        name = repr(value) if repr(value).isidentifier() else f"_{type(value).__name__.lower()}"
        while name in self._taken or name in self._objects or keyword.iskeyword(name):
            name += "_"
        self._objects[name] = value
        return name


_WRITERS: dict[type, Any] = {
    **dict.fromkeys((type(None), bool, int, str, bytes), lambda writer, v: repr(v)),
    type(...): lambda writer, v: "...",
    float: lambda writer, v: repr(v) if v - v == 0 else f"float({str(v)!r})",
    complex: lambda writer, v: f"complex({writer._value(v.real)}, {writer._value(v.imag)})",
    tuple: lambda writer, v: f"({writer._members(v)}{',' * (len(v) == 1)})",
    list: lambda writer, v: f"[{writer._members(v)}]",
    dict: lambda writer, v: f"{{{', '.join(map(writer._item, v.items()))}}}",
    slice: lambda writer, v: f"slice({writer._members((v.start, v.stop, v.step))})",
}


def _attribute(target: str) -> str:
    """`self.layer.weight`; a part that is no identifier, as in a Sequential, is looked up by name."""
    text = "self"
    for part in target.split("."):
        plain = part.isidentifier() and not keyword.iskeyword(part)
        text = f"{text}.{part}" if plain else f"getattr({text}, {part!r})"
    return text


def _last_uses(nodes: list[Node]) -> dict[Node, list[Node]]:
    """Per node, the computed values that nothing needs after it, so that their memory goes at once."""
    last: dict[Node, Node] = {}
    for node in nodes:
        for used in node.all_input_nodes:
            last[used] = node
    dying: dict[Node, list[Node]] = {}
    for used, user in last.items():
        if used.op == "call_function":
            dying.setdefault(user, []).append(used)
    return dying
