"""Structures that are the same for several sizes except for numbers, which are expressions of the sizes."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from retrograd.backend import array_programs
from retrograd.compiler.output_tree import Constant, Rebuilt
from retrograd.compiler.plain_values import is_plain_value, is_same
from retrograd.compiler.program import Add, Call, Eager, External, Result, SetData, SetGrad, Slot, Write
from retrograd.foundation.symbolic_expr import Expression, Point, Quotient, fit, fit_quotients

_RECORDS = (Call, Write, Add, SetGrad, SetData, Eager, Result, Constant, Rebuilt)


class MismatchError(Exception):
    """The structures differ in more than numbers, or in numbers that no known expression of the sizes gives."""


@dataclasses.dataclass(slots=True, eq=False)
class _Number:
    """A number that depends on sizes; `make` converts the value of the expression."""

    expression: Expression | Quotient
    make: Callable[[Any], Any]

    def at(self, point: Point) -> Any:
        """Return the number for these sizes."""
        found = self.expression
        return self.make(found.left / found.right.at(point) if isinstance(found, Quotient) else found.at(point))


@dataclasses.dataclass(slots=True, eq=False)
class _Parts:
    """An object of which some members depend on sizes: `make(members)`."""

    members: list[Any]
    make: Callable[[list], Any]


class SizeTemplate:
    """A structure with expressions of sizes in place of the numbers that differ between examples.

    `points` are the sizes of the examples, each by its symbol; `names` the names of their tensors from outside, by id.
    Raises MismatchError if there is no template of all examples.
    """

    def __init__(self, examples: Sequence[Any], points: Sequence[Point], names: Sequence[dict[int, str]]) -> None:
        self._points, self._names = points, names
        self._known: dict[tuple[int, ...], Any] = {}  # by the ids of the members of examples
        self._fits: dict[tuple, Any] = {}
        self._template = self._unify(examples)

    def at(self, point: Point) -> Any:
        """Return the structure for these sizes; parts that do not depend on them are those of the first example."""
        return _filled(self._template, point, {})

    def _unify(self, values: Sequence[Any]) -> Any:
        """Return the template of values that have the same position in the examples."""
        first = values[0]
        if all(value is first for value in values):
            return first
        key = tuple(map(id, values))
        if key not in self._known:
            if any(type(value) is not type(first) for value in values):
                raise MismatchError("a value is of another type")
            self._known[key] = self._unify_alike(first, values)
        return self._known[key]

    def _unify_alike(self, first: Any, values: Sequence[Any]) -> Any:
        kind = type(first)
        if isinstance(first, External):
            return self._unify_externals(first, values)
        if isinstance(first, _RECORDS):
            names = [field.name for field in dataclasses.fields(first)]
            return self._unify_members(values, lambda v: [getattr(v, n) for n in names], lambda made: kind(*made))
        if kind is dict:
            keys = list(first)
            if any(list(value) != keys for value in values):
                raise MismatchError("a dict has other keys")
            return self._unify_members(values, lambda v: v.values(), lambda made: dict(zip(keys, made, strict=True)))
        if kind in (list, tuple):
            return self._unify_members(values, list, kind)
        if kind is slice:
            return self._unify_members(values, lambda v: (v.start, v.stop, v.step), lambda made: slice(*made))
        if kind is partial:
            return self._unify_members(
                values, lambda v: (v.func, v.args, v.keywords), lambda made: partial(made[0], *made[1], **made[2])
            )
        if array_programs.is_plain(first):
            return self._unify_arrays(values)
        return self._unify_numbers(values)

    def _unify_members(self, values: Sequence[Any], members: Callable, make: Callable[[list], Any]) -> Any:
        columns = [[*members(value)] for value in values]
        if any(len(column) != len(columns[0]) for column in columns):
            raise MismatchError("a container has another length")
        made = [self._unify(row) for row in zip(*columns, strict=True)]
        return _Parts(made, make) if any(isinstance(m, _Parts | _Number) for m in made) else values[0]

    def _unify_externals(self, first: External, values: Sequence[External]) -> External:
        """Return the first external tensor, if the others have its name."""
        names = {known.get(id(e.tensor)) for known, e in zip(self._names, values, strict=True)}
        if len(names) > 1 or None in names or any(e.slot != first.slot for e in values):
            raise MismatchError("a tensor from outside is another one")
        return first

    def _unify_arrays(self, values: Sequence[Any]) -> Any:
        """Return a constant array, or the number that it is made from."""
        first = values[0]
        if any(array_programs.layout(a) != array_programs.layout(first) for a in values):
            raise MismatchError("a constant has another shape or dtype")
        if all(a.tobytes() == first.tobytes() for a in values):
            return first
        if first.shape:
            raise MismatchError("a constant has other elements")
        return self._fit([a.item() for a in values], partial(array_programs.number, first.dtype))

    def _unify_numbers(self, values: Sequence[Any]) -> Any:
        """Return a constant that is the same in all examples, or a number that depends on sizes."""
        first = values[0]
        if type(first) is Slot and all(value == first for value in values):
            return first
        if is_plain_value(first):
            if all(is_same(value, first) for value in values):
                return first
            if type(first) in (int, float):
                return self._fit(values, type(first))
        elif callable(first) and all(value == first for value in values):
            return first
        raise MismatchError(f"a {type(first).__name__} differs")

    def _fit(self, values: Sequence[Any], make: Callable[[Any], Any]) -> _Number:
        key = tuple(values)
        if key not in self._fits:
            self._fits[key] = self._find_expression(values)
        if self._fits[key] is None:
            raise MismatchError("a number depends on sizes in an unknown way")
        return _Number(self._fits[key], make)

    def _find_expression(self, values: Sequence[Any]) -> Expression | Quotient | None:
        if all(float(value).is_integer() for value in values):
            return fit(self._points, [int(value) for value in values])
        return next(fit_quotients(self._points, values), None)


def _filled(template: Any, point: Point, made: dict[int, Any]) -> Any:
    """Return a template with numbers for expressions; `made` has the parts that occur several times."""
    if isinstance(template, _Number):
        return template.at(point)
    if not isinstance(template, _Parts):
        return template
    if id(template) not in made:
        made[id(template)] = template.make([_filled(member, point, made) for member in template.members])
    return made[id(template)]
