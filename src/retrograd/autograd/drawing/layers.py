"""Layout of boxes in rows along their arrows: few crossings, straight long arrows, short arrows.

The steps are those of Sugiyama, Tagawa and Toda (IEEE Transactions on Systems, Man, and Cybernetics 11, 1981): assign
a row to each box, order each row, and choose coordinates.  Long arrows from one box share a trunk, which branches where
they end.
"""

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from math import inf
from random import Random
from typing import NamedTuple

Key = Hashable
Point = tuple[float, float]
Neighbours = dict[Key, tuple[list[tuple[Key, float]], list[tuple[Key, float]]]]  # left and right, with least distances

ROW_GAP, BOX_GAP, LINE_GAP = 34.0, 26.0, 18.0
TALL_BOX = 60.0  # above the height of a box with two lines of text
SWEEPS = 24
TRIES, MAX_RESTARTED = (
    10,
    150,
)  # restarts for a drawing of at most this many items, to find an order with fewer crossings
MAX_SWAPPED = 600  # items for which swapping neighbours takes too long
FIXED_WEIGHT = 1e6  # weight of items that must not move, compared with links
STRAIGHT_WEIGHT = 8.0  # extra weight for a straight middle of a long arrow
MAX_WIDTH = 1e5  # wider than any box, so that the order of boxes counts more than that of arrows at one box


class Size(NamedTuple):
    """Width and height of a box, in pixels."""

    width: float
    height: float


class Arrow(NamedTuple):
    """An arrow from the bottom of one box to the top of another, at these offsets right of their middles.

    Arrows of greater weight are straightened with priority.
    """

    source: Key
    target: Key
    leaves_at: float = 0.0
    arrives_at: float = 0.0
    weight: float = 1.0


class Layout(NamedTuple):
    """The middle of each box's top, the points of each arrow between its ends, and the size of the drawing."""

    tops: dict[Key, Point]
    courses: dict[tuple[Key, Key], list[Point]]
    width: float
    height: float


def layout_boxes(sizes: dict[Key, Size], arrows: Sequence[Arrow], first: Sequence[Key] = ()) -> Layout:
    """Lay out boxes so that every arrow points down.

    sizes: of every box; in a tie, the earlier box is further left.  first: boxes of a separate row, above all others.
    The arrows must have no cycle, and at most one leads from one box to another.
    """
    drawing = _Drawing(sizes, arrows, _assign_rows(sizes, arrows, first))
    drawing.order_rows()
    drawing.move_boxes()
    return drawing.result()


def _assign_rows(sizes: dict[Key, Size], arrows: Sequence[Arrow], first: Sequence[Key]) -> dict[Key, int]:
    """Return the row of each box: directly above its first target; for a box without targets, below its last source.

    The row below a tall box is free if other boxes point to its targets; they would be far above those otherwise.
    """
    into, out_of = defaultdict(list), defaultdict(list)
    for arrow in arrows:
        into[arrow.target].append(arrow.source)
        out_of[arrow.source].append(arrow.target)
    order = _topological(sizes, into, out_of)
    row: dict[Key, int] = {}
    for box in reversed(order):
        tall = sizes[box].height > TALL_BOX
        row[box] = min((row[t] - (tall and len(into[t]) > 1) for t in out_of[box]), default=0) - 1
    for box in order:
        if not out_of[box] and into[box]:
            row[box] = max(row[source] for source in into[box]) + 1
    top = min((row[box] for box in order if box not in first), default=0)
    row.update(dict.fromkeys(first, top - 1))
    offset = min(row.values(), default=0)
    return {box: number - offset for box, number in row.items()}


def _topological(sizes: dict[Key, Size], into: dict[Key, list[Key]], out_of: dict[Key, list[Key]]) -> list[Key]:
    waiting = {box: len(into[box]) for box in sizes}
    ready = [box for box in sizes if not waiting[box]]
    for box in ready:  # the list grows in the loop
        for target in out_of[box]:
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return ready


class _Waypoint(NamedTuple):
    """The point where the trunk of a box's long arrows passes a row."""

    source: Key
    row: int


class _Drawing:
    """Rows of boxes and bends, with the links between neighbouring rows."""

    def __init__(self, sizes: dict[Key, Size], arrows: Sequence[Arrow], row: dict[Key, int]) -> None:
        self.sizes = sizes
        self.arrows = arrows
        self.row = row
        self.rows: list[list[Key]] = [[] for _ in range(max(row.values(), default=-1) + 1)]
        self.above: dict[Key, list[Arrow]] = defaultdict(list)  # links that end here
        self.below: dict[Key, list[Arrow]] = defaultdict(list)  # links that start here
        self.x: dict[Key, float] = {}
        self.firm: set[Key] = set()  # items with more than light links
        self._link()
        self._fill_rows()

    def _link(self) -> None:
        trunks: set[Key] = set()
        for arrow in self.arrows:
            path = [arrow.source, *self.path(arrow), arrow.target]
            for upper, lower in pairwise(path):
                if isinstance(lower, _Waypoint):
                    if lower in trunks:
                        continue
                    trunks.add(lower)
                leaves = arrow.leaves_at if upper is arrow.source else 0.0
                arrives = arrow.arrives_at if lower is arrow.target else 0.0
                link = Arrow(upper, lower, leaves, arrives, _vertical_weight(upper, lower, arrow.weight))
                self.below[upper].append(link)
                self.above[lower].append(link)

    def path(self, arrow: Arrow) -> list[_Waypoint]:
        """Return the bends of an arrow, one for each row that it passes."""
        return [_Waypoint(arrow.source, row) for row in range(self.row[arrow.source] + 1, self.row[arrow.target])]

    def _fill_rows(self) -> None:
        """Set a first order: depth first from the ends upwards, which draws trees without crossings."""
        seen: set[Key] = set()
        stack = [box for box in reversed(self.sizes) if not self.below[box]]
        while stack:
            item = stack.pop()
            if item not in seen:
                seen.add(item)
                self.rows[self.row_of(item)].append(item)
                stack.extend(link.source for link in reversed(self.above[item]))

    def row_of(self, item: Key) -> int:
        return item.row if isinstance(item, _Waypoint) else self.row[item]

    # ------------------------------------------------------------------------------------------------- order

    def order_rows(self) -> None:
        """Find an order with few crossings; a small drawing is tried from several starting orders."""
        best, fewest = self._sweep()
        tries = TRIES if sum(map(len, self.rows)) <= MAX_RESTARTED else 0
        for seed in range(tries if fewest else 0):
            for row in self.rows:
                Random(seed).shuffle(row)
            found, crossing = self._sweep()
            if crossing < fewest:
                best, fewest = found, crossing
        self.rows = best

    def _sweep(self) -> tuple[list[list[Key]], int]:
        """Sort rows by mean positions of neighbours above and below in turns; return the best order and its score."""
        best, fewest = [list(row) for row in self.rows], self.crossings()
        for sweep in range(SWEEPS):
            if not fewest:
                break
            self._sort_rows(downwards=sweep % 2 == 0)
            if sum(map(len, self.rows)) <= MAX_SWAPPED:
                self._swap_neighbours()
            found = self.crossings()
            if found < fewest:
                best, fewest = [list(row) for row in self.rows], found
        return best, fewest

    def _sort_rows(self, downwards: bool) -> None:
        rows = self.rows if downwards else self.rows[::-1]
        for fixed, row in pairwise(rows):
            positions = _positions(fixed)
            mean = {}
            for index, item in enumerate(row):
                near = self._starts(item, positions) if downwards else self._ends(item, positions)
                mean[item] = sum(near) / len(near) if near else float(index)
            row.sort(key=mean.__getitem__)

    def _starts(self, item: Key, positions: dict[Key, float]) -> list[float]:
        """Return where the links from above start, in the row with these positions."""
        return [positions[link.source] + link.leaves_at / MAX_WIDTH for link in self.above[item]]

    def _ends(self, item: Key, positions: dict[Key, float]) -> list[float]:
        """Return where the links to below end."""
        return [positions[link.target] + link.arrives_at / MAX_WIDTH for link in self.below[item]]

    def _swap_neighbours(self) -> None:
        """Swap adjacent items while that reduces the crossings."""
        for index, row in enumerate(self.rows):
            above = _positions(self.rows[index - 1]) if index else {}
            below = _positions(self.rows[index + 1]) if index + 1 < len(self.rows) else {}
            starts = {item: self._starts(item, above) for item in row}
            ends = {item: self._ends(item, below) for item in row}
            for at in range(len(row) - 1):
                left, right = row[at : at + 2]
                now = _count_crossings(starts[left], starts[right]) + _count_crossings(ends[left], ends[right])
                then = _count_crossings(starts[right], starts[left]) + _count_crossings(ends[right], ends[left])
                if then < now:
                    row[at : at + 2] = right, left

    def crossings(self) -> int:
        """Return how many pairs of links cross."""
        total = 0
        for upper, lower in pairwise(self.rows):
            positions = _positions(lower)
            passed: list[float] = []
            for item in upper:
                ends = self._ends(item, positions)
                total += sum(len(passed) - bisect_right(passed, end) for end in ends)
                for end in ends:
                    insort(passed, end)
        return total

    # ------------------------------------------------------------------------------------------- coordinates

    def move_boxes(self) -> None:
        """Move boxes towards their neighbours above, below, and both; preserve their order and distances."""
        for row in self.rows:
            self._place_row(row, [0.0] * len(row), [1.0] * len(row))
        columns = list(self._columns())
        self._strengthen_columns({link for column in columns for link in column})
        self.firm = {end for links in self.below.values() for k in links if k.weight >= 1 for end in k[:2]}
        neighbours = self._neighbours()
        for sweep in range(SWEEPS):
            up, down = (sweep % 3 != 0), (sweep % 3 != 1)
            for row in self.rows if down else self.rows[::-1]:
                pulls = [self._preferred_position(item, up, down) for item in row]
                self._place_row(row, [x for x, _ in pulls], [weight for _, weight in pulls])
            if sweep >= SWEEPS // 3:
                self._straighten(columns, neighbours)

    def _preferred_position(self, item: Key, up: bool = True, down: bool = True) -> tuple[float, float]:
        """Return the position that an item's neighbours pull it to, and the weight."""
        pulls = [(self._aligned_target_position(link), link.weight) for link in self.above[item] if down]
        pulls += [(self._aligned_source_position(link), link.weight) for link in self.below[item] if up]
        weight = sum(weight for _, weight in pulls)
        return (sum(x * w for x, w in pulls) / weight, weight) if pulls else (self.x[item], 0.01)

    def _aligned_target_position(self, link: Arrow) -> float:
        """Return the position of the target at which the link is vertical."""
        return self.x[link.source] + link.leaves_at - link.arrives_at

    def _aligned_source_position(self, link: Arrow) -> float:
        """Return the position of the source at which the link is vertical."""
        return self.x[link.target] + link.arrives_at - link.leaves_at

    def _columns(self) -> Iterator[list[Arrow]]:
        """Yield lists of links that should form a vertical line: trunks, and boxes with one main input and output."""
        following = {link.source: link for link in self._vertical_links()}
        entered = {link.target for link in following.values()}
        for start in (item for item in following if item not in entered):
            column = [following[start]]
            while column[-1].target in following:
                column.append(following[column[-1].target])
            yield column

    def _vertical_links(self) -> Iterator[Arrow]:
        for item, links in self.below.items():
            main = [link for link in links if link.weight >= 1]
            for link in main:
                trunk = isinstance(item, _Waypoint) and isinstance(link.target, _Waypoint)
                if trunk or len(main) == len([k for k in self.above[link.target] if k.weight >= 1]) == 1:
                    yield link

    def _strengthen_columns(self, upright: set[Arrow]) -> None:
        """Give the links of columns more weight, so that their neighbors make room."""
        for links in (self.above, self.below):
            for found in links.values():
                found[:] = [k._replace(weight=k.weight * STRAIGHT_WEIGHT) if k in upright else k for k in found]

    def _straighten(self, columns: Sequence[list[Arrow]], neighbours: Neighbours) -> None:
        """Make columns vertical where firm neighbours leave room; items with only light links follow."""
        for column in columns:
            offsets = {column[0].source: 0.0}
            for link in column:
                offsets[link.target] = offsets[link.source] + link.leaves_at - link.arrives_at
            lows = [self.x[n] + d - offsets[item] for item in offsets for n, d in neighbours[item][0]]
            highs = [self.x[n] - d - offsets[item] for item in offsets for n, d in neighbours[item][1]]
            low, high = max(lows, default=-inf), min(highs, default=inf)
            if low <= high:
                start = min(max(self._preferred_start(offsets), low), high)
                self.x.update((item, start + offset) for item, offset in offsets.items())
        for row in self.rows:
            pulls = [
                (self.x[item], FIXED_WEIGHT) if item in self.firm else self._preferred_position(item) for item in row
            ]
            self._place_row(row, [x for x, _ in pulls], [weight for _, weight in pulls])

    def _preferred_start(self, offsets: dict[Key, float]) -> float:
        """Return the position of a column's beginning that the neighbours outside it pull to."""
        pulls = [
            (x - offset, weight)
            for item, offset in offsets.items()
            for x, weight in [
                *((self._aligned_target_position(k), k.weight) for k in self.above[item] if k.source not in offsets),
                *((self._aligned_source_position(k), k.weight) for k in self.below[item] if k.target not in offsets),
            ]
        ]
        pulls = pulls or [(self.x[item] - offset, 1.0) for item, offset in offsets.items()]
        return sum(x * weight for x, weight in pulls) / sum(weight for _, weight in pulls)

    def _neighbours(self) -> Neighbours:
        """Return the nearest firm items left and right of each item, if any, and the least distance to them."""
        found: Neighbours = {item: ([], []) for row in self.rows for item in row}
        for row in self.rows:
            for side, items in enumerate((row, row[::-1])):
                firm, distance = None, 0.0
                for before, item in pairwise(items):
                    if before in self.firm:
                        firm, distance = before, 0.0
                    distance += self._distance(before, item)
                    if firm is not None:
                        found[item][side].append((firm, distance))
        return found

    def _place_row(self, row: list[Key], desired: list[float], weights: list[float]) -> None:
        """Move a row as close as its distances allow to the preferred positions, by weighted least squares."""
        starts = [0.0]
        for left, right in pairwise(row):
            starts.append(starts[-1] + self._distance(left, right))
        positions = _isotonic_regression([w - s for w, s in zip(desired, starts, strict=False)], weights)
        for item, position, start in zip(row, positions, starts, strict=False):
            self.x[item] = position + start

    def _distance(self, left: Key, right: Key) -> float:
        gap = LINE_GAP if isinstance(left, _Waypoint) and isinstance(right, _Waypoint) else BOX_GAP
        return (self._width(left) + self._width(right)) / 2 + gap

    def _width(self, item: Key) -> float:
        return 0.0 if isinstance(item, _Waypoint) else self.sizes[item].width

    # ------------------------------------------------------------------------------------------------ result

    def result(self) -> Layout:
        left = min((x - self._width(item) / 2 for item, x in self.x.items()), default=0.0)
        right = max((x + self._width(item) / 2 for item, x in self.x.items()), default=0.0)
        tops, bottoms = self._heights()
        boxes = {box: (self.x[box] - left, self._top(box, tops, bottoms)) for box in self.sizes}
        courses = {arrow[:2]: list(self._route_points(arrow, left, tops, bottoms)) for arrow in self.arrows}
        return Layout(boxes, courses, right - left, bottoms[-1] if bottoms else 0.0)

    def _route_points(self, arrow: Arrow, left: float, tops: list[float], bottoms: list[float]) -> Iterator[Point]:
        """Yield an arrow's points: vertical through every row, to avoid its neighbours, bent between rows only."""
        yield self.x[arrow.source] + arrow.leaves_at - left, bottoms[self.row[arrow.source]]
        for bend in self.path(arrow):
            yield self.x[bend] - left, tops[bend.row]
            yield self.x[bend] - left, bottoms[bend.row]
        yield self.x[arrow.target] + arrow.arrives_at - left, tops[self.row[arrow.target]]

    def _heights(self) -> tuple[list[float], list[float]]:
        """Return the top and bottom of each row."""
        tops, bottoms = [], []
        y = 0.0
        for row in self.rows:
            tops.append(y)
            bottoms.append(
                y + max((self.sizes[box].height for box in row if not isinstance(box, _Waypoint)), default=0)
            )
            y = bottoms[-1] + ROW_GAP
        return tops, bottoms

    def _top(self, box: Key, tops: list[float], bottoms: list[float]) -> float:
        """Return the top of a box that is centered in its row."""
        row = self.row[box]
        return (tops[row] + bottoms[row] - self.sizes[box].height) / 2


def _positions(row: Sequence[Key]) -> dict[Key, float]:
    return {item: float(index) for index, item in enumerate(row)}


def _count_crossings(left: Sequence[float], right: Sequence[float]) -> int:
    """Return how many of the pairs cross."""
    return sum(a > b for a in left for b in right)


def _vertical_weight(upper: Key, lower: Key, weight: float) -> float:
    """Return the weight of a vertical piece of an arrow of this weight, largest in the middle of a long one."""
    return (weight, 2 * weight, STRAIGHT_WEIGHT)[isinstance(upper, _Waypoint) + isinstance(lower, _Waypoint)]


def _isotonic_regression(desired: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the non-decreasing sequence closest to the given one in weighted squares (pool adjacent violators).

    >>> _isotonic_regression([1.0, 5.0, 3.0], [1.0, 1.0, 1.0])
    [1.0, 4.0, 4.0]
    """
    pools: list[tuple[float, float, int]] = []  # mean, weight, count
    for mean, weight in zip(desired, weights, strict=True):
        count = 1
        while pools and pools[-1][0] > mean:
            other, heavy, many = pools.pop()
            mean = (mean * weight + other * heavy) / (weight + heavy)
            weight, count = weight + heavy, count + many
        pools.append((mean, weight, count))
    return [mean for mean, _, count in pools for _ in range(count)]
