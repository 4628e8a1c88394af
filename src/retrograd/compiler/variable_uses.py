"""Which local variables statements read and assign, from their syntax trees."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
NO_NAMES = frozenset[str]()
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class Uses:
    """The variables that code reads before it assigns them, those that it assigns always, and all that it assigns.

    >>> use = uses_of(ast.parse("y = x\\nif y:\\n  z = y").body)
    >>> sorted(use.read), sorted(use.assigned), sorted(use.changed)
    (['x'], ['y'], ['y', 'z'])
    """

    read: frozenset[str] = NO_NAMES
    assigned: frozenset[str] = NO_NAMES
    changed: frozenset[str] = NO_NAMES

    def then(self, other: "Uses") -> "Uses":
        """Return the uses of this code with other code after it."""
        read = self.read | (other.read - self.assigned)
        return Uses(read, self.assigned | other.assigned, self.changed | other.changed)

    def either(self, other: "Uses") -> "Uses":
        """Return the uses of code of which one of two parts runs."""
        return Uses(self.read | other.read, self.assigned & other.assigned, self.changed | other.changed)


NOTHING = Uses()


def uses_of(body: Iterable[ast.stmt]) -> Uses:
    """Return the uses of statements, one after the other; names count as variables, also those of globals."""
    uses = NOTHING
    for statement in body:
        uses = uses.then(_of_statement(statement))
    return uses


def _of_statement(statement: ast.stmt) -> Uses:
    match statement:
        case ast.If(test, body, orelse):
            return _reads(test).then(uses_of(body).either(uses_of(orelse)))
        case ast.While(test, body, orelse):
            return _reads(test).then(uses_of(body).either(NOTHING)).then(uses_of(orelse).either(NOTHING))
        case ast.For(target, iterator, body, orelse):
            once = _assigns(target).then(uses_of(body))
            return _reads(iterator).then(once.either(NOTHING)).then(uses_of(orelse).either(NOTHING))
        case ast.With(items, body):
            uses = NOTHING
            for item in items:
                uses = uses.then(_reads(item.context_expr)).then(_assigns(item.optional_vars))
            return uses.then(uses_of(body))
        case ast.Try(body, handlers, orelse, finalbody):
            uses = uses_of([*body, *orelse])
            for handler in handlers:
                uses = uses.either(uses_of(handler.body))
            return uses.then(uses_of(finalbody))
        case ast.Match(subject, cases):
            uses = NOTHING
            for case in cases:
                bound = changed_names(case.pattern)
                guard = NOTHING if case.guard is None else _reads(case.guard)
                matched = Uses(read_names(case.pattern), bound, bound).then(guard)
                uses = uses.either(matched.then(uses_of(case.body)))
            return _reads(subject).then(uses)
        case ast.FunctionDef(name):
            return Uses(read_names(statement), frozenset({name}), frozenset({name}))
        case ast.Assign(targets, value):
            uses = _reads(value)
            for each in targets:
                uses = uses.then(_assigns(each))
            return uses
        case ast.AugAssign(target, _, value):
            return _reads(value).then(Uses(read_names(target) | _stored(target))).then(_assigns(target))
        case ast.AnnAssign(target, _, value):
            return NOTHING if value is None else _reads(value).then(_assigns(target))
        case ast.Import(names) | ast.ImportFrom(_, names):
            imported = frozenset([(name.asname or name.name).partition(".")[0] for name in names])
            return Uses(frozenset(), imported, imported)
        case _:
            return Uses(read_names(statement), frozenset(), changed_names(statement))


def _reads(expression: ast.expr) -> Uses:
    return Uses(read_names(expression), changed=changed_names(expression))


def _assigns(target: ast.expr | None) -> Uses:
    """Return the uses of an assignment to a target, such as `a, b[i]`."""
    return NOTHING if target is None else Uses(read_names(target), _stored(target), changed_names(target))


def _stored(target: ast.expr) -> frozenset[str]:
    named = [n.target.id for n in ast.walk(target) if isinstance(n, ast.NamedExpr)]  # may not run
    return changed_names(target).difference(named)


def read_names(tree: ast.AST) -> frozenset[str]:
    """Return the names that code reads, without the variables of functions and comprehensions inside.

    >>> sorted(read_names(ast.parse("[f(x, y) for x in xs]")))
    ['f', 'xs', 'y']
    """
    if isinstance(tree, ast.Name):
        return frozenset() if isinstance(tree.ctx, ast.Store) else frozenset({tree.id})
    found = NO_NAMES.union(*map(read_names, ast.iter_child_nodes(tree)))
    if isinstance(tree, COMPREHENSIONS):
        targets = NO_NAMES.union(*[_stored(generator.target) for generator in tree.generators])
        return (found - targets) | read_names(tree.generators[0].iter)
    if isinstance(tree, FUNCTIONS):
        own = {argument.arg for argument in ast.walk(tree.args) if isinstance(argument, ast.arg)}
        body = tree.body if isinstance(tree.body, list) else []
        return found - own - NO_NAMES.union(*map(changed_names, body))
    return found


def changed_names(tree: ast.AST) -> frozenset[str]:
    """Return the names that code may assign or delete, without those in functions and comprehensions inside."""
    if isinstance(tree, ast.FunctionDef):
        return frozenset({tree.name})
    if isinstance(tree, (*FUNCTIONS, *COMPREHENSIONS)):
        return frozenset()
    return own_names(tree).union(*map(changed_names, ast.iter_child_nodes(tree)))


def own_names(node: ast.AST) -> frozenset[str]:
    """Return the names that a node may assign or delete, without those of the nodes below it."""
    match node:
        case ast.Name(name, ast.Store() | ast.Del()):
            return frozenset({name})
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            return frozenset({name})
    return NO_NAMES


def deleted_names(tree: ast.AST) -> frozenset[str]:
    """Return the names that code may delete."""
    found = [node.id for node in inside(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del)]
    return frozenset([*found, *[str(n.name) for n in inside(tree) if isinstance(n, ast.ExceptHandler)]])


def captured_names(tree: ast.AST) -> frozenset[str]:
    """Return the names that functions defined in code read from around them."""
    if isinstance(tree, (*FUNCTIONS, ast.GeneratorExp)):
        return read_names(tree)
    return NO_NAMES.union(*map(captured_names, ast.iter_child_nodes(tree)))


def inside(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those below it, without those in functions that the code defines."""
    yield tree
    if not isinstance(tree, FUNCTIONS):
        for child in ast.iter_child_nodes(tree):
            yield from inside(child)
