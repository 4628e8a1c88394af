"""Code generation: a graph as the source of a Python function, which a `GraphModule` runs."""

import builtins
import keyword
import operator
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Any
from zlib import crc32

from retrograd.autograd.function.base import FunctionOp
from retrograd.core import Op, operator_named
from retrograd.core import dtype as dtypes
from retrograd.foundation.source_location import LINES
from retrograd.fx.immutable_collections import immutable_dict, immutable_list
from retrograd.fx.module_stack import STACKS
from retrograd.fx.node import CALLS, Node, package, type_text

Transform = Callable[[list[str]], list[str]]

# Functions of the module `operator` that are written as Python operators.
INFIX = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "lshift": "<<", "rshift": ">>", "and_": "&", "or_": "|", "xor": "^",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
PREFIX = {"neg": "-", "pos": "+", "invert": "~"}
OPERATOR_SYNTAX = {
    **{getattr(operator, name): f"{{0}} {sign} {{1}}" for name, sign in INFIX.items()},
    **{getattr(operator, name): f"{sign}{{0}}" for name, sign in PREFIX.items()},
    operator.getitem: "{0}[{1}]",
}

# In-place operators.  An immutable first operand is rebound to the result.
INPLACE_SYMBOLS = {
    getattr(operator, f"i{name.rstrip('_')}"): sign for name, sign in INFIX.items() if sign not in COMPARISONS
}

PROLOGUE_START = 1  # generated code begins with `def`

DType = dtypes.DType


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


@dataclass
class PythonCode:
    """Source of a function `forward(self, ...)`, its globals, and the nodes and source lines of its lines."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None  # number of lines after `def` -> index of the line's node in the graph
    _prologue_start: int = 0  # the line of `def`
    source_lines: dict[int, str] = field(default_factory=dict)  # line number -> the user's line
    module_stacks: dict[int, Any] = field(default_factory=dict)  # line number -> its module stack, see `ModuleCalls`

    @cached_property
    def function(self) -> Any:
        """The function, compiled on first use: the graphs of intermediate steps, as of export, never run."""
        return self.compile()

    def compile(self) -> Any:
        """Return a new function. Tracebacks and debuggers find its source in its globals."""
        # linecache looks the source up by this name; no file of this name needs to exist.
        filename = f"retrograd.fx/{crc32(self.src.encode()):08x}.py"
        scope = {
            "__name__": "retrograd.fx.generated",
            "__loader__": _SourceLoader(self.src),
            LINES: self.source_lines,
            STACKS: self.module_stacks,
            "ops": Operators(),
            **self.globals,
        }
        exec(compile(self.src, filename, "exec"), scope)
        return scope["forward"]


class _SourceLoader:
    """The loader that linecache asks for the source of generated code."""

    def __init__(self, src: str) -> None:
        self._src = src

    def get_source(self, name: str) -> str:
        """Return the source."""
        return self._src


class CodeGen:
    """Generates the code of a graph; subclasses change the function's parameters and result.

    `gen_fn_def` writes the head of the function and `generate_output` its return statement.  A subclass that changes
    how the function is called overrides `process_inputs` and `process_outputs` accordingly, which map its arguments to
    the values of the placeholders, and the value of the output node to its result: `Interpreter` calls them.
    `additional_globals` returns pairs of a name and a value that the written code uses.

    >>> from retrograd import fx
    >>> class OfList(fx.graph.CodeGen):
    ...     def gen_fn_def(self, free_vars, maybe_return_annotation):
    ...         return f"def forward(self, args):\\n    {', '.join(free_vars)} = args"
    ...
    ...     def process_inputs(self, *inputs):
    ...         return inputs[0]
    >>> module = fx.symbolic_trace(lambda x, y: x - y)
    >>> module.graph.set_codegen(OfList())
    >>> code = module.recompile()
    >>> module([5, 3])
    2
    """

    def __init__(self) -> None:
        self._body_transformer: Transform | None = None

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Return the head of the function for its parameters, each with its annotation and default.

        `maybe_return_annotation` is the text from the arrow on, or empty.
        """
        parameters = free_vars if free_vars[:1] == ["self"] else ["self", *free_vars]
        return f"def forward({', '.join(parameters)}){maybe_return_annotation}:"

    def generate_output(self, output_args: str) -> str:
        """Return the return statement for the text of the result."""
        return f"return {output_args}"

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of the placeholders for arguments of the function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Return the result of the function for the value of the output node."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return the names and values that the code uses besides those of the graph."""
        return []

    def python_code(self, nodes: Iterable[Node], root_module: str = "self") -> PythonCode:
        """Return the code: a line for each operator, with its shape, and the user's line above."""
        return _Writer(list(nodes), self, root_module).code()


class _Code(str):
    """An expression. Its repr is the expression too: overrides of `generate_output` write `repr(output_args)`."""

    __slots__ = ()
    __repr__ = str.__str__


class _Line(str):
    """A line of the function's body, and the node that the line computes."""

    __slots__ = ("node",)
    node: Node | None

    def __new__(cls, text: str, node: Node | None = None) -> "_Line":
        """Return a line with its line break."""
        line = super().__new__(cls, f"{text}\n")
        line.node = node
        return line


class _Writer:
    """Writes one function, line by line."""

    def __init__(self, nodes: list[Node], codegen: CodeGen, root: str) -> None:
        self._nodes = nodes
        self._codegen = codegen
        self._root = root
        self._reserved_names = {root, "ops", *[node.name for node in self._nodes]}
        self._body: list[str] = []
        self._objects: dict[str, Any] = dict(codegen.additional_globals())
        self._last_source_line = ""  # the last user line that was written
        self._freed_after = _freed_values(self._nodes)

    def code(self) -> PythonCode:
        """Return the finished function."""
        inputs = [node for node in self._nodes if node.op == "placeholder"]
        shapes = [f"{node.name}: {node.meta['val']}" for node in inputs if "val" in node.meta]
        if shapes:
            self._body.append(_Line(f"# {_one_line(', '.join(shapes))}"))
        for node in self._nodes:
            self._write(node)
        if not any(node.op in (*CALLS, "output") for node in self._nodes):
            self._body.append(_Line("pass"))
        transform = self._codegen._body_transformer
        body = self._body if transform is None else transform(self._body)
        return self._with_line_map(self._function_header(inputs), body)

    def _function_header(self, inputs: list[Node]) -> str:
        result = self._nodes[-1].type if self._nodes and self._nodes[-1].op == "output" else None
        annotation = "" if result is None else f" -> {self._annotation(result)}"
        parameters = list(self._parameters(inputs))
        if self._root != "self":
            parameters.insert(0, self._root)
        return self._codegen.gen_fn_def(parameters, annotation)

    def _with_line_map(self, head: str, body: list[str]) -> PythonCode:
        """Return the code with the node of each line; lines that a transformation added have no node."""
        index = {node: number for number, node in enumerate(self._nodes)}
        text = [head]
        lines: dict[int, int | None] = {}
        source_lines: dict[int, str] = {}
        module_stacks: dict[int, Any] = {}
        number = head.count("\n") + 1
        for line in body:
            node = getattr(line, "node", None)
            for part in line.splitlines() or [""]:
                number += 1
                text.append(f"    {part}")
                lines[number - PROLOGUE_START] = None if node is None else index.get(node)
                if node is not None and node.op in CALLS:
                    source_lines[number] = node.meta.get("stack_trace", "")
                    module_stacks[number] = node.meta.get("nn_module_stack", {})
        return PythonCode("\n".join([*text, ""]), self._objects, lines, PROLOGUE_START, source_lines, module_stacks)

    def _write(self, node: Node) -> None:
        if node.op in CALLS:
            self._write_source_comment(node)
            freed = self._freed_after.get(node, [])
            ending = f";  del {', '.join(n.name for n in freed)}" if freed else ""
            shape = f"  # {_one_line(node.meta['val'])}" if "val" in node.meta else ""
            self._body.append(_Line(f"{self._statement(node)}{ending}{shape}", node))
        elif node.op == "output":
            result = _Code(self._value(node.args[0]))
            self._body.append(_Line(self._codegen.generate_output(result), node))

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
        annotation = "" if node.type is None else f" : {self._annotation(node.type)}"
        sign = " = " if annotation else "="
        return f"{stars}{node.name}{annotation}" + (f"{sign}{self._value(node.args[0])}" if node.args else "")

    def _write_source_comment(self, node: Node) -> None:
        location = node.meta.get("stack_trace", "")
        if location and location != self._last_source_line:
            self._body.append(_Line(f"# {_one_line(PurePath(location).name)}"))
            self._last_source_line = location

    def _statement(self, node: Node) -> str:
        """Return the assignment of a node's result; for Python's in-place operators, after their statement."""
        first = node.args[0] if node.op == "call_function" and node.args and not node.kwargs else None
        if not isinstance(first, Node) or not is_hashable(node.target):
            return f"{node.name} = {self._call(node)}"
        if node.target is operator.setitem and len(node.args) == 3:
            owner, key, value = map(self._value, node.args)
            return f"{owner}[{key}] = {value};  {node.name} = {owner}"
        sign = INPLACE_SYMBOLS.get(node.target)
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
            return f"{_attribute(node.target, self._root)}({', '.join(arguments + named)})"
        if node.op == "call_method":
            return f"{_as_primary(node.args[0], arguments[0])}.{node.target}({', '.join(arguments[1:] + named)})"
        expression = None if isinstance(node.target, Op) or named else _operator_expression(node, arguments)
        return expression or f"{self._function(node.target)}({', '.join(arguments + named)})"

    def _function(self, target: Any) -> str:
        # The Function of a user is not in the registry, so `ops.name` would not find it.
        if isinstance(target, FunctionOp) or (not isinstance(target, Op) and not hasattr(target, "name")):
            return self._add_global(target, getattr(target, "__name__", ""))
        name = target.name
        return f"ops.{name}" if name.isidentifier() and not keyword.iskeyword(name) else f"ops[{name!r}]"

    def _value(self, value: Any) -> str:
        """Return a value as an expression; values without a literal become globals of the function."""
        if isinstance(value, Node):
            return _attribute(value.target, self._root) if value.op == "get_attr" else value.name
        if type(value) in _WRITERS:
            return _WRITERS[type(value)](self, value)
        if isinstance(value, DType):
            return repr(str(value))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return f"{self._add_global(type(value), type(value).__name__)}({self._join_values(value)})"
        return self._add_global(value)

    def _annotation(self, annotation: Any) -> str:
        """Return an annotation as an expression, in which classes are globals of the function."""
        if isinstance(annotation, str) or annotation is ...:
            return "..." if annotation is ... else repr(annotation)
        inner, origin = typing.get_args(annotation), typing.get_origin(annotation)
        if isinstance(origin, type) and not hasattr(annotation, "__args__"):
            return self._named(origin)  # typing.List
        if isinstance(origin, type) and origin is not types.UnionType and not any(isinstance(m, list) for m in inner):
            generic = getattr(typing, getattr(annotation, "_name", None) or "", origin)
            return f"{self._named(generic)}[{','.join(map(self._annotation, inner)) or '()'}]"
        return self._named(annotation)

    def _named(self, annotation: Any) -> str:
        """Return the name of an annotation, which is a global of the function unless Python has it."""
        public_name = annotation.__name__ if isinstance(annotation, type) else ""
        if public_name and getattr(package(), public_name, None) is annotation:
            return f"{self._add_global(package(), package().__name__)}.{public_name}"
        name = type_text(annotation).removeprefix("retrograd.").replace(".", "_")
        return name if getattr(builtins, name, None) is annotation else self._add_global(annotation, name)

    def _join_values(self, values: Any) -> str:
        return ", ".join(map(self._value, values))

    def _dict_item(self, item: tuple) -> str:
        return ": ".join(map(self._value, item))

    def _add_global(self, value: Any, name: str = "") -> str:
        for taken, known in self._objects.items():
            if known is value:
                return taken
        name = next(filter(str.isidentifier, (name, repr(value))), f"_{type(value).__name__.lower()}")
        while name in self._reserved_names or name in self._objects or keyword.iskeyword(name):
            name += "_"
        self._objects[name] = value
        return name


_WRITERS: dict[type, Any] = {
    **dict.fromkeys((type(None), bool, int, str, bytes), lambda writer, v: repr(v)),
    type(...): lambda writer, v: "...",
    float: lambda writer, v: repr(v) if v - v == 0 else f"float({str(v)!r})",
    complex: lambda writer, v: f"complex({writer._value(v.real)}, {writer._value(v.imag)})",
    tuple: lambda writer, v: f"({writer._join_values(v)}{',' * (len(v) == 1)})",
    **dict.fromkeys((list, immutable_list), lambda writer, v: f"[{writer._join_values(v)}]"),
    **dict.fromkeys((dict, immutable_dict), lambda writer, v: f"{{{', '.join(map(writer._dict_item, v.items()))}}}"),
    slice: lambda writer, v: f"slice({writer._join_values((v.start, v.stop, v.step))})",
}


def _as_operand(value: Any, text: str) -> str:
    """Return an expression that can be an operand."""
    return text if isinstance(value, Node) or (isinstance(value, int | float) and text[0].isdigit()) else f"({text})"


def _as_primary(value: Any, text: str) -> str:
    """Return an expression whose attribute or method can be accessed."""
    return text if isinstance(value, Node) else f"({text})"


def _operator_expression(node: Node, arguments: list[str]) -> str:
    """Return a call in Python's operator syntax, if there is one."""
    target, args = node.target, node.args
    if target is getattr and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
        return "" if keyword.iskeyword(args[1]) else f"{_as_primary(args[0], arguments[0])}.{args[1]}"
    form = OPERATOR_SYNTAX.get(target, "") if is_hashable(target) else ""
    if form.count("{") != len(args):
        return ""
    if target is operator.getitem:
        return form.format(_as_primary(args[0], arguments[0]), arguments[1])
    return form.format(*map(_as_operand, args, arguments))


def is_hashable(target: Any) -> bool:
    """Return whether a target can be looked up in a table."""
    return getattr(type(target), "__hash__", None) is not None


def _one_line(note: Any) -> str:
    """Return a note as a one-line comment: a line break would end the comment, and the rest would run."""
    return " ".join(str(note).split())


def _attribute(target: str, root: str) -> str:
    """Return `self.layer.weight`; parts that are no identifiers, as in a Sequential, use getattr."""
    text = root
    for part in target.split("."):
        plain = part.isidentifier() and not keyword.iskeyword(part)
        text = f"{text}.{part}" if plain else f"getattr({text}, {part!r})"
    return text


def _freed_values(nodes: list[Node]) -> dict[Node, list[Node]]:
    """Return for each node the values that are not used after it, so that their memory is freed at once."""
    last: dict[Node, Node] = {}
    for node in nodes:
        for used in node.all_input_nodes:
            last[used] = node
    freed: dict[Node, list[Node]] = {}
    for used, user in last.items():
        # Inputs belong to the caller and attributes to the module; only results of calls are freed.
        if used.op in CALLS:
            freed.setdefault(user, []).append(used)
    return freed
