"""Guards of a call's arguments, and of the tensors that it uses."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from retrograd.backend import array_programs
from retrograd.compiler.dynamic_sizes import Change, Place
from retrograd.compiler.namespaces import has_own_class, slots_of
from retrograd.compiler.plain_values import is_plain_value, is_same
from retrograd.core import Tensor
from retrograd.core.guards import TensorGuard, have_arrays_of_their_own, match_values
from retrograd.foundation.own_attributes import own_attributes
from retrograd.nn.module import Module


def difference(guard: TensorGuard, t: Any) -> str:
    """Return the first property in which a tensor differs from those of a guard, in words."""
    shape, dtype, strides = array_programs.layout(t.value)
    for name, mine, its in (
        ("shape", guard.shape, shape),
        ("dtype", guard.dtype, dtype),
        ("strides", guard.strides, strides),
        ("requires_grad", guard.requires_grad, t.requires_grad),
    ):
        if mine != its:
            return f"{name} changed from {mine} to {its}"
    if guard.composite is not None:
        return "structure, buffer, position in a graph, hooks or .grad changed"
    if (t._grad is None) is not (guard.grad_guard is None):
        return f".grad changed from {'None' if guard.grad_guard is None else 'a tensor'}"
    return "position in a graph, hooks or .grad changed"


def is_ordinary(t: Any) -> bool:
    """Return whether a tensor is one of the ground, in the memory of an array of NumPy's, or of several of these."""
    return isinstance(t, Tensor) and t.level is None and not t._overrides and array_programs.is_recorded(t.value)


def is_record(value: Any) -> bool:
    """Return whether a value is an object of a dataclass, all of whose attributes are known: they count."""
    kind = type(value)
    return is_record_class(kind) and (hasattr(value, "__dict__") or {*slots_of(kind)} <= {*kind.__dataclass_fields__})


def record_fields(value: Any) -> dict[str, Any]:
    """Return the attributes of an object of a dataclass, which may be in slots."""
    if hasattr(value, "__dict__"):
        return own_attributes(value)
    return {name: getattr(value, name) for name in value.__dataclass_fields__ if hasattr(value, name)}


def is_record_class(kind: Any) -> bool:
    """Return whether a value is the class of a dataclass, and neither of a module nor of a container."""
    return (
        isinstance(kind, type)
        and dataclasses.is_dataclass(kind)
        and builtin_base(kind) is object
        and not issubclass(kind, Module)
    )


def builtin_base(kind: type) -> Any:
    """Return the first class of C among the bases of a class: it allocates the objects.

    >>> from collections import OrderedDict, deque
    >>> class Stack(deque): ...
    >>> builtin_base(Stack), builtin_base(OrderedDict)
    (<class 'collections.deque'>, <class 'collections.OrderedDict'>)
    """
    return next(owner for owner in kind.__mro__ if not is_python_class(owner))


def is_python_class(kind: type) -> bool:
    """Return whether a class is made by Python code; those of C are static, or nobody may set their attributes."""
    return kind.__flags__ & (_HEAP | _IMMUTABLE) == _HEAP


_IMMUTABLE, _HEAP = 1 << 8, 1 << 9  # Py_TPFLAGS_IMMUTABLETYPE, which static classes have too, and Py_TPFLAGS_HEAPTYPE


def members_of(value: Any) -> dict[Any, Any] | None:
    """Return the members of a container that is an argument by its members; None for other values."""
    kind = type(value)
    if kind in (list, tuple) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        return dict(enumerate(value))
    if kind is dict:
        return dict(value)
    return record_fields(value) if is_record(value) else None


class ObjectPattern:
    """The pattern of an argument that is no container, tensor or plain value: this object itself."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class ArgumentGuards:
    """The pattern of the arguments of a call: containers, plain values, objects, and the guards of tensors."""

    def __init__(self, args: tuple, kwargs: dict[str, Any]) -> None:
        self.tensors: list[Any] = []
        self.objects: list[tuple[str, Any]] = []
        self._before: dict[int, TensorGuard] = {}
        self.containers: list[Any] = []
        self.refusal = ""
        self.args = [self._pattern(a, f"argument {i}") for i, a in enumerate(args)]
        self.kwargs = {name: self._pattern(a, f"argument {name!r}") for name, a in kwargs.items()}
        self._is_flat = not self.containers
        self.state: list[Any] = []  # patterns of values outside that calls replace, as further arguments
        self.repetitions = _repetitions(self.tensors)
        self._others: frozenset[int] = frozenset()  # the ids of containers from outside that the code reads
        self.identities: list[int] = _identities(self.containers, self._others)

    def keep_identities(self, others: frozenset[int]) -> None:
        """Guard which containers among the arguments are some from outside; `others` are the ids of these."""
        count = len(self.identities)  # those of the state follow
        self._others, self.identities = others, _identities(self.containers[:count], others)

    def keep_identities_of(self, guards: "ArgumentGuards") -> None:
        """Guard the same containers from outside as other guards do."""
        self.keep_identities(guards._others)

    def add_state(self, values: Sequence[Any], before: dict[int, TensorGuard] | None = None) -> None:
        """Take the values of state from outside as further arguments; `before` are guards of tensors, by their ids."""
        self._before = before or {}
        self.state += [self._pattern(value, "the state") for value in values]
        self.repetitions = _repetitions(self.tensors)

    def _pattern(self, value: Any, name: str) -> Any:
        kind = type(value)
        if issubclass(kind, Tensor):  # isinstance() would ask the object itself
            if not is_ordinary(value):
                self.refusal = self.refusal or f"{name} is no plain tensor of the ground"
                return ObjectPattern(value)
            self.tensors.append(value)
            return self._before.get(id(value)) or TensorGuard(value)
        if is_plain_value(value):
            if has_own_class(value):
                self.objects.append((name, value))
            return ObjectPattern(value)
        if kind in (list, tuple):
            self.containers.append(value)
            return kind, [self._pattern(v, f"{name}[{i}]") for i, v in enumerate(value)]
        if kind is dict:
            self.containers.append(value)
            return kind, {key: self._pattern(v, f"{name}[{key!r}]") for key, v in value.items()}
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            self.containers.append(value)
            return kind, [self._pattern(v, f"{name}.{key}") for key, v in zip(kind._fields, value, strict=True)]
        if is_record(value):
            self.containers.append(value)
            self.objects.append((f"the class of {name}", kind))
            return kind, {key: self._pattern(v, f"{name}.{key}") for key, v in record_fields(value).items()}
        self.objects.append((name, value))
        return ObjectPattern(value)

    def match(self, args: tuple, kwargs: dict[str, Any], state: Sequence[Any] = ()) -> list[Any] | None:
        """Return the tensors among the arguments and the state if the program is for such; else None."""
        tensors: list[Any] = []
        if len(args) != len(self.args):
            return None
        if self._is_flat:
            if not match_values(self.args, args, tensors, is_same):
                return None
        elif not _match_all(self.args, args, tensors):
            return None
        if (kwargs or self.kwargs) and not _match_dict(self.kwargs, kwargs, tensors):
            return None
        if state and not _match_all(self.state, state, tensors):
            return None
        if not self._is_flat and _identities(_containers([*args, *kwargs.values()]), self._others) != self.identities:
            return None
        return tensors if self._repeats(tensors) else None

    def flat_patterns(self) -> list[Any] | None:
        """Return the patterns of positional arguments; None if there are others, containers, or repeated tensors."""
        is_simple = self._is_flat and not self.kwargs and not self.state and not self.repetitions
        return self.args if is_simple else None

    def _repeats(self, tensors: list[Any]) -> bool:
        """Return whether arguments repeat as they did: the code may ask, and gradients of a repeated one are added."""
        if not self.repetitions:
            return have_arrays_of_their_own(tensors)
        return _repetitions(tensors) == self.repetitions

    def is_unchanged(self, args: tuple, kwargs: dict[str, Any]) -> bool:
        """Return whether the arguments have the same members as when the guards were made, whatever their values."""
        now = ArgumentGuards(args, kwargs)
        same = [a is b for a, b in zip(self.tensors, now.tensors, strict=False)]
        return len(self.tensors) == len(now.tensors) and all(same) and _is_alike(self.args, now.args)

    def size_changes(self, args: tuple, kwargs: dict[str, Any], state: Sequence[Any] = ()) -> list[Change] | None:
        """Return in which sizes arguments differ from those of the guards; None if they differ in anything else."""
        now, changes = ArgumentGuards(args, kwargs), _SizeChanges()
        now.add_state(state)
        now.keep_identities_of(self)
        if now.refusal or now.repetitions != self.repetitions or now.identities != self.identities:
            return None
        pairs = ((self.args, now.args), (self.kwargs, now.kwargs), (self.state, now.state))
        return changes.found if all(changes.compare(*pair) for pair in pairs) else None

    def sizes(self) -> dict[Place, int]:
        """Return the sizes of the tensors, and the integers among the arguments."""
        found = {Place(i, dim): n for i, t in enumerate(self.tensors) for dim, n in enumerate(t.shape)}
        integers = [n for n in _plain_members([self.args, self.kwargs]) if type(n) is int]
        return {**found, **{Place(None, i): n for i, n in enumerate(integers)}}

    def find_difference(self, args: tuple, kwargs: dict[str, Any], state: dict[str, Any]) -> str:
        """Return which argument does not match, in words; "" if all do. `state` are values from outside, by name."""
        if len(args) != len(self.args) or list(kwargs) != list(self.kwargs):
            return "the number or names of the arguments changed"
        pairs = [*zip(self.args, args, [f"argument {i}" for i in range(len(args))], strict=True)]
        pairs += [(self.kwargs[name], value, f"argument {name!r}") for name, value in kwargs.items()]
        pairs += [(pattern, value, name) for pattern, (name, value) in zip(self.state, state.items(), strict=True)]
        for pattern, value, name in pairs:
            if not _match(pattern, value, []):
                return _difference(pattern, value, name)
        return "tensors or containers that were different are the same now, or the other way round"


def _plain_members(pattern: Any) -> list[Any]:
    """Return the values of a pattern that are no containers or tensors."""
    if isinstance(pattern, ObjectPattern):
        return [pattern.value]
    members = pattern.values() if type(pattern) is dict else pattern if type(pattern) in (list, tuple) else ()
    return [value for member in members for value in _plain_members(member)]


def _repetitions(tensors: Sequence[Any]) -> list[tuple[int, int]]:
    """Return the pairs of tensors with the same array, each with the first one that has it."""
    first: dict[int, int] = {}
    pairs = []
    for i, t in enumerate(tensors):
        j = first.setdefault(id(t.value), i)
        if j != i:
            pairs.append((j, i))
    return pairs


_NO_CONTAINERS = {Tensor, int, float, str, bool, type(None)}  # most values, whose types tell it at once


def _containers(values: Iterable[Any], found: list[Any] | None = None) -> list[Any]:
    """Return the containers in values that are arguments by their members, each before those in it."""
    found = [] if found is None else found
    for value in values:
        kind = type(value)
        if kind in _NO_CONTAINERS or issubclass(kind, Tensor):
            continue
        if kind is list or kind is dict:
            found.append(value)
            _containers(value if kind is list else value.values(), found)
        elif not is_plain_value(value) and (members := members_of(value)) is not None:
            found.append(value)
            _containers(members.values(), found)
    return found


def _identities(containers: Iterable[Any], others: frozenset[int]) -> list[int]:
    """Return for each container the number of the first one that is the same, or its id if it is among others."""
    first: dict[int, int] = {}
    return [id(one) if id(one) in others else first.setdefault(id(one), len(first)) for one in containers]


def _is_alike(one: Any, other: Any) -> bool:
    """Return whether two patterns are of the same containers and values."""
    if type(one) is not type(other):
        return False
    if type(one) is dict:
        return list(one) == list(other) and all(_is_alike(one[key], other[key]) for key in one)
    if type(one) in (list, tuple):
        return len(one) == len(other) and all(map(_is_alike, one, other))
    return type(one) is TensorGuard or (one is other if type(one) is type else is_same(one.value, other.value))


class _SizeChanges:
    """The comparison of two patterns up to sizes."""

    def __init__(self) -> None:
        self.found: list[Change] = []
        self._tensors = 0

    def compare(self, one: Any, other: Any) -> bool:
        """Return whether two patterns differ in sizes only, and note these."""
        kind = type(one)
        if kind is not type(other):
            return False
        if kind is dict:
            return list(one) == list(other) and all(self.compare(one[key], other[key]) for key in one)
        if kind in (list, tuple):
            return len(one) == len(other) and all(map(self.compare, one, other))
        if kind is TensorGuard:
            return self._compare_tensors(one, other)
        if kind is type:
            return one is other
        if type(one.value) is int and type(other.value) is int and one.value != other.value:
            self.found.append((Place(None, 0), other.value))
            return True
        return is_same(one.value, other.value)

    def _compare_tensors(self, one: TensorGuard, other: TensorGuard) -> bool:
        self._tensors += 1
        if not _is_alike_up_to_sizes(one, other):
            return False
        sizes = [(d, n) for d, (m, n) in enumerate(zip(one.shape, other.shape, strict=True)) if m != n]
        self.found += [(Place(self._tensors - 1, dim), size) for dim, size in sizes]
        return bool(sizes) or one.strides == other.strides


_BESIDES_SIZES = (
    "attributes", "kind", "composite", "ndim", "dtype", "requires_grad", "is_leaf", "is_view", "has_hooks", "inference",
)  # fmt: skip


def _is_alike_up_to_sizes(one: TensorGuard | None, other: TensorGuard | None) -> bool:
    """Return whether guards, those of .grad included, differ in shapes and strides only."""
    if one is None or other is None:
        return one is other
    same = all(getattr(one, name) == getattr(other, name) for name in _BESIDES_SIZES)
    return same and _is_alike_up_to_sizes(one.grad_guard, other.grad_guard)


def _match(pattern: Any, value: Any, tensors: list[Any]) -> bool:
    if type(pattern) is TensorGuard:
        tensors.append(value)
        return pattern.holds(value)
    if type(pattern) is ObjectPattern:
        return is_same(pattern.value, value)
    kind, members = pattern
    if type(value) is not kind:
        return False
    if type(members) is dict:
        return _match_dict(members, value if kind is dict else record_fields(value), tensors)
    return _match_all(members, value, tensors)


def _match_all(patterns: list[Any], values: Sequence[Any], tensors: list[Any]) -> bool:
    if len(patterns) != len(values):
        return False
    return all(_match(pattern, values[i], tensors) for i, pattern in enumerate(patterns))


def _match_dict(patterns: dict[Any, Any], values: dict[Any, Any], tensors: list[Any]) -> bool:
    if list(patterns) != list(values):
        return False
    return all(_match(pattern, values[key], tensors) for key, pattern in patterns.items())


def _difference(pattern: Any, value: Any, name: str) -> str:
    if type(pattern) is TensorGuard and isinstance(value, Tensor):
        return f"the {difference(pattern, value)} of {name}"
    if type(pattern) is ObjectPattern and (is_plain_value(value) and is_plain_value(pattern.value)):
        return f"{name} changed from {pattern.value!r} to {value!r}"
    return f"the structure or identity of {name} changed"
