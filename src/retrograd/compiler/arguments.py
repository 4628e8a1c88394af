"""Guards of a call's arguments, and of the tensors that it uses."""

from collections.abc import Sequence
from typing import Any

from retrograd.backend import array_programs
from retrograd.compiler.plain_values import is_plain_value, is_same
from retrograd.core import Tensor
from retrograd.core.tensor import INFERENCE
from retrograd.core.views import requires_grad_synced


class TensorGuard:
    """The properties of a tensor that a program takes for granted: all except its values."""

    __slots__ = (
        "dtype",
        "grad_guard",
        "has_hooks",
        "inference",
        "is_leaf",
        "is_view",
        "kind",
        "requires_grad",
        "shape",
        "strides",
    )

    def __init__(self, t: Any, with_grad: bool = True) -> None:
        self.kind = type(t)
        self.shape, self.dtype, self.strides = array_programs.layout(t.value)
        self.requires_grad, self.is_leaf, self.is_view = (
            requires_grad_synced(t),
            t._grad_fn is None,
            t._view is not None,
        )
        self.inference, self.has_hooks = t.version is INFERENCE, t._hooks is not None
        self.grad_guard = TensorGuard(t._grad, False) if with_grad and is_ordinary(t._grad) else None

    def holds(self, t: Any) -> bool:
        """Return whether a tensor is of this kind."""
        if type(t) is not self.kind or t.level is not None or t._requires_grad is not self.requires_grad:
            return False
        # A write to the base may have changed what a view requires; only views pay for asking.
        if t._view is not None and requires_grad_synced(t) is not self.requires_grad:
            return False
        array = t.value
        return (
            array_programs.is_plain(array)
            and array.shape == self.shape
            and array.dtype == self.dtype
            and array.strides == self.strides
            and (t._grad_fn is None) is self.is_leaf
            and (t._view is not None) is self.is_view
            and (t._hooks is not None) is self.has_hooks
            and (t.version is INFERENCE) is self.inference
            and (t._grad is None if self.grad_guard is None else self._holds_grad(t._grad))
        )

    def _holds_grad(self, grad: Any) -> bool:
        return grad is not None and self.grad_guard is not None and self.grad_guard.holds(grad)

    def difference(self, t: Any) -> str:
        """Return the first property in which a tensor differs, in words."""
        shape, dtype, strides = array_programs.layout(t.value)
        for name, mine, its in (
            ("shape", self.shape, shape),
            ("dtype", self.dtype, dtype),
            ("strides", self.strides, strides),
            ("requires_grad", self.requires_grad, t.requires_grad),
        ):
            if mine != its:
                return f"{name} changed from {mine} to {its}"
        if (t._grad is None) is not (self.grad_guard is None):
            return f".grad changed from {'None' if self.grad_guard is None else 'a tensor'}"
        return "position in a graph, hooks or .grad changed"


def is_ordinary(t: Any) -> bool:
    """Return whether a tensor is one of the ground, in the memory of an array of NumPy's."""
    return isinstance(t, Tensor) and t.level is None and not t._overrides and array_programs.is_plain(t.value)


class _Object:
    """The pattern of an argument that is no container, tensor or plain value: this object itself."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class ArgumentGuards:
    """The pattern of the arguments of a call: containers, plain values, objects, and the guards of tensors."""

    def __init__(self, args: tuple, kwargs: dict[str, Any]) -> None:
        self.tensors: list[Any] = []
        self.objects: list[tuple[str, Any]] = []
        self.containers: list[Any] = []
        self.refusal = ""
        self._args = [self._pattern(a, f"argument {i}") for i, a in enumerate(args)]
        self._kwargs = {name: self._pattern(a, f"argument {name!r}") for name, a in kwargs.items()}
        self._same = _repetitions(self.tensors)
        # A program for different tensors does not compute the sum of gradients that a tensor given twice gets.
        self._identity = any(t.requires_grad for t in self.tensors)

    def _pattern(self, value: Any, name: str) -> Any:
        kind = type(value)
        if isinstance(value, Tensor):
            if not is_ordinary(value):
                self.refusal = self.refusal or f"{name} is no plain tensor of the ground"
                return _Object(value)
            self.tensors.append(value)
            return TensorGuard(value)
        if is_plain_value(value):
            return _Object(value)
        if kind in (list, tuple):
            self.containers.append(value)
            return kind, [self._pattern(v, f"{name}[{i}]") for i, v in enumerate(value)]
        if kind is dict:
            self.containers.append(value)
            return kind, {key: self._pattern(v, f"{name}[{key!r}]") for key, v in value.items()}
        self.objects.append((name, value))
        return _Object(value)

    def match(self, args: tuple, kwargs: dict[str, Any]) -> list[Any] | None:
        """Return the tensors among the arguments if the program is for such arguments; else None."""
        tensors: list[Any] = []
        if not _match_all(self._args, args, tensors):
            return None
        if (kwargs or self._kwargs) and not _match_dict(self._kwargs, kwargs, tensors):
            return None
        # The program has one operand for repeated arguments, so they must repeat again.
        for i, j in self._same:
            if tensors[i].value is not tensors[j].value:
                return None
        if self._identity and _repetitions(tensors) != self._same:
            return None
        return tensors

    def is_unchanged(self, args: tuple, kwargs: dict[str, Any]) -> bool:
        """Return whether the arguments have the same members as when the guards were made, whatever their values."""
        now = ArgumentGuards(args, kwargs)
        same = [a is b for a, b in zip(self.tensors, now.tensors, strict=False)]
        return len(self.tensors) == len(now.tensors) and all(same) and _is_alike(self._args, now._args)

    def find_difference(self, args: tuple, kwargs: dict[str, Any]) -> str:
        """Return which argument does not match, in words; "" if all do."""
        if len(args) != len(self._args) or list(kwargs) != list(self._kwargs):
            return "the number or names of the arguments changed"
        pairs = [*zip(self._args, args, [f"argument {i}" for i in range(len(args))], strict=True)]
        pairs += [(self._kwargs[name], value, f"argument {name!r}") for name, value in kwargs.items()]
        for pattern, value, name in pairs:
            if not _match(pattern, value, []):
                return _difference(pattern, value, name)
        return "tensors that were different are the same now, or the other way round"


def _repetitions(tensors: Sequence[Any]) -> list[tuple[int, int]]:
    """Return the pairs of tensors with the same array, each with the first one that has it."""
    first: dict[int, int] = {}
    pairs = []
    for i, t in enumerate(tensors):
        j = first.setdefault(id(t.value), i)
        if j != i:
            pairs.append((j, i))
    return pairs


def _is_alike(one: Any, other: Any) -> bool:
    """Return whether two patterns are of the same containers and values."""
    if type(one) is not type(other):
        return False
    if type(one) is dict:
        return list(one) == list(other) and all(_is_alike(one[key], other[key]) for key in one)
    if type(one) in (list, tuple):
        return len(one) == len(other) and all(map(_is_alike, one, other))
    return type(one) is TensorGuard or (one is other if type(one) is type else is_same(one.value, other.value))


def _match(pattern: Any, value: Any, tensors: list[Any]) -> bool:
    if type(pattern) is TensorGuard:
        tensors.append(value)
        return pattern.holds(value)
    if type(pattern) is _Object:
        return is_same(pattern.value, value)
    kind, members = pattern
    if type(value) is not kind:
        return False
    return _match_dict(members, value, tensors) if kind is dict else _match_all(members, value, tensors)


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
        return f"the {pattern.difference(value)} of {name}"
    if type(pattern) is _Object and (is_plain_value(value) and is_plain_value(pattern.value)):
        return f"{name} changed from {pattern.value!r} to {value!r}"
    return f"the structure or identity of {name} changed"
