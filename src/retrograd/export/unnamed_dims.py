"""Dimensions without names, `Dim.AUTO` and `Dim.DYNAMIC`: which of them vary, and which have the same size."""

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from retrograd.export.dynamic_shapes import Dim, InputDim, Range, intersect_ranges, is_hint, linear
from retrograd.foundation.symbolic_expr import Expression

LARGE_CLASS = 6  # of more dimensions of the same size, only single ones are tried apart from the others

Classes = tuple[tuple[InputDim, ...], ...]  # those in one class have the same size in each call


class DeclaredDims(NamedTuple):
    """The declarations of the dimensions of inputs, as `collect_dims` returns them, and the example's sizes."""

    entries: Mapping[InputDim, Dim]
    expressions: Mapping[InputDim, Expression]
    ranges: Mapping[str, Range]
    sizes: Mapping[InputDim, int]

    @property
    def unnamed(self) -> list[InputDim]:
        """Return the dimensions without names."""
        return [p for p, entry in self.entries.items() if is_hint(entry, Dim.AUTO) or is_hint(entry, Dim.DYNAMIC)]

    @property
    def automatic(self) -> list[InputDim]:
        """Return the dimensions that vary only if the program allows it."""
        return [place for place, entry in self.entries.items() if is_hint(entry, Dim.AUTO)]

    def separate(self) -> Classes:
        """Return a class for each dimension without a name."""
        return tuple([(place,) for place in self.unnamed])

    def joined(self) -> Classes:
        """Return classes of the dimensions of the same size in the example, each with one name at most."""
        found: dict[int, list[InputDim]] = {}
        for place, entry in self.entries.items():
            members = found.setdefault(self.sizes[place], [])
            if place in self.unnamed or (entry.parts()[1:] == (1, 0) and not set(members) - set(self.unnamed)):
                members.append(place)
        return tuple([tuple(members) for members in found.values() if set(members) & set(self.unnamed)])

    def with_classes(self, classes: Classes) -> tuple[dict[InputDim, Expression], dict[str, Range]]:
        """Return expressions and ranges if the classes' dimensions have one name each, and others without one stay."""
        unnamed = set(self.unnamed)
        names = {place: self._name(members) for members in classes for place in members}
        expressions = {
            place: linear(names[place]) if place in names else size
            for place, size in self.expressions.items()
            if place in names or place not in unnamed
        }
        each: dict[str, list[Range]] = {}
        for place, expression in expressions.items():
            [name], [own] = expression.dims, self.expressions[place].dims
            each.setdefault(name, []).append(self.ranges[own])
        return expressions, {name: intersect_ranges(ranges) for name, ranges in each.items()}

    def _name(self, members: tuple[InputDim, ...]) -> str:
        """Return the declared name of a class, or that of its first dimension."""
        first = next((place for place in members if place not in self.unnamed), members[0])
        return next(iter(self.expressions[first].dims))


def infer_unnamed(declared: DeclaredDims, infer: Callable[..., Any]) -> Any:
    """Return what `infer` returns for expressions and ranges of which it raises no ValueError.

    Dimensions without names are independent if the program allows it; otherwise those of the same size in the example
    are equal as far as it needs them to be; otherwise `AUTO` ones keep the example's size where they cannot vary.
    """
    attempt = _Attempts(declared, infer)
    found = attempt.run(declared.separate())
    if found is not None or not declared.unnamed:
        return attempt.result(found)
    classes = declared.joined()
    found = attempt.run(classes)
    if found is None and declared.automatic:
        classes, found = _with_automatic(attempt, classes)
    while found is not None:
        better = next(((split, r) for split in _splits(declared, classes) if (r := attempt.run(split))), None)
        if better is None:
            break
        classes, found = better
    return attempt.result(found)


class _Attempts:
    """Calls of `infer` with several classes, and the error of the first one that failed."""

    def __init__(self, declared: DeclaredDims, infer: Callable[..., Any]) -> None:
        self._declared, self._infer = declared, infer
        self._refused: ValueError | None = None

    def run(self, classes: Classes) -> Any:
        """Return the result with these classes; None if it is refused."""
        try:
            return self._infer(*self._declared.with_classes(classes))
        except ValueError as error:
            self._refused = self._refused or error
            return None

    def result(self, found: Any) -> Any:
        """Return a result; raise the first error if there is none."""
        if found is None:
            assert self._refused is not None
            raise self._refused
        return found


def _with_automatic(attempt: _Attempts, classes: Classes) -> tuple[Classes, Any]:
    """Return the classes without the `AUTO` dimensions that cannot vary, and the result with them."""
    declared = attempt._declared
    automatic = set(declared.automatic)
    kept = [tuple([p for p in members if p not in automatic]) for members in classes]
    known = tuple([members for members in kept if set(members) & set(declared.unnamed)])
    found = attempt.run(known)
    for members in classes:
        others = tuple([own for own in known if not set(own) & set(members)])
        if set(members) & automatic and (result := attempt.run((*others, members))) is not None:
            known, found = (*others, members), result
    return known, found


def _splits(declared: DeclaredDims, classes: Classes) -> Iterator[Classes]:
    """Yield the classes with one or two dimensions in a class of their own."""
    for members in classes:
        free = [place for place in members if place in declared.unnamed]
        for count in (1, 2) if len(members) <= LARGE_CLASS else (1,):
            for group in combinations(free, count):
                rest = tuple([place for place in members if place not in group])
                if rest:
                    yield (*[other for other in classes if other != members], rest, group)
