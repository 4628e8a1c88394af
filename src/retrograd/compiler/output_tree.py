"""The results of a call: how a program makes them again at each run."""

from collections import OrderedDict, deque
from dataclasses import dataclass
from functools import partial
from typing import Any

from retrograd.compiler.arguments import builtin_base, is_record, record_fields
from retrograd.compiler.namespaces import slots_of
from retrograd.compiler.plain_values import is_plain_value
from retrograd.compiler.program import External, Result, Slot, result_slots
from retrograd.compiler.recorder import Recorder
from retrograd.core import Tensor


class ResultTree:
    """How to make the result of a call: a tree of containers, tensors and plain values."""

    def __init__(self, tree: Any, leaves: list[External | Result]) -> None:
        self.tree, self.leaves = tree, leaves

    def slots(self) -> list[Slot]:
        """Return the slots that the results are made from."""
        return [slot for made in self.leaves for slot in result_slots(made)]

    def write(self, source: Any) -> str:
        """Return the expression of the result."""
        return self._expression(source, self.tree, {}, _repeated(self.tree))

    def _expression(self, source: Any, tree: Any, made: dict[int, str], repeated: set[int]) -> str:
        """Return the expression of a tree; `made` are the variables of containers that are there already."""
        if isinstance(tree, External | Result):
            return str(source.name_of(tree))
        if isinstance(tree, Constant):
            return str(source.constant(tree.value))
        if id(tree) in made:
            return made[id(tree)]
        expression = self._container(source, tree, partial(self._expression, source, made=made, repeated=repeated))
        if id(tree) not in repeated:
            return expression
        made[id(tree)] = f"k{len(made)}"
        return f"({made[id(tree)]} := {expression})"

    def _container(self, source: Any, tree: Any, write: Any) -> str:
        if isinstance(tree, Rebuilt):
            members = ", ".join(write(member) for member in tree.members)
            return f"{source.constant(tree.make)}([{members}])"
        kind, members = tree
        if kind is dict:
            pairs = [f"{source.constant(key)}: {write(member)}" for key, member in members.items()]
            return f"{{{', '.join(pairs)}}}"
        inside = "".join(f"{write(member)}, " for member in members)
        return f"[{inside}]" if kind is list else f"({inside})"


class OutputTree(ResultTree):
    """The result of a captured call, which each run makes again."""

    def __init__(self, result: Any, recorder: Recorder, kept: set[int], state: list[Any] | None = None) -> None:
        self._recorder = recorder
        self._way = "returns"
        self._known: dict[int, Any] = {}  # by the id of a container: its tree
        self._kept = kept  # the ids of containers and objects that the call was given
        self.roots: list[Tensor] = []  # results, and bases of results, that the call has made and that require grad
        leaves: list[External | Result] = []
        tree = self._describe(result, leaves)
        if state is not None:  # values that the call sets outside follow the result
            self._way = "sets an attribute, item or variable outside to"
            tree = tuple, [tree, *[self._describe(value, leaves) for value in state]]
        super().__init__(tree, leaves)

    def _describe(self, value: Any, leaves: list[External | Result]) -> Any:
        """Return the tree with how to make each tensor; a container that is there twice has one tree."""
        key = id(value)
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._describe_new(value, leaves)
        elif self._known[key] is None and not isinstance(value, Tensor):
            self._recorder.refuse(f"the function {self._way} a container that contains itself")
        return self._known[key]

    def _describe_new(self, value: Any, leaves: list[External | Result]) -> Any:
        kind = type(value)
        if isinstance(value, Tensor):
            made = self._recorder.result_of(value)
            if made is not None:
                leaves.append(made)
            self._add_root(value)
            if value._view is not None:
                self._add_root(value._view.base)
            return made
        if is_plain_value(value) and not (kind is tuple and value):
            return Constant(value)
        if id(value) in self._kept and value != ():
            self._recorder.refuse(f"the function {self._way} a container or object that it was given")
            return None
        if kind in (list, tuple):
            return kind, [self._describe(member, leaves) for member in value]
        if kind is dict and all(map(is_plain_value, value)):
            return kind, {key: self._describe(member, leaves) for key, member in value.items()}
        if _is_simple_dict(value) and all(map(is_plain_value, value)):
            fields = getattr(value, "__dict__", {})
            members = [*dict.values(value), *fields.values()]
            make = partial(make_dict, kind, tuple(dict.keys(value)), tuple(fields))
            return Rebuilt(make, [self._describe(member, leaves) for member in members])
        if kind is deque and value.maxlen is None:
            return Rebuilt(kind, [self._describe(member, leaves) for member in value])
        if isinstance(value, tuple):
            return Rebuilt(getattr(kind, "_make", kind), [self._describe(member, leaves) for member in value])
        if is_record(value):
            fields = record_fields(value)
            return Rebuilt(
                partial(make_record, kind, tuple(fields)), [self._describe(m, leaves) for m in fields.values()]
            )
        self._recorder.refuse(f"the function {self._way} a {kind.__name__}")
        return None

    def _add_root(self, t: Tensor) -> None:
        """Note a tensor that the call has made and that requires grad."""
        if t._requires_grad and isinstance(self._recorder.result_of(t), Result) and not any(t is r for r in self.roots):
            self.roots.append(t)


def _repeated(tree: Any) -> set[int]:
    """Return the ids of the containers that are in a tree several times."""
    seen: set[int] = set()
    found: set[int] = set()
    pending = [tree]
    while pending:
        one = pending.pop()
        if isinstance(one, Rebuilt) or type(one) is tuple:
            if id(one) in seen:
                found.add(id(one))
                continue
            seen.add(id(one))
            members = one.members if isinstance(one, Rebuilt) else one[1]
            pending += members.values() if type(members) is dict else members
    return found


def _is_simple_dict(value: Any) -> bool:
    """Return whether a value is a dict that consists of its keys, members, and attributes in a dict."""
    kind = type(value)
    return isinstance(value, dict) and builtin_base(kind) in (dict, OrderedDict) and not slots_of(kind)


@dataclass(slots=True)
class Constant:
    """A plain value in the result."""

    value: Any


@dataclass(slots=True)
class Rebuilt:
    """A container of another class, or an object of a dataclass, in the result: `make(members)`."""

    make: Any
    members: list[Any]


def make_record(kind: type, names: tuple[str, ...], members: list[Any]) -> Any:
    """Return an object of a dataclass with the given fields."""
    out: Any = object.__new__(kind)
    if hasattr(out, "__dict__"):
        vars(out).update(zip(names, members, strict=True))
    else:
        for name, member in zip(names, members, strict=True):
            object.__setattr__(out, name, member)
    return out


def make_dict(kind: type, keys: tuple, names: tuple[str, ...], members: list[Any]) -> Any:
    """Return a dict of a class with the given keys, and attributes: their members follow each other."""
    base = OrderedDict if issubclass(kind, OrderedDict) else dict
    out: Any = base.__new__(kind)
    base.update(out, zip(keys, members, strict=False))
    if names:
        vars(out).update(zip(names, members[len(keys) :], strict=True))
    return out
