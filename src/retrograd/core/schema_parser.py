"""The parser of schemas: `(Tensor x, Tensor(a!)[] ys, *, int n=2, float[] s=[1.0]) -> (Tensor, Tensor[])`."""

import ast
import re
from functools import cache

from retrograd.core.errors import OperandValueError
from retrograd.core.schema import CONVERT, REQUIRED, Parameter, Schema

# PyTorch's names of types, and the names used here.
SYNONYMS = {
    "SymInt": "int", "Scalar": "number", "ScalarType": "dtype", "Device": "device", "Layout": "any",
    "MemoryFormat": "any",
}  # fmt: skip
C_TYPES = {"int64_t": "SymInt` or `int", "double": "float"}  # and the types of schemas for them
PARAMS = ("int", "float", "bool", "str", "number", "dtype", "device", "any")
TYPES = {"Tensor", "dims", *PARAMS}
LISTS = ("Tensor", "int", "float", "bool", "str", "number", "dtype", "any")  # types that may be in lists
WORDS = ("dtype", "device", "float", "number", "any")  # types whose values may be words: float32, inf, cpu
CONSTANTS = ("None", "True", "False")
BRACKETS = {"[": "]", "(": ")"}  # around the values of a list
OPERATOR_NAME = re.compile(r"\s*([\w.:]*)\s*(\(?)")  # and the bracket behind it
TYPE_AND_NAME = re.compile(r"(.*\W)([^\W\d]\w*)\s*", re.DOTALL)  # of an argument
# One argument, which may have commas in brackets and quotes, and the character behind it.
ARGUMENT = re.compile(
    r"""\s*((?:[^,()[\]'"]++|\([^()]*+\)|\[[^[\]]*+\]|'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")*+)([,)]?)"""
)

# Half of the operators have the arguments and the results of another one, and most arguments occur in many operators:
# "Tensor x", "int dim=-1".  So importing the library parses each only once.
_known = {}  # (class of the schema, its text after the name) -> schema


class _SyntaxError(Exception):
    """The expected syntax, and a position in the text."""


class Reader:
    """The tokens of a part of a schema, read from left to right."""

    TOKEN = re.compile(
        r"""->|\.\.\.|-?inf\b|[A-Za-z_]\w*(?:\.\w+)*|-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"""
        r"""|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\S"""
    )

    def __init__(self, text):
        self.text = text
        self.tokens = [*self.TOKEN.findall(text), ""]
        self.index = 0

    def peek(self):
        """Return the next token, "" at the end."""
        return self.tokens[self.index]

    def take(self):
        """Consume and return the next token."""
        self.index += 1
        return self.tokens[self.index - 1]

    def accept(self, token):
        """Consume this token if it is the next; return whether it was."""
        found = self.tokens[self.index] == token
        self.index += found
        return found

    def expect(self, token, why=""):
        """Consume this token; raise if it is not the next."""
        if not self.accept(token):
            self.fail(f"expected {token!r}{why}")

    def position(self, index):
        """Return the position of a token in the text."""
        return [*(found.start() for found in self.TOKEN.finditer(self.text)), len(self.text)][index]

    def fail(self, what, index=None):
        """Raise at a token, by default the next."""
        raise _SyntaxError(what, self.position(self.index if index is None else index))


def parse(text, kind=Schema):
    """Parse a schema, with or without a name; a ValueError, which is a RuntimeError too, shows the column.

    >>> str(parse("scale(Tensor x, SymInt[] n=[1, 2], *, float by=2) -> (Tensor, Tensor[])"))
    'scale(Tensor x, int[] n=[1, 2], *, float by=2.0) -> (Tensor, Tensor[])'
    """
    head = OPERATOR_NAME.match(text)
    name, bracket = head.groups()
    parts = _Parts(text, head.end())
    try:
        if not bracket:
            raise _SyntaxError("expected '('", 0)
        known = _known.get((kind, text[parts.start :]))
        if known is None:
            key = kind, text[parts.start :]
            known = _known[key] = kind(
                name, parts.parameters(kind.reserved), *parts.results(kind.has_alias_annotations)
            )
        return known if known.name == name else known.renamed(name)
    except _SyntaxError as error:
        what, at = error.args
    rest = text[parts.start + at :].lstrip()
    column, got = len(text) - len(rest), Reader(rest).peek() or "the end"
    raise OperandValueError(f"schema, column {column + 1}: {what}, got {got!r}\n  {text}\n  {' ' * column}^")


class _Parts:
    """The parts of a schema after its name, parsed from left to right; `start` is the position of the current one."""

    def __init__(self, text, start):
        self.text = text
        self.start = start
        self.marked = {}  # the names of arguments by their marks: {"a!": "x"} for `Tensor(a!) x`

    def parameters(self, reserved):
        """Return the declared arguments, whose names must be none of the reserved ones."""
        parameters, names, starred, end = [], {*reserved}, False, ","
        while end == ",":
            found = ARGUMENT.match(self.text, self.start)
            part, end = found.groups()
            self.start = found.start(1)
            if part == "*" and not starred:
                starred = True
            elif part or parameters or starred or end != ")":  # () has none
                parameter, mark = _parameter(part, starred)
                if parameter.name in names:
                    _fail_at_name(part, "expected another name: this one is taken")
                if parameter.default is REQUIRED and parameters and parameters[-1].default is not REQUIRED:
                    _check_order(part, parameters[-1], parameter)
                parameters.append(parameter)
                names.add(parameter.name)
                self.marked[mark] = parameter.name
            self.start = found.end()
        if end != ")":
            raise _SyntaxError("expected ','", 0)
        return tuple(parameters)

    def results(self, marked_allowed):
        """Return the type of the result, or a tuple of types, the names of several results, and the aliases.

        An alias is a pair: the index of a marked result, and the name of the argument with the same mark.
        """
        results, names, marks = _results(self.text[self.start :])
        for _, mark, at in marks:
            if not marked_allowed or mark not in self.marked:
                raise _SyntaxError("expected no mark, or one that an argument has", at)
        return results, names, tuple([(index, self.marked[mark]) for index, mark, _ in marks])


def _fail_at_name(part, what):
    raise _SyntaxError(what, TYPE_AND_NAME.fullmatch(part.partition("=")[0]).start(2))


def _check_order(part, before, parameter):
    """Raise for an argument without default after one that has one, unless it is keyword-only or variadic."""
    if not parameter.keyword_only and parameter.type != "int...":
        _fail_at_name(part, f"expected a default: {before.name!r} has one, and so must what follows")


@cache
def _parameter(part, keyword_only):
    """Return one declared argument, and its mark."""
    declared, equals, default = part.partition("=")
    found = TYPE_AND_NAME.fullmatch(declared)
    if not found:
        _type(declared)
        raise _SyntaxError("expected the name of an argument", len(declared))
    kind, mark = _type(found[1])
    try:
        value = _default(kind, default) if equals else REQUIRED
    except _SyntaxError as error:
        what, at = error.args
        raise _SyntaxError(what, len(declared) + 1 + at) from None
    return Parameter(found[2], kind, value, keyword_only, mark.endswith("!")), mark


@cache
def _type(text):
    """Return a type and its mark."""
    reader = Reader(text)
    found = _read_type(reader)
    if reader.peek().isidentifier():  # the name, and text behind it
        reader.take()
        reader.fail("expected ','")
    if reader.peek():
        reader.fail("expected the name of an argument")
    return found


def _read_type(reader):
    base = SYNONYMS.get(reader.peek(), reader.peek())
    if base not in TYPES:
        reader.fail(f"expected a type, one of Tensor, {', '.join(PARAMS)} ({_unknown_type(base)})")
    reader.take()
    if base == "int" and reader.accept("..."):
        return "int...", ""
    if base != "Tensor" and reader.peek() == "(":
        reader.fail("expected no mark of memory, as a mark only supports Tensor arguments")
    mark = _mark(reader) if base == "Tensor" and reader.accept("(") else ""
    kind = base + "?" * reader.accept("?")
    at = reader.index
    if reader.accept("["):
        if base not in LISTS or kind not in (base, "Tensor?"):
            reader.fail(f"expected no list: of {kind} there is none", at)
        reader.expect("]", ", as a list may have any length")
        kind += "[]" + "?" * reader.accept("?")
    return kind, mark


def _unknown_type(name):
    if name in C_TYPES:
        return f"Use `{C_TYPES[name]}` instead of `{name}` in an operator's schema string"
    return "unknown type specifier"


def _mark(reader):
    """Parse the parentheses of `Tensor(a!)`: the name of memory, and "!" if that is written to."""
    if not reader.peek().isidentifier():
        reader.fail("expected a name, as in Tensor(a!)")
    name = reader.take()
    written = reader.accept("!")
    reader.expect(")")
    return name + "!" * written


@cache
def _default(kind, text):
    """Parse a default; the value for a list of integers may be one integer, which is kept."""
    reader = Reader(text)
    value = _literal(reader, kind)
    if reader.peek():
        reader.fail("expected ','")
    if value is None and "?" in kind:
        return None
    if kind == "Tensor[]" and value in ((), []):  # tensors themselves can't be written in a schema
        return ()
    if value is None and kind != "any":  # which NumPy takes for the dtype float64
        reader.fail(f"expected a default that {kind} can have", 0)
    try:
        converted = CONVERT[kind.rstrip("?")](value)
    except (KeyError, TypeError, ValueError, AttributeError):
        reader.fail(f"expected a default that {kind} can have", 0)
    return value if kind.startswith("int[]") and type(value) is int else converted


def _literal(reader, kind):
    if closing := BRACKETS.get(reader.peek()):
        return _values(reader, kind, closing)
    token = reader.peek()
    if token in ("inf", "-inf", "nan") and kind.startswith(("float", "number")):
        return float(reader.take())
    if token.isidentifier() and kind.startswith(WORDS) and token not in CONSTANTS:
        return reader.take()
    try:
        value = ast.literal_eval(token)
    except (ValueError, SyntaxError):
        reader.fail("expected a default: a number, a string, a list of them, True, False or None")
    reader.take()
    return value


def _values(reader, kind, closing):
    reader.take()
    values = []
    while not reader.accept(closing):
        if values:
            reader.expect(",")
        values.append(_literal(reader, kind))
    return tuple(values)


@cache
def _results(text):
    """Parse `-> Tensor`."""
    reader = Reader(text)
    reader.expect("->")
    names, marks = [], []
    results = _result(reader, names, marks)
    if reader.peek():
        reader.fail("expected the end")
    return results, tuple(names) if isinstance(results, tuple) and len(names) == len(results) else (), tuple(marks)


def _result(reader, names, marks, index=()):
    """Parse a result: a type and possibly a name, or a tuple of results.

    The marks of results are appended to `marks`: index, mark, position in the text; results in nested tuples have none.
    """
    if not reader.accept("("):
        return _single(reader, names, marks, index)
    found = []
    while not reader.accept(")"):
        found.append(_result(reader, names, marks, (*index, len(found))))
        if reader.peek() == ")" and len(found) == 1:  # (Tensor) is Tensor, (Tensor,) a tuple
            reader.take()
            return found[0]
        if reader.peek() != ")":
            reader.expect(",")
    return tuple(found)


def _single(reader, names, marks, index):
    at = reader.index
    kind, mark = _read_type(reader)
    if mark:
        if len(index) > 1:
            reader.fail("expected no mark in a nested tuple", at)
        marks.append((sum(index), mark, reader.position(at)))
    if reader.peek().isidentifier():
        names.append(reader.take())
    return kind
