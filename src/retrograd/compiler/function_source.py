"""The syntax tree of a function, and functions made from changed trees with the same globals and closure."""

import ast
import copy
import linecache
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_FUTURE = 0x1FF0000  # the flags of code that `from __future__ import` sets
_parsing = threading.RLock()  # Python 3.11 counts the depth of trees for all threads together: SystemError


@dataclass(frozen=True)
class FunctionSource:
    """A function of Python, its definition with the lines of its file, and the variables of functions around it."""

    function: types.FunctionType
    tree: ast.FunctionDef
    cells: dict[str, types.CellType]

    @property
    def local_names(self) -> frozenset[str]:
        """The names of the parameters and other local variables."""
        code = self.function.__code__
        return frozenset(code.co_varnames + code.co_cellvars)

    @property
    def parameters(self) -> frozenset[str]:
        """The names of the parameters."""
        return frozenset([node.arg for node in ast.walk(self.tree.args) if isinstance(node, ast.arg)])

    def make_functions(self, trees: list[ast.FunctionDef], cells: dict[str, types.CellType]) -> list["FunctionSource"]:
        """Return functions that are defined next to this one, and see `cells` too; the first has its defaults."""
        cells = {**self.cells, **cells}
        code = self.function.__code__
        found = _compile_inside(trees, list(cells), code.co_filename, code.co_flags & _FUTURE)
        made = []
        for tree, inner in zip(trees, found, strict=True):
            inner = inner.replace(co_name=code.co_name, co_qualname=code.co_qualname)
            closure = tuple([cells[name] for name in inner.co_freevars])
            function = types.FunctionType(inner, self.function.__globals__, code.co_name, None, closure)
            made.append(FunctionSource(function, tree, cells))
        first = made[0].function
        first.__defaults__, first.__kwdefaults__ = self.function.__defaults__, self.function.__kwdefaults__
        return made


def read_source(function: Callable[..., Any]) -> FunctionSource | None:
    """Return the source of a function of Python; None if it is not found, or is another one than the function's.

    >>> read_source(len) is None
    True
    """
    if not isinstance(function, types.FunctionType):
        return None
    code = function.__code__
    try:
        with _parsing:
            module = ast.parse("".join(linecache.getlines(code.co_filename, function.__globals__)))
        whole = compile(module, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
    except (SyntaxError, ValueError, SystemError):  # the last where other code parses in another thread
        return None
    if not any(_is_same(found, code) for found in _codes(whole, code)):
        return None
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    for tree in ast.walk(module):
        if isinstance(tree, ast.Lambda) and tree.lineno == code.co_firstlineno and _is_at(tree.body, code):
            body = ast.copy_location(ast.Return(tree.body), tree.body)
            tree = ast.copy_location(ast.FunctionDef("<lambda>", tree.args, [body], [], None, None), tree)
        if isinstance(tree, ast.FunctionDef) and tree.name == code.co_name and _first_line(tree) == code.co_firstlineno:
            if code.co_argcount:
                tree.body = [_SuperCalls(code.co_varnames[0]).visit(statement) for statement in tree.body]
            return FunctionSource(function, tree, cells)
    return None


class _SuperCalls(ast.NodeTransformer):
    """Replaces `super()` by `super(__class__, self)`, which does the same in a part of the function."""

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def visit(self, node: ast.AST) -> Any:
        """Return code with other calls."""
        match node:
            case ast.FunctionDef() | ast.Lambda():
                return node
            case ast.Call(ast.Name("super"), [], []):
                found: list[ast.expr] = [ast.Name("__class__", ast.Load()), ast.Name(self._owner, ast.Load())]
                return ast.fix_missing_locations(ast.copy_location(ast.Call(node.func, found, []), node))
        return self.generic_visit(node)


def _is_at(body: ast.expr, code: types.CodeType) -> bool:
    """Return whether the instructions of code are those of an expression."""
    found = [place for place in code.co_positions() if place[2:] != (0, 0) and None not in place]
    first, last = min(p[::2] for p in found), max(p[1::2] for p in found)
    return (first, last) == ((body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset))


def _is_same(one: types.CodeType, other: types.CodeType) -> bool:
    fields = ("co_code", "co_consts", "co_names", "co_varnames")
    return all(getattr(one, name) == getattr(other, name) for name in fields)


def _codes(whole: types.CodeType, like: types.CodeType) -> Iterator[types.CodeType]:
    """Yield the code of functions with the name and line of another one, wherever they are defined."""
    for code in whole.co_consts:
        if isinstance(code, types.CodeType):
            if (code.co_name, code.co_firstlineno) == (like.co_name, like.co_firstlineno):
                yield code
            yield from _codes(code, like)


def _first_line(tree: ast.FunctionDef) -> int:
    return min([tree.lineno, *[decorator.lineno for decorator in tree.decorator_list]])


def _compile_inside(trees: list[ast.FunctionDef], names: list[str], file: str, flags: int) -> list[types.CodeType]:
    """Return the code of functions inside one that has variables of the given names."""
    with _parsing:
        outer = ast.parse("def outer(): pass")
    around = outer.body[0]
    assert isinstance(around, ast.FunctionDef)
    targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
    bare = [_without_values(tree, f"_function_{i}") for i, tree in enumerate(trees)]
    around.body = [*([ast.Assign(targets, ast.Constant(None))] if targets else []), *bare]
    ast.fix_missing_locations(outer)
    code = compile(outer, file, "exec", flags=flags, dont_inherit=True)
    while code.co_name != "outer":
        code = next(c for c in code.co_consts if isinstance(c, types.CodeType))
    return [c for c in code.co_consts if isinstance(c, types.CodeType)]


def _without_values(tree: ast.FunctionDef, name: str) -> ast.FunctionDef:
    """Return a definition with another name, without defaults and annotations, of which its code is free."""
    args = copy.deepcopy(tree.args)
    args.defaults, args.kw_defaults = [], [None] * len(args.kwonlyargs)
    for node in ast.walk(args):
        if isinstance(node, ast.arg):
            node.annotation = None
    fields = {"name": name, "args": args, "decorator_list": [], "returns": None}
    return ast.FunctionDef(**{**vars(tree), **fields})
