"""The parser of schemas: `(Tensor x, Tensor[] ys, *, int n=2, float[] s=[1.0]) -> (Tensor, Tensor[])`."""

import ast
import re
from typing import Any, NoReturn

from retrograd.core.schema import CONVERT, REQUIRED, Parameter
from retrograd.library.schema import RESERVED, CustomSchema, Returns

# PyTorch's names of types, and the names used here.
SYNONYMS = {"SymInt": "int", "Scalar": "number", "ScalarType": "dtype", "Device": "any", "Layout": "any"}
PARAMS = ("int", "float", "bool", "str", "number", "dtype", "any")
LISTS = ("Tensor", "int", "float", "bool", "str", "number")  # types that may be in lists
WORDS = ("dtype", "float", "number", "any")  # types whose values may be words: float32, inf, cpu


class Reader:
    """A tokenizer that reads a schema from left to right; its errors show the column."""

    TOKEN = re.compile(
        r"""\s*(->|-?inf\b|[A-Za-z_][\w.]*(?:::[\w.]+)?|-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"""
        r"""|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\S)"""
    )

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        """Return the next token, "" at the end."""
        found = self.TOKEN.match(self.text, self.at)
        return found[1] if found else ""

    def take(self) -> str:
        """Consume and return the next token."""
        found = self.TOKEN.match(self.text, self.at)
        if not found:
            self.fail("the schema ends too early")
        self.at = found.end()
        return found[1]

    def expect(self, token: str, why: str = "") -> None:
        """Consume this token; raise if it is not the next."""
        if not self.accept(token):
            self.fail(f"expected {token!r}{why}")

    def accept(self, token: str) -> bool:
        """Consume this token if it is the next; return whether it was."""
        found = self.peek() == token
        if found:
            self.take()
        return found

    def fail(self, what: str, at: int | None = None) -> NoReturn:
        """Raise a ValueError with the column, counted from 1, and a mark below it."""
        self.at = self.at if at is None else at
        column = len(self.text) - len(self.text[self.at :].lstrip())
        token = self.peek() or "the end"
        raise ValueError(f"schema, column {column + 1}: {what}, got {token!r}\n  {self.text}\n  {' ' * column}^")


def read(text: str) -> CustomSchema:
    """Parse a schema, with or without a name; a ValueError shows the column of the error.

    >>> str(read("scale(Tensor x, SymInt[] n=[1, 2], *, float by=2) -> (Tensor, Tensor[])"))
    'scale(Tensor x, int[] n=[1, 2], *, float by=2.0) -> (Tensor, Tensor[])'
    """
    reader = Reader(text)
    name = "" if reader.peek() == "(" else reader.take()
    reader.expect("(")
    parameters, mutated = _parameters(reader)
    reader.expect("->")
    results = _results(reader)
    if reader.peek():
        reader.fail("expected the end")
    return CustomSchema(name, parameters, results, mutated)


def _parameters(reader: Reader) -> tuple[tuple[Parameter, ...], tuple[str, ...]]:
    parameters: list[Parameter] = []
    mutated: list[str] = []
    starred = False
    while not reader.accept(")"):
        if parameters or starred:
            reader.expect(",")
        if not starred and reader.accept("*"):
            starred = True
            continue
        kind, is_mutated = _type(reader)
        parameters.append(_parameter(reader, kind, starred, parameters))
        mutated += [parameters[-1].name] if is_mutated else []
    return tuple(parameters), tuple(mutated)


def _parameter(reader: Reader, kind: str, starred: bool, known: list[Parameter]) -> Parameter:
    at, name = reader.at, reader.peek()
    if not name.isidentifier():
        reader.fail("expected the name of an argument")
    if name in [p.name for p in known] or name in RESERVED:
        reader.fail("expected another name: this one is taken")
    reader.take()
    default = _default(reader, kind) if reader.accept("=") else REQUIRED
    if default is REQUIRED and not starred and known and known[-1].default is not REQUIRED:
        reader.fail(f"expected a default: {known[-1].name!r} has one, and so must what follows", at)
    return Parameter(name, kind, default, starred)


def _type(reader: Reader) -> tuple[str, bool]:
    """Parse a type and whether it is marked as mutated."""
    base = SYNONYMS.get(reader.peek(), reader.peek())
    if base != "Tensor" and base not in PARAMS:
        reader.fail(f"expected a type, one of Tensor, {', '.join(PARAMS)}")
    reader.take()
    is_mutated = base == "Tensor" and reader.accept("(") and _mark(reader)
    kind = base + "?" * reader.accept("?")
    at = reader.at
    if reader.accept("["):
        if base not in LISTS or kind not in (base, "Tensor?"):
            reader.fail(f"expected no list: of {kind} there is none", at)
        reader.expect("]", ", as a list may have any length")
        kind += "[]" + "?" * reader.accept("?")
    return kind, is_mutated


def _mark(reader: Reader) -> bool:
    """Parse the parentheses of `Tensor(a!)`: an alias name, and whether the memory is written to."""
    if not reader.peek().isidentifier():
        reader.fail("expected a name, as in Tensor(a!)")
    reader.take()
    written = reader.accept("!")
    reader.expect(")")
    return written


def _default(reader: Reader, kind: str) -> Any:
    at = reader.at
    value = _literal(reader, kind)
    if value is None and "?" in kind:
        return None
    try:
        convert: Any = CONVERT[kind.rstrip("?")]
        return convert(value)
    except (KeyError, TypeError, ValueError, AttributeError):
        reader.fail(f"expected a default that {kind} can have", at)


def _literal(reader: Reader, kind: str) -> Any:
    if reader.accept("["):
        values: list = []
        while not reader.accept("]"):
            if values:
                reader.expect(",")
            values.append(_literal(reader, kind))
        return values
    token = reader.peek()
    if token in ("inf", "-inf", "nan") and kind.startswith(("float", "number")):
        return float(reader.take())
    if token.isidentifier() and kind.startswith(WORDS) and token not in ("None", "True", "False"):
        return reader.take()
    try:
        value = ast.literal_eval(token)
    except (ValueError, SyntaxError):
        reader.fail("expected a default: a number, a string, a list of them, True, False or None")
    reader.take()
    return value


def _results(reader: Reader) -> Returns:
    if not reader.accept("("):
        return _result(reader)
    found: list = []
    while not reader.accept(")"):
        found.append(_results(reader))
        if reader.peek() == ")" and len(found) == 1:  # (Tensor) is Tensor, (Tensor,) a tuple
            reader.take()
            return found[0]
        if reader.peek() != ")":
            reader.expect(",")
    return tuple(found)


def _result(reader: Reader) -> str:
    at = reader.at
    kind, _ = _type(reader)
    if "(" in reader.text[at : reader.at]:
        reader.fail("expected no mark: what an operator returns is new, and shows no argument's memory", at)
    if reader.peek().isidentifier():  # a name
        reader.take()
    return kind
