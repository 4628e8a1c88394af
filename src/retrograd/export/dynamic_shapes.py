"""Dimensions that may vary: the declarations of `dynamic_shapes`, and the signature that checks sizes at each call."""

import keyword
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import optree

from retrograd.core import Tensor
from retrograd.export.traced_size import COMPARISONS
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.foundation.symbolic_expr import Expression
from retrograd.fx.signature import Constant, Input, Signature


class Range(NamedTuple):
    """The sizes that a dimension may have; `assumed` means that the user did not give the minimum."""

    min: int
    max: int | None = None
    assumed: bool = False

    def __contains__(self, size: object) -> bool:
        return isinstance(size, int) and self.min <= size and (self.max is None or size <= self.max)

    def __repr__(self) -> str:
        return f"[{self.min}, {'inf' if self.max is None else self.max}]"


class Dim:
    """A dimension whose size may differ from call to call, from `min` to `max`, both included.

    Dimensions with the same Dim, or Dims of the same name, have the same size in each call. Without `max`
    it is unbounded; without `min` it is at least 1, or 2 if the program does not support 1. Raises ValueError for
    a name that is not an identifier and for an empty range.

    A Dim times a positive integer, and plus or minus an integer, is a derived dimension: `2 * Dim("half")`
    has even sizes. NotImplementedError for other arithmetic.

    `Dim.DYNAMIC` is a dimension without a name and bounds, `Dim.AUTO` too if the program supports it, and
    `Dim.STATIC`, like None, one with the example's size. `Dim.AUTO(min=2, max=8)` has bounds. Dimensions without names
    have the same size in each call if they have it in the example, and the program needs it.

    >>> Dim("batch", max=64)
    Dim('batch', min=1, max=64)
    >>> 2 * Dim("half", max=8) + 1
    2*half + 1
    """

    AUTO: "Hint"
    DYNAMIC: "Hint"
    STATIC: "Hint"

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"Dim: the name must be an identifier, got {name!r}")
        if (min or 0) < 0 or (max is not None and max < (min or 1)):
            raise ValueError(f"Dim: {name} ranges from {min} to {max}, which has no size")
        self.name = self.__name__ = name
        self.range = Range(1 if min is None else min, max, min is None)

    @property
    def min(self) -> int:
        """Return the minimum size."""
        return self.range.min

    @property
    def max(self) -> int | None:
        """Return the maximum size; None if there is none."""
        return self.range.max

    def __mul__(self, other: int) -> "DerivedDim":
        return DerivedDim(self, other, 0)

    def __add__(self, other: int) -> "DerivedDim":
        return DerivedDim(self, 1, other)

    def __sub__(self, other: int) -> "DerivedDim":
        return DerivedDim(self, 1, -other if isinstance(other, int) else other)

    __rmul__ = __mul__
    __radd__ = __add__

    def parts(self) -> tuple["Dim", int, int]:
        """Return the Dim it derives from, the factor and the offset."""
        return self, 1, 0

    def __repr__(self) -> str:
        return f"Dim({self.name!r}, min={self.min}, max={self.max})"


class DerivedDim(Dim):
    """A dimension whose size is `factor * root + offset`, the result of `Dim` arithmetic."""

    def __init__(self, root: Dim, factor: int, offset: int) -> None:
        valid = (type(factor), type(offset)) == (int, int) and factor > 0 and not isinstance(root, Hint)
        if not valid:
            raise NotImplementedError(
                f"Dim: a size may be a Dim times a positive integer, plus or minus an integer, got {root!r} with "
                f"{factor!r} and {offset!r}"
            )
        inner, first, last = root.parts()
        self.root, self.factor, self.offset = inner, first * factor, last * factor + offset
        self.name = self.__name__ = repr(linear(inner.name, self.factor, self.offset))
        if self.factor * inner.min + self.offset < 0:
            raise ValueError(f"Dim: {self.name} would be negative where {inner.name} is {inner.min}; give that a min")
        most = None if inner.max is None else self.factor * inner.max + self.offset
        self.range = Range(self.factor * inner.min + self.offset, most, inner.range.assumed)

    def parts(self) -> tuple[Dim, int, int]:
        """Return the Dim it derives from, the factor and the offset."""
        return self.root, self.factor, self.offset

    def __repr__(self) -> str:
        return self.name


def linear(name: str, factor: int = 1, offset: int = 0) -> Expression:
    """Return factor * name + offset."""
    return Expression(((factor, (name,)), *([(offset, ())] if offset else [])))


class Hint(Dim):
    """A dimension without a name: `Dim.AUTO`, `Dim.DYNAMIC` or `Dim.STATIC`; a call adds bounds."""

    def __call__(self, min: int | None = None, max: int | None = None) -> "Hint":
        return Hint(self.name, min=min, max=max)

    def __repr__(self) -> str:
        return f"Dim.{self.name}"


Dim.AUTO, Dim.DYNAMIC, Dim.STATIC = Hint("AUTO"), Hint("DYNAMIC"), Hint("STATIC")


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Return a Dim of each name, with the same range.

    >>> dims("batch", "time", max=8)
    (Dim('batch', min=1, max=8), Dim('time', min=1, max=8))
    """
    return tuple([Dim(name, min=min, max=max) for name in names])


class InputDim(NamedTuple):
    """A dimension of an input."""

    input: str
    dim: int

    def __repr__(self) -> str:
        return f"{self.input}, dimension {self.dim}"


class Guard(NamedTuple):
    """A comparison of sizes in the traced code, on whose result the trace depends."""

    op: str
    left: Expression
    right: Expression
    outcome: bool
    line: str

    def holds(self, point: Mapping[str, int]) -> bool:
        """Return whether the result is the same for these sizes."""
        return COMPARISONS[self.op](self.left.at(point), self.right.at(point)) == self.outcome

    def __repr__(self) -> str:
        return f"{self.left} {self.op} {self.right} is {self.outcome}, asked at {self.line}"


def solve_for_dim(expression: Expression, size: int) -> tuple[int, int]:
    """Return the dimension for which a linear expression has this value, and the remainder."""
    offset = expression.at(dict.fromkeys(expression.dims, 0))
    return divmod(size - offset, expression.terms[0][0])


class Sizes:
    """The varying dimensions of the inputs: expressions by position, ranges by name, and guards."""

    def __init__(
        self, places: dict[InputDim, Expression], ranges: dict[str, Range], guards: tuple[Guard, ...] = ()
    ) -> None:
        self.places = places
        self.ranges = ranges
        self.guards = guards

    def point(self, tensors: Mapping[str, Tensor]) -> dict[str, int]:
        """Return the size of every varying dimension; ValueError for a size that is not allowed."""
        first: dict[str, InputDim] = {}
        found: dict[str, int] = {}
        for place, expression in self.places.items():
            actual = tensors[place.input].shape[place.dim]
            [name] = expression.dims
            size, rest = solve_for_dim(expression, actual) if isinstance(actual, int) else (actual, 0)
            if rest:
                raise ValueError(f"{place}: must be {expression} for an integer {name}, got {actual}")
            if size not in self.ranges[name]:
                of = "" if size == actual else f" ({name} = {size})"
                raise ValueError(f"{place}: {name} must be in {self.ranges[name]}, got {actual}{of}")
            if found.setdefault(name, int(size)) != size:
                raise ValueError(f"{place}: {name} is {found[name]} in {first[name]}, but {size} here")
            first.setdefault(name, place)
        return found

    def check(self, point: Mapping[str, int]) -> None:
        """Raise ValueError if the traced code would take another branch for these sizes."""
        for guard in self.guards:
            if not guard.holds(point):
                sizes = ", ".join(f"{name} = {point[name]}" for name in sorted(guard.left.dims | guard.right.dims))
                raise ValueError(
                    f"{sizes}: {guard.line} asked {guard.left} {guard.op} {guard.right}, which was {guard.outcome} "
                    f"when this code was traced and is not now; another branch might be taken. Export again for such "
                    f"sizes."
                )


def common_sizes(each: Sequence[Sizes]) -> Sizes:
    """Return the sizes that several captures of a module permit; ValueError if other dimensions vary in them."""
    first = each[0]
    if any(other.places != first.places for other in each):
        raise ValueError("branches: a dimension may vary in one of them only; keep its size with Dim.STATIC")
    ranges = {name: intersect_ranges([one.ranges[name] for one in each]) for name in first.ranges}
    return Sizes(first.places, ranges, tuple(dict.fromkeys(guard for one in each for guard in one.guards)))


def intersect_ranges(ranges: Sequence[Range]) -> Range:
    """Return the sizes that are in all of several ranges."""
    largest = [limits.max for limits in ranges if limits.max is not None]
    return ranges[0]._replace(min=max(limits.min for limits in ranges), max=min(largest, default=None))


class DynamicSignature(Signature):
    """A signature that lets the sizes of some dimensions vary.  See `Signature`."""

    sizes: Sizes

    @classmethod
    def of(cls, expected: Signature, sizes: Sizes) -> "DynamicSignature":
        """Return the signature of an example with the dimensions that may vary."""
        dynamic = cls.__new__(cls)
        dynamic.__dict__.update(expected.__dict__)
        dynamic.sizes = sizes
        return dynamic

    def flatten(self, args: tuple, kwargs: dict[str, Any]) -> list[Tensor]:
        """Return the tensors among the arguments; ValueError names the first that does not fit the program."""
        tensors = super().flatten(args, kwargs)
        named = {expected.name: x for expected, x in zip(self.inputs, tensors, strict=True)}
        self.sizes.check(self.sizes.point(named))
        return tensors

    def check(self, leaf: Any, expected: Input | Constant) -> None:
        """Raise ValueError if a leaf differs from the example's, except for varying sizes."""
        if isinstance(expected, Input) and isinstance(leaf, Tensor) and leaf.ndim == expected.aval.ndim:
            free = [d for d in range(leaf.ndim) if InputDim(expected.name, d) in self.sizes.places]
            shape = tuple([leaf.shape[d] if d in free else s for d, s in enumerate(expected.aval.shape)])
            expected = Input(expected.name, type(expected.aval)(shape, expected.aval.dtype))
        super().check(leaf, expected)


# ---------------------------------------------------------------------------------------------- declarations


def iter_declarations(spec: Any, arguments: Mapping[str, Any]) -> Iterator[tuple[str, Tensor, int, Dim]]:
    """Yield the declarations of `dynamic_shapes`: input name, example, dimension, Dim."""
    for name, of_argument in _by_argument(spec, arguments).items():
        paths, leaves, _ = optree.tree_flatten_with_path(arguments[name])
        _check_form(of_argument, arguments[name], name)
        for path, leaf in zip(paths, leaves, strict=True):
            of_leaf = _leaf_spec(of_argument, path, name)
            if not isinstance(leaf, Tensor):
                continue
            full = "_".join(map(str, (name, *path)))
            for dim, entry in _by_dim(of_leaf, leaf, full):
                yield full, leaf, dim, entry


def _by_argument(spec: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(spec, (tuple, list)):
        if len(spec) > len(arguments):
            names = ", ".join(arguments)
            raise ValueError(f"dynamic_shapes: {len(spec)} entries for {len(arguments)} arguments ({names})")
        return dict(zip(arguments, spec, strict=False))  # defaults, at the end, have none
    if not isinstance(spec, Mapping):
        raise TypeError(f"dynamic_shapes: expected a dict by argument, a tuple or a list, got {spec!r}")
    unknown = [name for name in spec if name not in arguments]
    if unknown:
        raise ValueError(f"dynamic_shapes: {unknown[0]!r} is no argument; these are {', '.join(arguments)}")
    return dict(spec)


def _check_form(spec: Any, value: Any, name: str) -> None:
    """Raise ValueError if a dict has a key that the argument does not have."""
    if isinstance(value, Tensor) or spec is None:
        return
    if isinstance(value, Mapping) and isinstance(spec, Mapping):
        for key, member in spec.items():
            if key not in value:
                raise ValueError(f"dynamic_shapes: {name} has no {key!r}")
            _check_form(member, value[key], f"{name}_{key}")
    elif isinstance(value, (tuple, list)) and isinstance(spec, (tuple, list)) and len(spec) != len(value):
        raise ValueError(f"dynamic_shapes: {name} has {len(value)} members, got {len(spec)} entries")


def _leaf_spec(spec: Any, path: tuple, name: str) -> Any:
    """Return the part of an argument's declaration for one leaf."""
    for step in path:
        if spec is None:
            return None
        if isinstance(spec, Mapping):
            spec = spec.get(step)
        elif isinstance(spec, (tuple, list)) and isinstance(step, int):
            spec = spec[step]
        else:
            raise ValueError(f"dynamic_shapes: {name} is nested, got {spec!r} where {step!r} is to be found")
    return spec


def _by_dim(spec: Any, example: Tensor, name: str) -> Iterator[tuple[int, Dim]]:
    for dim, entry in _entries(spec, example, name):
        if dim not in range(-example.ndim, example.ndim):
            raise ValueError(f"dynamic_shapes: {name} has {example.ndim} dimensions, got dimension {dim}")
        if isinstance(entry, Dim) and not is_hint(entry, Dim.STATIC):
            yield dim % example.ndim, entry
        elif type(entry) is int and entry != example.shape[dim]:
            size = example.shape[dim]
            raise ValueError(f"dynamic_shapes: {name}, dimension {dim}: {entry} given, but the example has {size}")
        elif entry is not None and type(entry) is not int and not isinstance(entry, Dim):
            raise TypeError(f"dynamic_shapes: {name}, dimension {dim}: expected a Dim, an int or None, got {entry!r}")


def _entries(spec: Any, example: Tensor, name: str) -> list[tuple[int, Any]]:
    if spec is None:
        return []
    if isinstance(spec, Mapping):
        return list(spec.items())
    if isinstance(spec, (tuple, list)):
        if len(spec) != example.ndim:
            raise ValueError(f"dynamic_shapes: {name} has {example.ndim} dimensions, got {len(spec)} entries")
        return list(enumerate(spec))
    raise TypeError(f"dynamic_shapes: {name}: expected a dict by dimension, a tuple or a list, got {spec!r}")


def is_hint(entry: Dim, hint: Hint) -> bool:
    """Return whether a dimension is `Dim.AUTO`, `Dim.DYNAMIC` or `Dim.STATIC`, with or without bounds."""
    return isinstance(entry, Hint) and entry.name == hint.name


def collect_dims(
    spec: Any, arguments: Mapping[str, Any]
) -> tuple[dict[InputDim, Dim], dict[InputDim, Expression], dict[str, Range]]:
    """Return the Dims and the size expressions by position, and ranges by name; unnamed dimensions get names."""
    given = {InputDim(name, dim): entry for name, _, dim, entry in iter_declarations(spec, arguments)}
    places: dict[InputDim, Expression] = {}
    ranges: dict[str, Range] = {}
    for place, entry in given.items():
        root, factor, offset = entry.parts()
        name = f"{place.input}_{place.dim}" if isinstance(root, Hint) else root.name
        places[place] = linear(name, factor, offset)
        if ranges.setdefault(name, root.range) != root.range:
            raise ValueError(f"dynamic_shapes: {name} ranges over {ranges[name]} and over {root.range}")
    return given, places, ranges


suggest_in_module(globals())
