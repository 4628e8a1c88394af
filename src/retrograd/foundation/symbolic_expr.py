"""Sizes as expressions of varying dimensions, fitted to the values in several traces."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import Any, NamedTuple

Point = Mapping[str, int]  # a size for every varying dimension, by the dimension's name
Monomial = tuple[str, ...]  # a product of dimensions; () is 1
LARGEST_DIVISOR = 8  # of sizes like n // 2
MANY_SIZES = 2 * LARGEST_DIVISOR**2  # different quotients differ within this number of consecutive sizes


class Expression(NamedTuple):
    """(a sum of integers times products of dimensions) // over.

    >>> Expression(((2, ("batch",)), (1, ())))
    2*batch + 1
    >>> Expression(((1, ("batch",)), (1, ())), 2).at({"batch": 8})
    4
    """

    terms: tuple[tuple[int, Monomial], ...]
    over: int = 1

    def at(self, point: Point) -> int:
        """Return its value for these sizes of the dimensions."""
        return sum(c * math.prod(point[d] for d in monomial) for c, monomial in self.terms) // self.over

    @property
    def dims(self) -> set[str]:
        """Return the dimensions that it depends on."""
        return {d for _, monomial in self.terms for d in monomial}

    def times(self, factor: int) -> "Expression":
        """Return this, if it is not a quotient, times an integer."""
        return Expression(tuple([(c * factor, monomial) for c, monomial in self.terms]), self.over)

    def __repr__(self) -> str:
        text = " + ".join(map(_term, self.terms)).replace("+ -", "- ") or "0"
        return text if self.over == 1 else f"({text}) // {self.over}"


def _term(term: tuple[int, Monomial]) -> str:
    c, monomial = term
    product = "*".join(monomial)
    if not product:
        return str(c)
    return product if c == 1 else f"-{product}" if c == -1 else f"{c}*{product}"


# ------------------------------------------------------------------------------------------------- fitting


def fit(
    points: Sequence[Point], values: Sequence[int], sizes: Mapping[str, Iterable[int]] | None = None
) -> Expression | None:
    """Return the simplest expression with these values at these points; None if no known kind fits.

    Known are constants, integers times one or two products of up to two dimensions (or of all), expressions
    linear in all of them, and (a*d + b) // q of one dimension d, if all of those with these values at the points
    are equal at the `sizes` of d, by default those from the smallest to the largest of the points.
    Give more points than coefficients: the additional ones confirm the fit.
    """
    sizes = sizes or {d: range(min(p[d] for p in points), max(p[d] for p in points) + 1) for d in points[0]}
    for monomials in _candidate_bases(tuple(points[0])):
        found = _solve(monomials, points, values)
        if found is not None:
            return found
    return next((e for d in points[0] for e in _quotients(d, points, values, sizes[d])), None)


def _candidate_bases(dims: tuple[str, ...]) -> Iterator[tuple[Monomial, ...]]:
    products: list[Monomial] = [*[(d,) for d in dims], *combinations_with_replacement(dims, 2)]
    if len(dims) > 2:
        products.append(dims)
    known: list[Monomial] = [(), *products]
    yield ((),)
    yield from ((p,) for p in products)
    yield from combinations(known, 2)
    yield ((), *[(d,) for d in dims])


def _solve(monomials: tuple[Monomial, ...], points: Sequence[Point], values: Sequence[int]) -> Expression | None:
    """Return the combination of monomials with these values; None if there is none with integers."""
    rows = [
        [Fraction(math.prod(p[d] for d in m)) for m in monomials] + [Fraction(v)]
        for p, v in zip(points, values, strict=True)
    ]
    pivots = _reduce(rows, len(monomials))
    if len(pivots) < len(monomials) or any(row[-1] for row in rows[len(pivots) :]):
        return None
    found = [rows[i][-1] for i in range(len(pivots))]
    if any(c.denominator != 1 for c in found):
        return None
    pairs = sorted(zip(map(int, found), monomials, strict=True), key=lambda pair: -len(pair[1]))
    return Expression(tuple([pair for pair in pairs if pair[0]]))


def _reduce(rows: list[list[Fraction]], width: int) -> list[int]:
    """Run Gauss-Jordan elimination in place; return the columns that have a pivot."""
    pivots: list[int] = []
    for column in range(width):
        done = len(pivots)
        first = next((i for i in range(done, len(rows)) if rows[i][column]), None)
        if first is None:
            continue
        rows[done], rows[first] = rows[first], rows[done]
        rows[done] = [x / rows[done][column] for x in rows[done]]
        for i, row in enumerate(rows):
            if i != done and row[column]:
                rows[i] = [x - row[column] * p for x, p in zip(row, rows[done], strict=True)]
        pivots.append(column)
    return pivots


def _quotients(d: str, points: Sequence[Point], values: Sequence[int], sizes: Iterable[int]) -> Iterator[Expression]:
    """Yield (a*d + b) // q with these values and the smallest q, unless another one differs from it at a size."""
    least, most = min(points, key=lambda p: p[d]), max(points, key=lambda p: p[d])
    ends = {p[d]: v for p, v in zip(points, values, strict=True)}
    if least[d] == most[d] or any(ends[p[d]] != v for p, v in zip(points, values, strict=True)):
        return
    slope = Fraction(ends[most[d]] - ends[least[d]], most[d] - least[d])
    fitting = []
    for q in range(2, LARGEST_DIVISOR + 1):
        near = round(slope * q)
        fitting += [(a, b, q) for a in (near - 1, near, near + 1) for b in _offsets(a, q, ends)]
    if fitting and all(len({(a * n + b) // q for a, b, q in fitting}) == 1 for n in sizes):
        a, b, q = fitting[0]
        yield Expression(tuple([t for t in ((a, (d,)), (b, ())) if t[0]]), q)


def _offsets(a: int, q: int, values: Mapping[int, int]) -> range:
    """Return every b with (a*n + b) // q == values[n] for all n."""
    low = max(q * v - a * n for n, v in values.items())
    return range(low, min(q * v + q - a * n for n, v in values.items()))


class Quotient(NamedTuple):
    """A float that a program computed from sizes: `left / right`."""

    left: Any
    right: Any


def fit_quotients(points: Sequence[Point], values: Sequence[float]) -> Iterator[Quotient]:
    """Yield a number divided by one dimension or two that has these values at these points.

    >>> next(fit_quotients([{"n": 2}, {"n": 3}], [1.5, 1.0]))
    Quotient(left=3.0, right=n)
    """
    names = tuple(points[0])
    for monomial in [(name,) for name in names] + list(combinations(names, 2)):
        divisor = Expression(((1, monomial),))
        sizes = [divisor.at(point) for point in points]
        for number in (round(values[0] * sizes[0], 9), values[0] * sizes[0]):
            if all(number / size == v for size, v in zip(sizes, values, strict=True)):
                yield Quotient(number, divisor)
