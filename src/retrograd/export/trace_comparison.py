"""Compare two traces of a program: equal except for numbers, and the size comparisons of both."""

from typing import Any

from retrograd.core import Tensor, operator_named
from retrograd.export.traced_size import Comparison, Conversion, Floor
from retrograd.fx.node import Node, map_leaves
from retrograd.fx.tracer import Recording
from retrograd.nn.module import Module

_equal = operator_named("eq")


class MismatchError(Exception):
    """The program behaved differently for other sizes: the reason and the line."""


Note = Comparison | Floor | Conversion


def number_notes(log: list) -> dict[tuple, Note]:
    """Return notes by a key that is equal in another trace: operator, position, line, and index among equal ones."""
    counts: dict[tuple, int] = {}
    found: dict[tuple, Note] = {}
    for note in log:
        if isinstance(note, Note):
            key = note.op, note.instruction, note.line
            counts[key] = counts.get(key, 0) + 1
            found[(*key, counts[key])] = note
    return found


def argument_leaves(node: Node) -> list:
    found: list[Any] = []
    map_leaves((node.args, node.kwargs), found.append)
    return found


def differ(values: Any) -> bool:
    """Return whether numbers differ; other leaves are known to be equal."""
    return _is_number(values[0]) and any(not _same_number(v, values[0]) for v in values)


def _same_number(u: Any, v: Any) -> bool:
    """Return whether two numbers are equal; nan equals nan."""
    return bool(u == v or (u != u and v != v))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def compare(a: Recording, b: Recording) -> None:
    """Raise MismatchError if two graphs differ in more than numbers."""
    ours, its = list(a.graph.nodes), list(b.graph.nodes)
    for x, y in zip(ours, its, strict=False):
        what = _difference(x, y, a, b)
        if what:
            place = y.meta.get("stack_trace") or x.meta.get("stack_trace") or "an unknown line"
            raise MismatchError(f"at {place}, {what}")
    if len(ours) != len(its):
        raise MismatchError(f"it runs {len(its)} operators instead of {len(ours)}")


def _difference(x: Node, y: Node, a: Recording, b: Recording) -> str:
    if x.op != y.op or x.target != y.target:
        return f"{y.format_node()} is in the position of {x.format_node()}"
    if x.op == "get_attr" and not _same_tensor(_attribute(a.home, x.target), _attribute(b.home, y.target)):
        return f"the constant {x.target} has other values or another shape"
    u, v = argument_leaves(x), argument_leaves(y)
    if _nesting(x) != _nesting(y) or not all(map(_same_leaf, u, v)):
        return f"{y.format_node()} has other arguments than {x.format_node()}"
    return ""


def _nesting(node: Node) -> Any:
    return map_leaves((node.args, node.kwargs), lambda leaf: None)


def _same_leaf(u: Any, v: Any) -> bool:
    if isinstance(u, Node) or isinstance(v, Node):
        return isinstance(u, Node) and isinstance(v, Node) and u.name == v.name
    if isinstance(u, Tensor) and isinstance(v, Tensor):
        return _same_tensor(u, v)
    if _is_number(u) and _is_number(v):
        return isinstance(u, float) == isinstance(v, float)  # whether they depend on sizes is determined later
    return u is v or (type(u) is type(v) and _same_number(u, v))


def _same_tensor(u: Tensor, v: Tensor) -> bool:
    return u is v or (u.aval == v.aval and bool(_equal(u, v).all()))


def _attribute(module: Module, target: str) -> Any:
    path, _, name = target.rpartition(".")
    return getattr(module.get_submodule(path), name)
