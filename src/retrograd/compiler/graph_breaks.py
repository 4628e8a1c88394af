"""Graph breaks: a function that cannot be captured as a whole runs statement by statement, with parts compiled.

Parts are runs of statements between those that no program can replace.  Each becomes a function of the variables that
it reads, which returns those that the rest of the code needs; the function itself calls these instead.
"""

import ast
import copy
import functools
import types
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from retrograd.compiler.function_source import FunctionSource
from retrograd.compiler.moved_operands import (
    MovedOut,
    TakenCall,
    computes,
    is_call,
    position,
    reads_value,
    with_fields,
)
from retrograd.compiler.surroundings import MUTATIONS, is_imported
from retrograd.compiler.variable_uses import (
    COMPREHENSIONS,
    FUNCTIONS,
    NO_NAMES,
    captured_names,
    changed_names,
    deleted_names,
    inside,
    own_names,
    read_names,
    uses_of,
)

CALLEE = "<callee>"  # the variable of the function that returns what is called in place of an object
_EFFECTS = {"print", "input", "open"}
_UNKNOWN_NAMES = {"locals", "vars", "dir", "eval", "exec"}
_UNKNOWN_KINDS = (ast.Await, ast.AsyncFor, ast.AsyncWith, ast.ClassDef)
_OF_OTHERS = (ast.NamedExpr, ast.Nonlocal)  # in functions inside and comprehensions they may assign variables around
_YIELDS = (ast.Yield, ast.YieldFrom)
# The operand of an expression that is evaluated first.
_FIRST = {ast.Compare: "left", ast.BinOp: "left", ast.UnaryOp: "operand", ast.Attribute: "value",
          ast.Subscript: "value", ast.Call: "func", ast.IfExp: "test"}  # fmt: skip
_COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)


@dataclass(frozen=True)
class Breaks:
    """Lines of a function that no program can replace, and calls that lead to such lines, by their positions.

    With `changes_objects`, also the statements that may change an object in place. `positions` are those of the
    expressions on the lines, as far as they are known.
    """

    lines: frozenset[int] = frozenset()
    calls: frozenset[tuple] = frozenset()
    changes_objects: bool = False
    positions: frozenset[tuple] = frozenset()


def split_function(
    source: FunctionSource, breaks: Breaks, compile_part: Callable[[FunctionSource, str], Any], callee: Any
) -> tuple[types.FunctionType, dict[str, types.CellType]] | None:
    """Return a function that runs statements with breaks as they are, and calls compiled parts in place of others.

    `compile_part(source, lines)` returns what is called for a part, and is the value of a cell. `callee(f)` returns
    what the statements call in place of `f`; it is the value of the cell CALLEE. The cells are returned too. None if
    nothing would be compiled, or the code may look at its variables in ways that parts would change.
    """
    if any(_is_unknown(node) for statement in source.tree.body for node in ast.walk(statement)):
        return None
    splitter = _Splitter(source, breaks)
    body = splitter.split(source.tree.body, source.parameters, is_loop=False)
    if not (splitter.parts or splitter.has_calls) or not splitter.has_breaks:
        return None
    cells = {CALLEE: types.CellType(callee), **{name: types.CellType() for name in splitter.parts}}
    # Variables that only parts assign stay variables of the function: an assignment that never runs names all of them.
    naming = ast.Assign([_names(sorted(source.local_names), ast.Store())], ast.Constant(None))
    never = ast.If(ast.Constant(False), [naming], [])
    main = with_fields(source.tree, body=[*body, ast.fix_missing_locations(ast.copy_location(never, body[-1]))])
    made, *parts = source.make_functions([main, *splitter.parts.values()], cells)
    for name, part in zip(splitter.parts, parts, strict=True):
        first, last = part.tree.body[0].lineno, part.tree.body[-1].lineno
        lines = f"line {first}" if first == last else f"lines {first} to {last}"
        cells[name].cell_contents = compile_part(part, lines)
    return made.function, cells


def _is_unknown(node: ast.AST) -> bool:
    """Return whether code may look at its variables by name or change those of others, or is no plain function."""
    if isinstance(node, ast.Attribute) and node.attr.startswith("__") and not node.attr.endswith("__"):
        return True  # its name depends on the class around
    if isinstance(node, (*FUNCTIONS, *COMPREHENSIONS)) and _has(node, _OF_OTHERS):
        return True
    return isinstance(node, _UNKNOWN_KINDS) or (isinstance(node, ast.Name) and node.id in _UNKNOWN_NAMES)


def _has(tree: ast.AST, kinds: tuple[type, ...]) -> bool:
    return any(isinstance(node, kinds) for node in ast.walk(tree))


def _field(statement: ast.stmt, without: tuple[type, ...] = (*_YIELDS, ast.NamedExpr)) -> str:
    """Return the name of the expression that a statement evaluates first; "" if it has none, or one of some kinds."""
    match statement:
        case ast.If() | ast.Match():
            name = "test" if isinstance(statement, ast.If) else "subject"
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Expr() | ast.Return():
            name = "value"
        case _:
            return ""
    value = getattr(statement, name)
    return "" if value is None or _has(value, without) else name


def _reads_target(statement: ast.stmt, assigned: frozenset[str]) -> bool:
    """Return whether a statement first reads what its value may change, or a variable that may have no value."""
    if not isinstance(statement, ast.AugAssign):
        return False
    return not (isinstance(statement.target, ast.Name) and statement.target.id in assigned)


def _loads(body: Iterable[ast.AST]) -> Counter[str]:
    """Return how often code reads each name, also in functions inside."""
    found: Counter[str] = Counter()
    for node in (node for tree in body for node in ast.walk(tree)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found[node.id] += 1
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] += 1
    return found


class _Splitter:
    """The parts of one function."""

    def __init__(self, source: FunctionSource, breaks: Breaks) -> None:
        self.parts: dict[str, ast.FunctionDef] = {}  # by the names that the function calls them by
        self.has_breaks = self.has_calls = False
        self._tree, self._changes_objects = source.tree, breaks.changes_objects
        self._calls = breaks.calls & set(map(position, ast.walk(source.tree)))
        self._lines = breaks.lines | {line for line, *_ in breaks.calls - self._calls if line is not None}
        self._positions = breaks.positions
        self._numbers_read = NO_NAMES.union(*map(self._read_numbers, ast.walk(source.tree)))
        self._locals = set(source.local_names)
        self._values: set[str] = set()  # variables that statements made here read, most of them new
        self._moved: set[ast.stmt] = set()  # their assignments
        self._unbroken: set[ast.stmt] = set()  # made here, without a break although another one is on their lines
        self._loads = _loads(source.tree.body)
        declared = [node for node in ast.walk(source.tree) if isinstance(node, ast.Global | ast.Nonlocal)]
        self._globals = {name for node in declared for name in node.names}
        self._counters = NO_NAMES.union(*map(_counters, ast.walk(source.tree)))
        self._numbers = self._counters.union(*map(_numbers, ast.walk(source.tree)))
        # variables that functions inside read, after they may have changed
        self._shared = _reassigned(source) & captured_names(ast.Module(source.tree.body, [])) | _assigned_late(source)

    def split(self, body: list[ast.stmt], assigned: frozenset[str], is_loop: bool) -> list[ast.stmt]:
        """Return the statements with parts in place of those that can be compiled.

        `assigned` are the variables that have a value before.
        """
        made: list[ast.stmt] = []
        run: list[ast.stmt] = []
        pending = [*body]
        while pending:
            statement = pending.pop(0)
            taken = self._take_assignment(statement) or self._take_call(statement, assigned | uses_of(run).assigned)
            if taken:
                pending[:0] = taken
                continue
            if not self._must_stay(statement, is_loop):
                run.append(statement)
                continue
            self.has_breaks = True
            computed, stays = self._move_out(statement, assigned | uses_of(run).assigned)
            run += computed
            made += self._make_part(run, assigned, is_loop)
            assigned |= uses_of(run).assigned
            made.append(self._split_inside(stays, assigned, is_loop))
            assigned = (assigned | uses_of([stays]).assigned) - deleted_names(stays)
            run = []
        return made + self._make_part(run, assigned, is_loop)

    # ---------------------------------------------------------------------------------- statements that stay

    def _must_stay(self, statement: ast.stmt, is_loop: bool) -> bool:
        """Return whether a statement cannot be in a part."""
        if statement in self._moved:
            return False
        if self._is_at_break(statement) and statement not in self._unbroken:
            return True
        if is_loop and isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            return True  # often a number, which would differ at each call of a part
        if not self._counters.isdisjoint(uses_of([statement]).read) and isinstance(statement, ast.If):
            return True
        if not self._numbers_read.isdisjoint(_attributes(statement, ast.Load)):
            return True
        if not self._shared.isdisjoint(captured_names(statement) | changed_names(statement)):
            return True
        return (
            not changed_names(statement).isdisjoint(self._globals)
            or (_leaves(statement) and not isinstance(statement, ast.Return))
            or self._has_call(statement)
            or any(map(self._is_break, inside(statement)))
        )

    def _has_call(self, tree: ast.AST) -> bool:
        return any(position(node) in self._calls for node in ast.walk(tree))

    def _read_numbers(self, node: ast.AST) -> frozenset[str]:
        """Return the attributes that a statement sets to numbers read from tensors: they differ at each call."""
        if not isinstance(node, ast.Assign | ast.AugAssign) or not self._is_at_break(node):
            return NO_NAMES
        return _attributes(node, ast.Store) if any(map(reads_value, ast.walk(node.value))) else NO_NAMES

    def _is_at_break(self, node: ast.stmt | ast.expr) -> bool:
        return any(node.lineno <= line <= (node.end_lineno or 0) for line in self._lines)

    def _has_break(self, node: ast.expr) -> bool:
        """Return whether a break may be inside an expression, and not only on its lines."""
        first, last = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
        on_lines = [line for line in self._lines if first[0] <= line <= last[0]]
        found = [at for at in self._positions if at[0] in on_lines and None not in at]
        inside = any(first <= (line, start) and (end_line, end) <= last for line, end_line, start, end in found)
        return inside or not {*on_lines} <= {line for line, *_ in found} or self._has_call(node)

    def _is_break(self, node: ast.AST) -> bool:
        """Return whether no program can replace a node, wherever it is."""
        match node:
            case (
                ast.Try()
                | ast.TryStar()
                | ast.Delete()
                | ast.Global()
                | ast.Nonlocal()
                | ast.FunctionDef()
                | ast.Yield()
                | ast.YieldFrom()
            ):
                return True
            case ast.Import(names):
                return not all(is_imported(name.name) for name in names)
            case ast.ImportFrom(module, _, level):
                return bool(level) or not is_imported(str(module))
            case ast.Call(ast.Name(name)) if name in _EFFECTS:
                return True
            case ast.Attribute(_, _, ast.Store()) | ast.Subscript(_, _, ast.Store()):
                return self._changes_objects
            case ast.Call(ast.Attribute(_, name)):
                return self._changes_objects and name in MUTATIONS
        return False

    def _move_out(self, statement: ast.stmt, assigned: frozenset[str]) -> tuple[list[ast.stmt], ast.stmt]:
        """Return assignments that can be a part, and the statement with their values in place of expressions.

        So `return model(x).sum().item()` leaves `return value.item()`. `assigned` are the variables that have a value.
        """
        field = _field(statement)
        if not field or _reads_target(statement, assigned):
            return [], statement
        value = copy.deepcopy(getattr(statement, field))
        moved = MovedOut(self._locals, assigned, value)
        value = moved.visit(value)
        is_read = isinstance(statement, ast.If) and self._is_at_break(statement.test)  # its truth
        if (is_read or isinstance(statement, ast.AugAssign)) and not moved.has_readers and computes(value):
            is_negated = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
            value = with_fields(value, operand=moved.take(value.operand)) if is_negated else moved.take(value)
        self._values |= moved.names
        self._moved.update(moved.assignments)
        return moved.assignments, with_fields(statement, **{field: value})

    def _take_assignment(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return a statement that begins with `(y := value)` as `y = value` and the rest; [] for others."""
        field: str = _field(statement, _YIELDS)
        if not field or isinstance(statement, ast.AugAssign):
            return []
        made: Any = with_fields(statement, **{field: copy.deepcopy(getattr(statement, field))})
        parent = made
        while type(node := getattr(parent, field)) in _FIRST:
            parent, field = node, _FIRST[type(node)]
        if not isinstance(node, ast.NamedExpr):
            return []
        self._values.add(node.target.id)
        setattr(parent, field, ast.copy_location(ast.Name(node.target.id, ast.Load()), node))
        assignment = ast.copy_location(ast.Assign([node.target], node.value), node)
        if not self._has_break(node.value):
            self._unbroken.add(assignment)
        return [assignment, made]

    def _take_call(self, statement: ast.stmt, assigned: frozenset[str]) -> list[ast.stmt]:
        """Return a statement that calls a function with a break as several: operands, the call, and the rest.

        So `loss = f(model(x + 1), y)` becomes `a = x + 1; b = model(a); loss = f(b, y)`.
        """
        field = _field(statement)
        if not field or _reads_target(statement, assigned) or not self._has_call(getattr(statement, field)):
            return []
        value = copy.deepcopy(getattr(statement, field))
        taken = TakenCall(self._locals, assigned, value, self._calls)
        value = taken.visit(value)
        if taken.has_failed or not taken.assignments:
            return []
        self._values |= taken.names
        self._moved.update(each for each in taken.assignments if each is not taken.call)
        return [*taken.assignments, with_fields(statement, **{field: value})]

    def _call_by_callee(self, tree: Any) -> Any:
        """Return code that calls what CALLEE returns for each object that it would call."""
        calls = _CallsByCallee()
        tree = calls.visit(copy.deepcopy(tree))
        self.has_calls = self.has_calls or calls.count > 0
        return tree

    def _split_inside(self, statement: ast.stmt, assigned: frozenset[str], is_loop: bool) -> ast.stmt:
        """Return a statement with parts in its body, if it has one."""
        match statement:
            case ast.If():
                header, bodies = "test", {"body": is_loop, "orelse": is_loop}
            case ast.For(target):
                header, bodies = "iter", {"body": True}
                assigned = (assigned | changed_names(target)) - deleted_names(statement)
            case ast.While():
                assigned -= deleted_names(statement)
                statement = self._move_test_inside(statement, assigned)
                header, bodies = "test", {"body": True}
            case ast.Match(subject, cases):
                split_cases = [self._split_case(case, assigned, is_loop) for case in cases]
                return with_fields(statement, subject=self._call_by_callee(subject), cases=split_cases)
            case ast.With(items):
                assigned, header, bodies = assigned.union(*map(changed_names, items)), "items", {"body": is_loop}
            case _:
                return self._call_by_callee(statement)
        split = {name: self.split(getattr(statement, name), assigned, loop) for name, loop in bodies.items()}
        found = getattr(statement, header)
        called = [*map(self._call_by_callee, found)] if isinstance(found, list) else self._call_by_callee(found)
        return with_fields(statement, **split, **{header: called})

    def _split_case(self, case: ast.match_case, assigned: frozenset[str], is_loop: bool) -> ast.match_case:
        found: ast.match_case = with_fields(
            case, body=self.split(case.body, assigned | changed_names(case.pattern), is_loop)
        )
        return found

    def _move_test_inside(self, loop: ast.While, assigned: frozenset[str]) -> ast.While:
        """Return a loop that ends by a `break` if what its test computes can be a part."""
        if loop.orelse:
            return loop
        at = functools.partial(ast.copy_location, old_node=loop.test)
        test = at(ast.If(at(ast.UnaryOp(ast.Not(), loop.test)), [at(ast.Break())], []))
        computed, leave = self._move_out(test, assigned)
        body = [*computed, leave, *loop.body]
        is_inside = computed or self._has_call(loop.test) or _has(loop.test, (ast.NamedExpr,))
        return with_fields(loop, test=at(ast.Constant(True)), body=body) if is_inside else loop

    # ------------------------------------------------------------------------------------------------- parts

    def _make_part(self, run: list[ast.stmt], assigned: frozenset[str], is_loop: bool) -> list[ast.stmt]:
        """Return the statements of a run, as the call of a part if they compute enough and it can be one."""
        busy = [i for i, statement in enumerate(run) if self._is_busy(statement)]
        if not busy:
            return run
        before, inner, after = run[: busy[0]], run[busy[0] : busy[-1] + 1], run[busy[-1] + 1 :]
        assigned |= uses_of(before).assigned
        uses, returns = uses_of(inner), isinstance(inner[-1], ast.Return)
        elsewhere = set(self._loads - _loads(inner)) | self._values | (uses.read if is_loop else set())
        results = [] if returns else sorted(uses.changed & elsewhere)
        given = (uses.read | (set(results) - uses.assigned)) & self._locals
        if not given <= assigned:
            return run  # a variable may have no value yet
        return [*before, self._call_part(inner, sorted(given), results), *after]

    def _is_busy(self, statement: ast.stmt) -> bool:
        """Return whether a statement computes with something else than plain numbers."""
        if isinstance(statement, ast.Raise) or _is_mutation(statement):
            return False
        return any(
            is_call(node) or (isinstance(node, ast.BinOp) and not _operands(node) <= self._numbers)
            for node in inside(statement)
        )

    def _call_part(self, body: list[ast.stmt], given: list[str], results: list[str]) -> ast.stmt:
        """Note a part, and return the statement that calls it."""
        first, last = body[0], body[-1]
        name = f"<part {len(self.parts)}>"
        call = ast.Call(ast.Name(name, ast.Load()), [ast.Name(each, ast.Load()) for each in given], [])
        if isinstance(last, ast.Return):
            statement: ast.stmt = ast.Return(call)
        elif results:
            statement = ast.Assign([_names(results, ast.Store())], call)
            body = [*body, ast.copy_location(ast.Return(_names(results, ast.Load())), last)]
        else:
            statement = ast.Expr(call)
        parameters = ast.arguments([], [ast.arg(each) for each in given], None, [], [], None, [])
        self.parts[name] = ast.copy_location(with_fields(self._tree, args=parameters, body=body), first)
        return ast.copy_location(statement, first)


def _names(names: list[str], context: Any) -> ast.expr:
    """Return the expression of one or more variables."""
    found: list[ast.expr] = [ast.Name(name, context) for name in names]
    return found[0] if len(found) == 1 else ast.Tuple(found, context)


def _attributes(tree: ast.AST, context: type[ast.expr_context]) -> frozenset[str]:
    """Return the attributes in code that are read or set, such as "self.total"."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, context)]
    return frozenset(map(ast.unparse, nodes))


def _leaves(node: ast.AST, in_loop: bool = False) -> bool:
    """Return whether code may return, or leave a loop around it."""
    match node:
        case ast.Return():
            return True
        case ast.Break() | ast.Continue():
            return not in_loop
        case ast.For(_, _, body, orelse) | ast.While(_, body, orelse):
            return any(_leaves(each, True) for each in body) or any(_leaves(each, in_loop) for each in orelse)
    return not isinstance(node, FUNCTIONS) and any(_leaves(each, in_loop) for each in ast.iter_child_nodes(node))


def _counters(node: ast.AST) -> frozenset[str]:
    """Return the variable that counts the iterations of a loop: that of a `range`, or the first of `enumerate`."""
    match node:
        case ast.For(ast.Name(name), ast.Call(ast.Name("range"))):
            return frozenset({name})
        case ast.For(ast.Tuple([ast.Name(name), _]), ast.Call(ast.Name("enumerate"))):
            return frozenset({name})
    return frozenset()


def _numbers(node: ast.AST) -> frozenset[str]:
    """Return the variables to which a statement assigns what is a number, as far as one can see."""
    match node:
        case ast.Assign(targets, value) if isinstance(value, ast.Constant) or (
            isinstance(value, ast.Call) and not is_call(value)
        ):
            return NO_NAMES.union(*map(changed_names, targets))
        case ast.AugAssign(target, _, ast.Constant()):
            return changed_names(target)
    return frozenset()


def _operands(node: ast.expr) -> frozenset[str]:
    """Return the variables in an expression, without those that functions such as `len` make numbers of."""
    if isinstance(node, ast.Call) and not is_call(node):
        return frozenset()
    if isinstance(node, ast.BinOp):
        return _operands(node.left) | _operands(node.right)
    return read_names(node)


def _is_mutation(statement: ast.stmt) -> bool:
    """Return whether a statement is a call such as `losses.append(loss)`."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(_, name), values)):
            return name in MUTATIONS and not any(map(computes, values))
    return False


def _reassigned(source: FunctionSource) -> frozenset[str]:
    """Return the variables that get a value more than once."""
    count = Counter(source.parameters)
    for node in inside(ast.Module(source.tree.body, [])):
        if isinstance(node, ast.For | ast.While | ast.NamedExpr | ast.match_case):
            count.update(changed_names(node))
        if isinstance(node, ast.stmt) and not isinstance(node, _COMPOUND):
            count.update(changed_names(node))
    return frozenset([name for name, times in count.items() if times > 1])


def _assigned_late(source: FunctionSource) -> frozenset[str]:
    """Return the variables that get a value after a function has been defined that reads them."""
    nodes: list[Any] = [*inside(ast.Module(source.tree.body, []))]
    readers = [
        (node.lineno, captured_names(node)) for node in nodes if isinstance(node, (*FUNCTIONS, ast.GeneratorExp))
    ]
    stored = [(node.lineno, name) for node in nodes for name in own_names(node)]
    return frozenset([name for last, name in stored for line, names in readers if name in names and last > line])


class _CallsByCallee(ast.NodeTransformer):
    """Replaces calls `f(x)` by `callee(f)(x)`, except in functions that the code defines."""

    count = 0

    def visit(self, node: ast.AST) -> Any:
        """Return code with other calls."""
        if isinstance(node, FUNCTIONS):
            return node
        made = self.generic_visit(node)
        if not isinstance(made, ast.Call) or not is_call(made):
            return made
        self.count += 1
        function = ast.Call(ast.Name(CALLEE, ast.Load()), [made.func], [])
        return with_fields(made, func=ast.fix_missing_locations(ast.copy_location(function, made.func)))
