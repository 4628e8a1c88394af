"""Schemas of custom operators: lists of tensors anywhere, mutation marks, structured results."""

from collections import namedtuple
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from retrograd.core.dtype import DType
from retrograd.core.schema import REQUIRED, Parameter, Schema

LENGTHS = "_lengths"  # the param with the lengths of a call's lists of tensors
RESERVED = (LENGTHS, "randomness")  # names of internal params
Returns = str | tuple  # the type of a result, or a tuple of types


class CustomSchema(Schema):
    """A schema with lists of tensors anywhere, mutation marks and nested results.

    If the lengths of lists of tensors do not follow from the number of all tensors, a call has a param with them.
    """

    def __init__(self, name: str, parameters: tuple, results: Returns, mutated: tuple[str, ...]) -> None:
        super().__init__(name, parameters, "Tensor" if results == "Tensor" else "any")
        self.results = results
        self.mutated = mutated
        self.by_position = tuple([p for p in parameters if not p.keyword_only])
        listed = [p for p in self.inputs if is_list(p)]
        self.variadic = len(listed) == 1 and listed[0] is self.inputs[-1] and listed[0].type == "Tensor[]"
        self.measured = bool(listed) and not self.variadic
        self.plain = not listed and not self.params  # all arguments are single tensors
        self.last_positional = None  # a list is one argument, not the remaining ones

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CustomSchema) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple:
        return self.name, self.parameters, self.results, self.mutated

    def __str__(self) -> str:
        parts: list[str] = []
        for i, p in enumerate(self.parameters):
            if p.keyword_only and "*" not in parts:
                parts.append("*")
            kind = f"Tensor(a{i}!){p.type.removeprefix('Tensor')}" if p.name in self.mutated else p.type
            parts.append(f"{kind} {p.name}" + ("" if p.default is REQUIRED else f"={_literal(p.default)}"))
        return f"{self.name}({', '.join(parts)}) -> {_written(self.results)}"

    @cached_property
    def arguments_type(self) -> Any:
        """The named tuple type of all arguments; names that can't be attributes are replaced by numbers."""
        name = "".join(c if c.isalnum() else "_" for c in self.name)
        return namedtuple(f"{name}_args", [p.name for p in self.parameters], rename=True)

    def _resolve(self, key: str) -> str:
        """Return the name itself: custom operators have no aliases of arguments."""
        if key in self._by_name:
            return key
        raise TypeError(f"{self}: unexpected argument {key!r}")

    def _flatten(self, given: dict) -> tuple:
        flat: list = []
        for p in self.inputs:
            if p.name not in given and p.default is REQUIRED:
                raise TypeError(f"{self}: missing argument {p.name!r}")
            value = given.get(p.name, p.default)
            if not is_list(p):
                flat.append(value)
            elif isinstance(value, (list, tuple)):
                flat += value
            elif value is not None or not p.type.endswith("?"):
                raise TypeError(f"{self.name}(): {p.name} must be a list of tensors, got {type(value).__name__}")
        return tuple(flat)

    def bind(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Return the inputs of a call as one flat tuple, and its params by name; raise TypeError on a mismatch."""
        given = self.given(args, kwargs)
        inputs = self._flatten(given)
        params = {p.name: self._convert(p, given) for p in self.params}
        if self.measured:
            lists = [given.get(p.name, p.default) for p in self.inputs if is_list(p)]
            params[LENGTHS] = tuple([None if v is None else len(v) for v in lists])
        return inputs, params

    def named(self, args: Sequence, params: dict) -> dict[str, Any]:
        """Return all arguments of a call by name, lists of tensors as tuples."""
        if not self.measured:
            return {**self.group(args), **params}
        rest, lengths = iter(args), iter(params[LENGTHS])
        found = {p.name: _next(p, rest, lengths) for p in self.inputs}
        return {**found, **{name: value for name, value in params.items() if name != LENGTHS}}

    def values(self, args: Sequence, params: dict) -> tuple:
        """Return all arguments of a call in the order of the schema, lists as lists."""
        if self.plain:
            return tuple(args)
        named = self.named(args, params)
        return tuple([_as_list(p, named[p.name]) for p in self.parameters])

    def marks(self, marks: Sequence[bool], params: dict) -> tuple:
        """Return the marks of the flat inputs by argument: one, or a list of them; False for non-tensors."""
        if self.plain:
            return tuple(marks)
        named = self.named(marks, params)
        given = [named[p.name] if p.is_tensor else None for p in self.by_position]
        return tuple([False if g is None else _as_list(p, g) for p, g in zip(self.by_position, given, strict=True)])

    def place(self, number: int, count: int, params: dict) -> str:
        """Return the name of a flat input, such as "x" or "ys[2]"."""
        names: list[str] = []
        named = self.named(range(count), params)
        for p in self.inputs:
            names += [f"{p.name}[{i}]" for i in range(len(named[p.name] or ()))] if is_list(p) else [p.name]
        return names[number]


def is_list(p: Parameter) -> bool:
    """Return whether an argument is a list."""
    return "[]" in p.type


def _as_list(p: Parameter, value: Any) -> Any:
    return list(value) if value is not None and is_list(p) else value


def _next(p: Parameter, rest: Any, lengths: Any) -> Any:
    if not is_list(p):
        return next(rest)
    length = next(lengths)
    return None if length is None else tuple([next(rest) for _ in range(length)])


def _literal(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return value.name if isinstance(value, DType) else repr(value)


def _written(results: Returns) -> str:
    if isinstance(results, str):
        return results
    comma = "," if len(results) == 1 else ""  # without it, parentheses would only group
    return f"({', '.join(map(_written, results))}{comma})"
