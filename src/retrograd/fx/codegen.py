"""Code generation: a graph as the source of a Python function, which a `GraphModule` runs."""

import keyword
import operator
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from retrograd.core import Op, operator_named
from retrograd.core import dtype as dtypes
from retrograd.core.source_location import LINES
from retrograd.fx.immutable_collections import immutable_dict, immutable_list
from retrograd.fx.module_stack import STACKS
from retrograd.fx.node import CALLS, Node

if TYPE_CHECKING:
    from retrograd.fx.graph import Graph

# Functions of the module `operator` that are written as Python operators.
INFIX = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "lshift": "<<", "rshift": ">>", "and_": "&", "or_": "|", "xor": "^",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
PREFIX = {"neg": "-", "pos": "+", "invert": "~"}
SPELLED = {
    **{getattr(operator, name): f"{{0}} {sign} {{1}}" for name, sign in INFIX.items()},
    **{getattr(operator, name): f"{sign}{{0}}" for name, sign in PREFIX.items()},
    operator.getitem: "{0}[{1}]",
}

# In-place operators.  An immutable first operand is rebound to the result.
WRITTEN = {getattr(operator, f"i{name.rstrip('_')}"): sign for name, sign in INFIX.items() if sign not in COMPARISONS}

DType = type(dtypes.float32).__mro__[1]  # the class of NumPy's dtypes


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
    """Source of a function `forward(self, ...)`, its globals, and the source lines of its nodes."""

    src: str
    objects: dict[str, Any]
    made_at: dict[int, str]
    made_in: dict[int, Any]  # the module stack of each line: see `ModuleCalls.stack`

    def compile(self) -> Any:
        """Return the function. Tracebacks and debuggers find its source in its globals."""
        # linecache looks the source up by this name; no file of this name needs to exist.
        filename = f"retrograd.fx/{crc32(self.src.encode()):08x}.py"
        scope = {
            "__name__": "retrograd.fx.generated",
            "__loader__": _Source(self.src),
            LINES: self.made_at,
            STACKS: self.made_in,
            "ops": Operators(),
            **self.objects,
        }
        exec(compile(self.src, filename, "exec"), scope)
        return scope["forward"]


class _Source:
    """The loader that linecache asks for the source of generated code."""

    def __init__(self, src: str) -> None:
        self._src = src

    def get_source(self, name: str) -> str:
        """Return the source."""
        return self._src


def generate(graph: "Graph") -> Code:
    """Return the graph as code: a line for each operator, with its shape, and the user's line above."""
    return _Writer(graph).code()


class _Writer:
    """Writes one function, line by line."""

    def __init__(self, graph: "Graph") -> None:
        self._nodes = list(graph.nodes)
        self._taken = {"self", "ops", *[node.name for node in self._nodes]}
        self._lines: list[str] = []
        self._objects: dict[str, Any] = {}
        self._made_at: dict[int, str] = {}
        self._made_in: dict[int, Any] = {}
        self._shown = ""  # the last user line that was written
        self._dying = _last_uses(self._nodes)

    def code(self) -> Code:
        """Return the finished function."""
        inputs = [node for node in self._nodes if node.op == "placeholder"]
        self._lines.append(f"def forward({', '.join(['self', *self._parameters(inputs)])}):")
        shapes = [f"{node.name}: {node.meta['val']}" for node in inputs if "val" in node.meta]
        if shapes:
            self._lines.append(f"    # {_one_line(', '.join(shapes))}")
        for node in self._nodes:
            self._write(node)
        if not any(node.op in (*CALLS, "output") for node in self._nodes):
            self._lines.append("    pass")
        return Code("\n".join([*self._lines, ""]), self._objects, self._made_at, self._made_in)

    def _write(self, node: Node) -> None:
        if node.op in CALLS:
            self._write_place(node)
            dying = self._dying.get(node, [])
            ending = f";  del {', '.join(n.name for n in dying)}" if dying else ""
            shape = f"  # {_one_line(node.meta['val'])}" if "val" in node.meta else ""
            self._lines.append(f"    {self._statement(node)}{ending}{shape}")
            self._made_at[len(self._lines)] = node.meta.get("stack_trace", "")
            self._made_in[len(self._lines)] = node.meta.get("nn_module_stack", {})
        elif node.op == "output":
            self._lines.append(f"    return {self._value(node.args[0])}")

    def _parameters(self, inputs: list[Node]) -> Iterator[str]:
        """Return the parameters; a required one after optional ones is keyword-only."""
        optional = False
        for node in inputs:
            if optional and not node.args and not node.target.startswith("*"):
                yield "*"
                optional = False
            yield self._parameter(node)
            optional = optional or bool(node.args)

    def _parameter(self, node: Node) -> str:
        stars = "*" * (len(node.target) - len(node.target.lstrip("*")))
        return f"{stars}{node.name}" + (f"={self._value(node.args[0])}" if node.args else "")

    def _write_place(self, node: Node) -> None:
        place = node.meta.get("stack_trace", "")
        if place and place != self._shown:
            self._lines.append(f"    # {_one_line(PurePath(place).name)}")
            self._shown = place

    def _statement(self, node: Node) -> str:
        """Return the assignment of a node's result; for Python's in-place operators, after their statement."""
        first = node.args[0] if node.op == "call_function" and node.args and not node.kwargs else None
        if not isinstance(first, Node) or not is_hashable(node.target):
            return f"{node.name} = {self._call(node)}"
        if node.target is operator.setitem and len(node.args) == 3:
            owner, key, value = map(self._value, node.args)
            return f"{owner}[{key}] = {value};  {node.name} = {owner}"
        sign = WRITTEN.get(node.target)
        if sign is None or len(node.args) != 2:
            return f"{node.name} = {self._call(node)}"
        other = self._value(node.args[1])
        if first.op == "get_attr":  # do not rebind an attribute of the module
            return f"{node.name} = {self._value(first)};  {node.name} {sign}= {other}"
        return f"{first.name} {sign}= {other};  {node.name} = {first.name}"

    def _call(self, node: Node) -> str:
        arguments = [self._value(a) for a in node.args]
        named = [f"{k}={self._value(v)}" for k, v in node.kwargs.items()]
        if node.op == "call_module":
            return f"{_attribute(node.target)}({', '.join(arguments + named)})"
        if node.op == "call_method":
            return f"{_owner(node.args[0], arguments[0])}.{node.target}({', '.join(arguments[1:] + named)})"
        spelled = None if isinstance(node.target, Op) or named else _as_operator(node, arguments)
        return spelled or f"{self._function(node.target)}({', '.join(arguments + named)})"

    def _function(self, target: Any) -> str:
        if not isinstance(target, Op) and not hasattr(target, "name"):
            return self._global(target, getattr(target, "__name__", ""))
        name = target.name
        return f"ops.{name}" if name.isidentifier() and not keyword.iskeyword(name) else f"ops[{name!r}]"

    def _value(self, value: Any) -> str:
        """Return a value as an expression; values without a literal become globals of the function."""
        if isinstance(value, Node):
            return _attribute(value.target) if value.op == "get_attr" else value.name
        if type(value) in _WRITERS:
            return _WRITERS[type(value)](self, value)
        if isinstance(value, DType):
            return repr(str(value))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return f"{self._global(type(value), type(value).__name__)}({self._members(value)})"
        return self._global(value)

    def _members(self, values: Any) -> str:
        return ", ".join(map(self._value, values))

    def _item(self, item: tuple) -> str:
        return ": ".join(map(self._value, item))

    def _global(self, value: Any, name: str = "") -> str:
        for taken, known in self._objects.items():
            if known is value:
                return taken
        name = next(filter(str.isidentifier, (name, repr(value))), f"_{type(value).__name__.lower()}")
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
    **dict.fromkeys((list, immutable_list), lambda writer, v: f"[{writer._members(v)}]"),
    **dict.fromkeys((dict, immutable_dict), lambda writer, v: f"{{{', '.join(map(writer._item, v.items()))}}}"),
    slice: lambda writer, v: f"slice({writer._members((v.start, v.stop, v.step))})",
}


def _atom(value: Any, text: str) -> str:
    """Return an expression that can be an operand."""
    return text if isinstance(value, Node) or (isinstance(value, int | float) and text[0].isdigit()) else f"({text})"


def _owner(value: Any, text: str) -> str:
    """Return an expression whose attribute or method can be accessed."""
    return text if isinstance(value, Node) else f"({text})"


def _as_operator(node: Node, arguments: list[str]) -> str:
    """Return a call in Python's operator syntax, if there is one."""
    target, args = node.target, node.args
    if target is getattr and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
        return "" if keyword.iskeyword(args[1]) else f"{_owner(args[0], arguments[0])}.{args[1]}"
    form = SPELLED.get(target, "") if is_hashable(target) else ""
    if form.count("{") != len(args):
        return ""
    if target is operator.getitem:
        return form.format(_owner(args[0], arguments[0]), arguments[1])
    return form.format(*map(_atom, args, arguments))


def is_hashable(target: Any) -> bool:
    """Return whether a target can be looked up in a table."""
    return getattr(type(target), "__hash__", None) is not None


def _one_line(note: Any) -> str:
    """Return a note as a one-line comment: a line break would end the comment, and the rest would run."""
    return " ".join(str(note).split())


def _attribute(target: str) -> str:
    """Return `self.layer.weight`; parts that are no identifiers, as in a Sequential, use getattr."""
    text = "self"
    for part in target.split("."):
        plain = part.isidentifier() and not keyword.iskeyword(part)
        text = f"{text}.{part}" if plain else f"getattr({text}, {part!r})"
    return text


def _last_uses(nodes: list[Node]) -> dict[Node, list[Node]]:
    """Return for each node the values that are not used after it, so that their memory is freed at once."""
    last: dict[Node, Node] = {}
    for node in nodes:
        for used in node.all_input_nodes:
            last[used] = node
    dying: dict[Node, list[Node]] = {}
    for used, user in last.items():
        if used.op in CALLS:
            dying.setdefault(user, []).append(used)
    return dying
