"""`Box`: elements of a tensor that are a range of indices along each dimension, and where a file has them.

A slice of a tensor, stored or to be read, is a range of elements in some order.  It consists of few boxes, in each of
which the elements follow each other in that order.  Two boxes, of different slices, have a box in common, or nothing.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from retrograd.core import Tensor

Range = tuple[int, int]
PAGE = 4096  # bytes; others between two ranges of a file are read too if they are not more


class Box(NamedTuple):
    """Elements of a tensor that follow each other in a slice.

    bounds: the range of indices along each dimension.  order: the dimensions, the last of which varies fastest.
    start: the index of the first element in the slice.
    """

    bounds: tuple[Range, ...]
    order: tuple[int, ...]
    start: int

    def sizes(self) -> list[int]:
        """Return the sizes of the dimensions in their order."""
        return [self.bounds[dim][1] - self.bounds[dim][0] for dim in self.order]

    def view(self, flat: Tensor) -> Tensor:
        """Return a view of the elements of the box, given those of the slice, with the dimensions of the tensor."""
        sizes = self.sizes()
        rows = flat[self.start : self.start + prod(sizes)].reshape(sizes)
        return rows.permute([self.order.index(dim) for dim in range(len(sizes))])

    def shared_bounds(self, other: "Box") -> tuple[Range, ...] | None:
        """Return the bounds of the elements that another box has too; None if there are none."""
        both = zip(self.bounds, other.bounds, strict=True)
        found = tuple([(max(a, c), min(b, d)) for (a, b), (c, d) in both])
        return found if all(low < high for low, high in found) else None

    def pieces(self, bounds: Sequence[Range], itemsize: int) -> Iterator["Piece"]:
        """Yield the pieces of the slice to read for some of the elements, with gaps of at most a page."""
        sizes, n = self.sizes(), len(self.order)
        strides = [prod(sizes[axis + 1 :]) for axis in range(n)]
        firsts = [self.bounds[dim][0] for dim in self.order]
        inside = [
            (bounds[dim][0] - first, bounds[dim][1] - first) for dim, first in zip(self.order, firsts, strict=True)
        ]
        # The number of elements from the first to the last one, if the indices along the dimensions before are given.
        lengths = [
            1 + sum((inside[k][1] - inside[k][0] - 1) * strides[k] for k in range(axis, n)) for axis in range(n + 1)
        ]
        axis = n  # one piece has all indices along this dimension and the next ones
        while axis and (strides[axis - 1] - lengths[axis]) * itemsize <= PAGE:
            axis -= 1
        stride_of = dict(zip(self.order, strides, strict=True))
        for outer in product(*[range(low, high) for low, high in inside[:axis]]):
            ranges = [*[(index, index + 1) for index in outer], *inside[axis:]]
            low = self.start + sum(first * stride for (first, _), stride in zip(ranges, strides, strict=True))
            own = {self.order[k]: (ranges[k][0] + firsts[k], ranges[k][1] + firsts[k]) for k in range(n)}
            yield Piece(
                tuple([own[dim] for dim in range(n)]),
                low,
                low + lengths[axis],
                tuple([stride_of[dim] for dim in range(n)]),
            )


class Piece(NamedTuple):
    """A range of a slice, from `low` to `high`, that has the elements within some bounds, maybe with others between.

    strides: of the dimensions of the tensor in the slice.
    """

    bounds: tuple[Range, ...]
    low: int
    high: int
    strides: tuple[int, ...]

    def view(self, values: Tensor) -> Tensor:
        """Return a view of the elements within the bounds, given those of the range."""
        return values.as_strided([high - low for low, high in self.bounds], self.strides)


def narrowed(x: Tensor, own: Sequence[Range], bounds: Sequence[Range]) -> Tensor:
    """Return a view of the elements within some bounds, given those within larger ones."""
    for dim, ((low, _), (first, last)) in enumerate(zip(own, bounds, strict=True)):
        x = x.narrow(dim, first - low, last - first)
    return x


def boxes_of(bounds: Sequence[Range], dim: int, low: int, high: int) -> list[Box]:
    """Return the boxes of the elements from `low` to `high` of a larger box, in row-major order with `dim` in front.

    >>> [box.bounds for box in boxes_of([(0, 3), (0, 4)], 0, 2, 9)]
    [((0, 1), (2, 4)), ((1, 2), (0, 4)), ((2, 3), (0, 1))]
    """
    order = (dim, *[d for d in range(len(bounds)) if d != dim]) if bounds else ()
    found, start = [], 0
    for ranges in _row_ranges([bounds[d][1] - bounds[d][0] for d in order], low, high):
        own = dict(zip(order, ranges, strict=True))
        absolute = [(own[d][0] + first, own[d][1] + first) for d, (first, _) in enumerate(bounds)]
        found.append(Box(tuple(absolute), order, start))
        start += prod(last - first for first, last in ranges)
    return found


def _row_ranges(sizes: Sequence[int], low: int, high: int) -> Iterator[tuple[Range, ...]]:
    """Yield ranges of indices that have the elements from `low` to `high` in row-major order, one after the other."""
    if low >= high:
        return
    if not sizes:
        yield ()
        return
    row, inner = prod(sizes[1:]), sizes[1:]
    first, last = -(-low // row), high // row
    if first > last:  # within one row
        yield from [((last, last + 1), *rest) for rest in _row_ranges(inner, low - last * row, high - last * row)]
        return
    if low < first * row:
        yield from [((first - 1, first), *rest) for rest in _row_ranges(inner, low - (first - 1) * row, row)]
    if first < last:
        yield ((first, last), *[(0, size) for size in inner])
    yield from [((last, last + 1), *rest) for rest in _row_ranges(inner, 0, high - last * row)]


def check_cover(name: str, shape: Sequence[int], parts: Sequence[tuple[tuple[Range, ...], int, int]]) -> None:
    """Raise ValueError unless parts have each element of a tensor once: a box of each, and a range of its elements."""
    reached: dict[tuple[Range, ...], int] = {}
    for box, low, high in sorted(parts):
        if low != reached.get(box, 0) and low < high:
            raise ValueError(
                f"checkpoint: the ranks' slices of {name} have gaps or overlap at element {reached.get(box, 0)}"
            )
        reached[box] = max(reached.get(box, 0), high)
    for box, end in reached.items():
        if end != (count := prod(high - low for low, high in box)):
            raise ValueError(f"checkpoint: the ranks' slices of {name} end at element {end} of {count}")
    found = [Box(box, (), 0) for box in sorted(reached) if all(low < high for low, high in box)]
    for index, first in enumerate(found):
        for other in found[index + 1 :]:
            if other.bounds[0][0] >= first.bounds[0][1]:
                break  # the next ones begin after it, too
            if first.shared_bounds(other) is not None:
                raise ValueError(f"checkpoint: the ranks' slices of {name} overlap at {other.bounds}")
    if sum(reached.values()) != prod(shape):
        raise ValueError(
            f"checkpoint: the ranks' slices of {name} end at element {sum(reached.values())} of {prod(shape)}"
        )
