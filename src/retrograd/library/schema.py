"""Schemas of custom operators: lists of tensors anywhere, marks of shared memory, structured results."""

from collections import namedtuple
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from retrograd.core import Tensor
from retrograd.core.device import device
from retrograd.core.errors import OperandTypeError
from retrograd.core.schema import REQUIRED, Parameter, Schema, written_results

LENGTHS = "_lengths"  # the param with the lengths of a call's lists of tensors
Results = str | tuple  # the type of a result, or a tuple of types


class CustomSchema(Schema):
    """A schema with lists of tensors anywhere, marks of shared memory and nested results.

    If the lengths of lists of tensors do not follow from the number of all tensors, a call has a param with them.

    Results that are written arguments, as in `f(Tensor(a!) x) -> Tensor(a!)`, are not among `results`, so the core
    never sees them: `with_returned` adds the user's own tensors to the result of a call.
    """

    reserved = (LENGTHS, "vmap_operands")  # names of internal params
    lists_anywhere = True
    has_alias_annotations = True

    def __init__(
        self, name: str, parameters: Iterable[Parameter], results: Results, outputs: tuple = (), aliases: tuple = ()
    ) -> None:
        super().__init__(name, tuple(map(_with_list, parameters)), results, (), tuple(aliases))
        self.mutated = tuple([p.name for p in self.parameters if p.mutated])
        self.declared_results = results
        self.returned = {index: argument for index, argument in self.aliases if argument in self.mutated}
        self.results = _drop_returned(results, self.returned)
        self.view_of = next((argument for _, argument in self.aliases if argument not in self.mutated), None)
        _check_aliases(self)
        self.by_position = tuple([p for p in self.parameters if not p.keyword_only])
        listed = any(p.is_list for p in self.inputs)
        self.has_lengths = listed and not self.variadic
        self.has_device = any(p.type.startswith("device") for p in self.params)
        self.plain = not listed and not self.params  # all arguments are single tensors
        by_position = all(p.default is REQUIRED and not p.keyword_only for p in self.parameters)
        self.passes_all = self.plain and by_position  # the user's functions get all of them in the order of the inputs
        self.last_positional = None  # a list is one argument, not the remaining ones

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CustomSchema) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple:
        return self.name, self.parameters, self.declared_results, self.aliases

    @property
    def returns(self) -> str:
        """The declared results as text, with the marks of arguments."""
        index_of = {p.name: i for i, p in enumerate(self.parameters)}
        marks = {i: f"(a{index_of[name]}{'!' * (name in self.mutated)})" for i, name in self.aliases}
        return written_results(_annotate_results(self.declared_results, marks))

    def without_returned(self, given: dict[str, Any], result: Any) -> Any:
        """Return a function's result without the arguments that it returns; a RuntimeError if these are others."""
        members = result if isinstance(self.declared_results, tuple) and isinstance(result, tuple) else (result,)
        for index, argument in self.returned.items():
            member = members[index] if index < len(members) else None
            if not (isinstance(member, Tensor) and member.value is given[argument].value):
                tag = "out" if self._by_name[argument].keyword_only else "inplace"
                which = "mutable keyword-only arguments" if tag == "out" else "first argument"
                raise RuntimeError(
                    f"{self.name}: result {index} must be the argument {argument!r}, as the schema says; return it. An "
                    f"operator tagged with rg.Tag.{tag} must return its {which}"
                )
        rest = tuple([m for i, m in enumerate(members) if i not in self.returned])
        return rest or None

    def with_returned(self, result: Any, inputs: Sequence, params: dict) -> Any:
        """Return the result of a call as the schema declares it: with the written arguments that are returned."""
        if not self.returned:
            return result
        named, rest = self.named(inputs, params), iter(result or ())
        if not isinstance(self.declared_results, tuple):
            return named[self.returned[0]]
        count = len(self.declared_results)
        return tuple([named[self.returned[i]] if i in self.returned else next(rest) for i in range(count)])

    def renamed(self, name: str) -> "CustomSchema":
        """Return the schema under another name, after which its type of arguments is named."""
        return CustomSchema(name, self.parameters, self.declared_results, (), self.aliases)

    @cached_property
    def arguments_type(self) -> Any:
        """The named tuple type of all arguments; names that can't be attributes are replaced by numbers."""
        name = "".join(c if c.isalnum() else "_" for c in self.name)
        return namedtuple(f"{name}_args", [p.name for p in self.parameters], rename=True)

    def _resolve(self, key: str) -> str:
        """Return the name itself: custom operators have no aliases of arguments."""
        if key in self._by_name:
            return key
        raise self.unknown_keyword(key)

    def _convert(self, parameter: Parameter, given: dict) -> Any:
        try:
            value = super()._convert(parameter, given)
        except TypeError as error:
            found = type(given[parameter.name]).__name__ if parameter.name in given else None
            raise OperandTypeError(f"{error}; {self.mismatch(parameter, found)}") from None
        return device(value) if parameter.type.startswith("device") and isinstance(value, str) else value

    def bind(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Return the inputs of a call as one flat tuple, and its params by name.

        Raise OperandTypeError, a TypeError and RuntimeError, on a mismatch.
        """
        given = self.given(args, kwargs)
        try:
            inputs = self._flatten(given)
        except TypeError as error:
            absent = next((p for p in self.inputs if p.name not in given and p.default is REQUIRED), None)
            raise OperandTypeError(f"{error}; {self.mismatch(absent, None)}" if absent else str(error)) from None
        params = {p.name: self._convert(p, given) for p in self.params}
        if self.has_lengths:
            lists = [given.get(p.name, p.default) for p in self.inputs if p.is_list]
            params[LENGTHS] = tuple([None if v is None else len(v) for v in lists])
        return inputs, params

    def given(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name, without conversion; raise OperandTypeError if they do not fit."""
        try:
            return super().given(args, kwargs)
        except TypeError as error:
            count, most = len(args), len(self.by_position)
            words = f"; {self.name}() expected at most {most} argument(s) but received {count} argument(s)"
            raise OperandTypeError(f"{error}{words if count > most else ''}") from None

    def mismatch(self, parameter: Parameter, found: str | None) -> str:
        """Return the words of PyTorch for an argument of the class `found`; None if it is missing."""
        if found is None:
            return f"{self.name}() is missing value for argument {parameter.name!r}"
        return (
            f"Expected a value of type {parameter.type!r} for argument {parameter.name!r} but instead found type "
            f"{found!r}"
        )

    def unknown_keyword(self, key: str) -> Exception:
        """Return the error for a keyword that is no argument."""
        return TypeError(f"{super().unknown_keyword(key)}; Unknown keyword argument {key!r} for operator {self.name!r}")

    def named(self, args: Sequence, params: dict) -> dict[str, Any]:
        """Return all arguments of a call by name, lists of tensors as tuples."""
        if not self.has_lengths:
            return {**self.group(args), **params}
        rest, lengths = iter(args), iter(params[LENGTHS])
        found = {p.name: _take_argument(p, rest, lengths) for p in self.inputs}
        return {**found, **{name: value for name, value in params.items() if name != LENGTHS}}

    def values(self, args: Sequence, params: dict) -> tuple:
        """Return all arguments of a call in the order of the schema, lists as lists."""
        if self.plain:
            return tuple(args)
        named = self.named(args, params)
        return tuple([_as_list(p, named[p.name]) for p in self.parameters])

    def count_given(self, args: Sequence, params: dict) -> int:
        """Return the number of positional arguments without the last ones that have their defaults, as in PyTorch."""
        count = len(self.by_position)
        if not count or self.by_position[-1].default is REQUIRED:
            return count
        named = self.named(args, params)
        while count and _is_default(self.by_position[count - 1], named):
            count -= 1
        return count

    def group_flags(self, marks: Sequence[bool], params: dict) -> tuple:
        """Return the marks of the flat inputs by argument: one, or a list of them; False for non-tensors."""
        if self.plain:
            return tuple(marks)
        named = self.named(marks, params)
        given = [named[p.name] if p.is_tensor else None for p in self.by_position]
        return tuple([False if g is None else _as_list(p, g) for p, g in zip(self.by_position, given, strict=True)])

    def input_name(self, number: int, count: int, params: dict) -> str:
        """Return the name of a flat input, such as "x" or "ys[2]"."""
        names: list[str] = []
        named = self.named(range(count), params)
        for p in self.inputs:
            names += [f"{p.name}[{i}]" for i in range(len(named[p.name] or ()))] if p.is_list else [p.name]
        return names[number]


def _with_list(p: Parameter) -> Parameter:
    """Return an argument whose default is the list that kernels get, if the schema gives one integer for it."""
    return p._replace(default=(p.default,)) if p.is_list and isinstance(p.default, int) else p


def _is_default(p: Parameter, named: dict) -> bool:
    value = named[p.name]
    return p.default is not REQUIRED and (value is p.default or (not p.is_tensor and value == p.default))


def _as_list(p: Parameter, value: Any) -> Any:
    return list(value) if value is not None and p.is_list else value


def _take_argument(p: Parameter, rest: Any, lengths: Any) -> Any:
    if not p.is_list:
        return next(rest)
    length = next(lengths)
    return None if length is None else tuple([next(rest) for _ in range(length)])


def _drop_returned(results: Results, returned: Iterable[int]) -> Results:
    """Return the declared results except those that are written arguments."""
    if not returned:
        return results
    return tuple([r for i, r in enumerate(results) if i not in returned]) if isinstance(results, tuple) else ()


def _annotate_results(results: Results, marks: dict[int, str]) -> Results:
    """Return the types of results with the marks of some of them: "Tensor(a0!)"."""
    if isinstance(results, str):
        return results.replace("Tensor", f"Tensor{marks.get(0, '')}", 1)
    return tuple([_annotate_results(r, {0: marks[i]}) if i in marks else r for i, r in enumerate(results)])


def _check_aliases(schema: CustomSchema) -> None:
    """Raise unless results with marks are as arguments with the same mark, and a view is one that can be replayed."""
    kinds = {p.name: p.type for p in schema.parameters}
    results = schema.declared_results if isinstance(schema.declared_results, tuple) else (schema.declared_results,)
    for index, argument in schema.aliases:
        if kinds[argument] != "Tensor" or results[index] != "Tensor":
            raise NotImplementedError(
                f"{schema}: a result that is an argument, or a view of one, is a Tensor, and so is the argument"
            )
    if schema.view_of is None:
        return
    inputs = [p.name for p in schema.inputs]
    if schema.results != "Tensor" or inputs != [schema.view_of] or schema.parameters[0].name != schema.view_of:
        raise NotImplementedError(
            f"{schema}: an operator that returns a view has one tensor, its first argument, and no other result"
        )
