"""Operands of expressions moved into variables, in the order of evaluation: what is computed before a graph break."""

import ast
from typing import Any

from retrograd.compiler.variable_uses import COMPREHENSIONS, inside, read_names

_READERS = {"item", "tolist", "numpy"}
_CONVERSIONS = {"bool", "float", "format", "int", "len", "repr", "round", "str"}
_PLAIN = (ast.Constant, ast.expr_context, ast.Lambda, ast.arguments)
_WRAPPED = (ast.Starred, ast.Slice, ast.FormattedValue)  # no expressions by themselves
_CONDITIONAL = (ast.IfExp, ast.BoolOp, ast.Lambda, *COMPREHENSIONS)


def with_fields(tree: Any, **fields: Any) -> Any:
    """Return a node of a syntax tree with other fields."""
    return type(tree)(**{**vars(tree), **fields})


def position(node: ast.AST) -> tuple | None:
    """Return the position of a call as its instruction has it; None for other nodes."""
    if not isinstance(node, ast.Call):
        return None
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def is_call(node: ast.AST) -> bool:
    """Return whether a node is a call that does more than read the value of a variable."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    return not (
        (isinstance(function, ast.Name) and function.id in _CONVERSIONS)
        or (isinstance(function, ast.Attribute) and function.attr in _READERS)
    )


def computes(tree: ast.AST) -> bool:
    """Return whether code calls something, other than in functions that it defines."""
    return any(map(is_call, inside(tree)))


class MovedOut(ast.NodeTransformer):
    """Moves the operands of calls that read values into variables, and all that is computed before, in its order."""

    def __init__(self, taken: set[str], assigned: frozenset[str], whole: ast.expr) -> None:
        self.assignments: list[ast.stmt] = []
        self.names: set[str] = set()
        self._taken = taken  # the names of all variables
        self._missing = taken - assigned  # those that may have no value, which is an error
        self.has_readers = False  # whether the expression reads the value of a tensor
        self._left = _count_readers(whole)  # the calls whose operands are still to be moved
        self._stopped = False  # what comes next is evaluated after a call that stays

    def take(self, value: ast.expr) -> ast.expr:
        """Return a new variable in place of an expression."""
        name = next(name for i in range(len(self._taken) + 1) if (name := f"<value {i}>") not in self._taken)
        self._taken.add(name)
        self.names.add(name)
        self.assignments.append(ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), value))
        return ast.copy_location(ast.Name(name, ast.Load()), value)

    def take_before(self, node: Any) -> Any:
        """Return a variable in place of what is evaluated before the operands that move, unless it stays the same."""
        if isinstance(node, ast.Attribute) and computes(node):
            return with_fields(node, value=self.take(node.value))
        same = [isinstance(n, _PLAIN) or (isinstance(n, ast.Name) and n.id in self._taken) for n in ast.walk(node)]
        return node if all(same) else self.take(node)

    def move_from_arguments(self, call: ast.Call) -> Any:
        """Return a call with variables in its arguments."""
        return with_fields(self.generic_visit(with_fields(call, func=ast.Constant(None))), func=call.func)

    def visit(self, node: Any) -> Any:
        """Return an expression with variables in place of operands."""
        if self._stopped or _is_conditional(node):
            self._stopped = self._stopped or computes(node)
            return node
        is_method = _read_operand(node) is not None and isinstance(node.func, ast.Attribute)
        self.has_readers |= is_method
        if _is_reader(node):
            self._left -= 1
            if is_method:
                return with_fields(node, func=with_fields(node.func, value=self.take(node.func.value)))
            return with_fields(node, args=[self.take(node.args[0])])
        if isinstance(node, ast.Name) and node.id in self._missing:
            self._stopped = True
        elif self._left and isinstance(node, ast.expr) and not isinstance(node, _WRAPPED) and not _count_readers(node):
            return self.take_before(node)
        is_named = isinstance(node, ast.Call) and not computes(node.func)
        made = self.move_from_arguments(node) if is_named else self.generic_visit(node)
        self._stopped = self._stopped or is_call(node)
        return made


class TakenCall(MovedOut):
    """Moves the first of some calls in an expression into a variable, and all that is computed before it, in its order.

    The call is not moved if it is the whole expression.
    """

    def __init__(self, taken: set[str], assigned: frozenset[str], whole: ast.expr, calls: frozenset[tuple]) -> None:
        super().__init__(taken, assigned, whole)
        self.has_failed = False  # whether the order would be another one
        self.call: ast.stmt | None = None  # the assignment of the call
        self._whole, self._calls = whole, calls

    def visit(self, node: Any) -> Any:
        """Return an expression with variables in place of operands."""
        if self._stopped:
            return node
        if not any(position(each) in self._calls for each in ast.walk(node)):
            if not isinstance(node, ast.expr) or isinstance(node, _WRAPPED):
                return self.generic_visit(node)
            self.has_failed |= isinstance(node, ast.Name) and node.id in self._missing
            return self.take_before(node)
        if _is_conditional(node) or isinstance(node, ast.JoinedStr):
            self.has_failed = self._stopped = True
            return node
        if isinstance(node, ast.Call) and not computes(node.func):
            self.has_failed |= not read_names(node.func).isdisjoint(self._missing)
            made = self.move_from_arguments(node)
        else:
            made = self.generic_visit(node)
        if self._stopped or position(node) not in self._calls:
            return made
        self._stopped = True
        if node is self._whole:
            return made
        value = self.take(made)
        self.call = self.assignments[-1]
        return value


def _is_conditional(node: ast.AST) -> bool:
    """Return whether not all in an expression may run, or in another order than that of its fields."""
    return isinstance(node, (*_CONDITIONAL, ast.Dict)) or (isinstance(node, ast.Compare) and len(node.ops) > 1)


def _read_operand(node: ast.AST) -> ast.expr | None:
    """Return the operand whose value a call such as `x.item()` or `float(x)` reads; None for others."""
    match node:
        case ast.Call(ast.Attribute(operand, name)) if name in _READERS:
            return operand
        case ast.Call(ast.Name(name), [operand]) if name in _CONVERSIONS:
            return operand
    return None


def reads_value(node: ast.AST) -> bool:
    """Return whether a node is a call that may read the value of a tensor, such as `x.item()` or `float(x)`."""
    return _read_operand(node) is not None


def _is_reader(node: ast.AST) -> bool:
    """Return whether a call reads what its operand computes, without reading values itself."""
    operand = _read_operand(node)
    return operand is not None and computes(operand) and not _count_readers(operand)


def _count_readers(tree: ast.AST) -> int:
    """Return how many calls in an expression, of which all run, read a value that the expression computes."""
    if _is_conditional(tree):
        return 0
    return _is_reader(tree) + sum(map(_count_readers, ast.iter_child_nodes(tree)))
