"""Layout of a folded graph: the inside of each frame first, then the frame as one box of the enclosing group."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from retrograd.autograd.drawing.fold import Folded, Group
from retrograd.autograd.drawing.layers import Arrow, Key, Layout, Point, Size, layout_boxes
from retrograd.autograd.drawing.read import LEAF

FRAME_MARGIN = 18.0  # between a frame's border and its contents
MIN_FRAME_WIDTH = 190.0  # a frame with room for its badge
ARROWHEAD_GAP = 15.0  # between arrowheads at one box
LEAF_WEIGHT = 0.1  # weight of arrows from leaves; those between operators have 1
OUT_PORT = ("out",)


class Box(NamedTuple):
    """A vertex or a frame (`content`), its top left corner and its size."""

    content: Any  # a vertex's number, or a Group
    x: float
    y: float
    width: float
    height: float


class Line(NamedTuple):
    """An arrow between two vertices by its points: a straight line where x is constant, else a curve."""

    source: int
    target: int
    points: list[Point]


class Picture(NamedTuple):
    """All drawn elements, in pixels; outer frames before inner ones."""

    boxes: list[Box]
    frames: list[Box]
    lines: list[Line]
    width: float
    height: float


def arrange(folded: Folded, size_of: Callable[[int], Size]) -> Picture:
    """Lay out all boxes; `size_of` returns the size of a vertex's box."""
    return _Arranger(folded, size_of).picture()


class _GroupLayout(NamedTuple):
    """A group's size, its boxes' corners and sizes, and its pieces of lines, relative to its top left corner."""

    size: Size
    corners: dict[Key, Point]
    sizes: dict[Key, Size]
    lines: dict[tuple[Key, Key], list[Point]]

    def port(self, port: Key) -> float:
        """Return how far right of the frame's middle its border is crossed."""
        return self.corners[port][0] - self.size.width / 2 if port in self.corners else 0.0


class _Arranger:
    def __init__(self, folded: Folded, size_of: Callable[[int], Size]) -> None:
        self.top = folded.top
        self.vertices = folded.vertices
        self.size_of = size_of
        self.path: dict[int, tuple[Group, ...]] = dict(_paths(folded.top, (folded.top,)))
        self.routes = {(u, v): list(self._route(u, v)) for v in self.path for u in folded.inputs(v)}
        self.links: dict[int, dict[tuple[Key, Key], int]] = defaultdict(dict)  # group's id: ends -> first vertex
        for (u, _), route in self.routes.items():
            for group, source, target in route:
                self.links[id(group)][source, target] = u
        self.inside: dict[Key, _GroupLayout] = {}

    def _route(self, u: int, v: int) -> Iterator[tuple[Group, Key, Key]]:
        """Yield the pieces of an arrow: out of the frames of u, within their common group, into the frames of v."""
        above, below = self.path[u], self.path[v]
        same = sum(a is b for a, b in zip(above, below, strict=False))
        for depth in reversed(range(same, len(above))):
            yield above[depth], _child_on_path(above, depth, u), OUT_PORT
        yield above[same - 1], _child_on_path(above, same - 1, u), _child_on_path(below, same - 1, v)
        for depth in range(same, len(below)):
            yield below[depth], ("in", u), _child_on_path(below, depth, v)

    def picture(self) -> Picture:
        self._lay_out(self.top)
        found = Picture([], [], [], *self.inside[_key(self.top)].size)
        origins: dict[int, Point] = {}
        self._collect(self.top, (0.0, 0.0), origins, found)
        for (u, v), route in self.routes.items():
            pieces = [_translate(self.inside[_key(g)].lines[s, t], origins[id(g)]) for g, s, t in route]
            found.lines.append(Line(u, v, _join_pieces(pieces)))
        return found

    def _lay_out(self, group: Group) -> None:
        """Lay out the contents of a group, inner groups first."""
        for member in group.members:
            if isinstance(member, Group):
                self._lay_out(member)
        links = self.links[id(group)]
        ports = [source for source, _ in links if isinstance(source, tuple) and source[0] == "in"]
        sizes = {_key(member): self._size(member) for member in group.members}
        sizes.update(dict.fromkeys([*ports, *(target for _, target in links if target is OUT_PORT)], Size(0.0, 0.0)))
        arrows = [
            Arrow(s, t, self._port(s, OUT_PORT), self._port(t, ("in", u)), LEAF_WEIGHT if self._is_leaf(s) else 1.0)
            for (s, t), u in links.items()
        ]
        placed = layout_boxes(sizes, arrows, list(dict.fromkeys(ports)))
        self.inside[_key(group)] = _lay_out_members(placed, sizes, arrows, group is self.top)

    def _size(self, member: "int | Group") -> Size:
        return self.inside[_key(member)].size if isinstance(member, Group) else self.size_of(member)

    def _is_leaf(self, box: Key) -> bool:
        return isinstance(box, int) and self.vertices[box].kind == LEAF

    def _port(self, box: Key, port: Key) -> float:
        return self.inside[box].port(port) if box in self.inside else 0.0

    def _collect(self, group: Group, origin: Point, origins: dict[int, Point], found: Picture) -> None:
        """Add the boxes and frames in a group to the picture, and record the group's corner."""
        origins[id(group)] = origin
        inside = self.inside[_key(group)]
        for member in group.members:
            (x, y), size = inside.corners[_key(member)], inside.sizes[_key(member)]
            box = Box(member, origin[0] + x, origin[1] + y, *size)
            if isinstance(member, Group):
                found.frames.append(box)
                self._collect(member, box[1:3], origins, found)
            else:
                found.boxes.append(box)


def _paths(group: Group, path: tuple[Group, ...]) -> Iterator[tuple[int, tuple[Group, ...]]]:
    """Yield every vertex in a group with the groups that contain it, outermost first."""
    for member in group.members:
        if isinstance(member, Group):
            yield from _paths(member, (*path, member))
        else:
            yield member, path


def _key(member: "int | Group") -> Key:
    return ("frame", id(member)) if isinstance(member, Group) else member


def _child_on_path(path: tuple[Group, ...], depth: int, vertex: int) -> Key:
    """Return the child of the group at a depth of a vertex's path: the next group, or the vertex."""
    return _key(path[depth + 1]) if depth + 1 < len(path) else vertex


def _lay_out_members(placed: Layout, sizes: dict[Key, Size], arrows: Sequence[Arrow], bare: bool) -> _GroupLayout:
    """Return a laid out group, with margins at its sides unless it is bare."""
    side = 0.0 if bare else max(FRAME_MARGIN, (MIN_FRAME_WIDTH - placed.width) / 2)
    corners = {box: (x - sizes[box].width / 2 + side, y) for box, (x, y) in placed.tops.items()}
    shifts = _arrival_shifts(placed, sizes, arrows)
    lines = {}
    for arrow in arrows:
        source, target, shift = placed.tops[arrow.source], placed.tops[arrow.target], shifts[arrow[:2]]
        start = (source[0] + arrow.leaves_at, source[1] + sizes[arrow.source].height)
        *course, (x, y) = placed.courses[arrow[:2]]
        line = [start, *course, (x + shift, y), (target[0] + arrow.arrives_at + shift, target[1])]
        lines[arrow[:2]] = _translate(line, (side, 0.0))
    return _GroupLayout(Size(placed.width + 2 * side, placed.height), corners, sizes, lines)


def _arrival_shifts(placed: Layout, sizes: dict[Key, Size], arrows: Sequence[Arrow]) -> dict[tuple[Key, Key], float]:
    """Return how far from the middle arrows arrive at a vertex, to separate heads and avoid crossings."""
    arriving: dict[Key, list[Arrow]] = defaultdict(list)
    for arrow in arrows:
        arriving[arrow.target].append(arrow)
    shifts = dict.fromkeys((arrow[:2] for arrow in arrows), 0.0)
    for target, several in arriving.items():
        if isinstance(target, int):
            several.sort(key=lambda arrow: placed.courses[arrow[:2]][-2][0])
            shifts.update(
                zip((arrow[:2] for arrow in several), _equal_shifts(several, sizes[target].width), strict=True)
            )
    return shifts


def _equal_shifts(arrows: Sequence[Arrow], width: float) -> list[float]:
    """Return equal distances around the middle; if one arrow is from an operator, that is in the middle."""
    main = [index for index, arrow in enumerate(arrows) if arrow.weight >= 1]
    middle = main[0] if len(main) == 1 else (len(arrows) - 1) / 2
    farthest = max(middle, len(arrows) - 1 - middle)
    gap = min(ARROWHEAD_GAP, (width / 2 - 10) / farthest) if farthest else 0.0
    return [(index - middle) * gap for index in range(len(arrows))]


def _translate(points: Sequence[Point], by: Point) -> list[Point]:
    return [(x + by[0], y + by[1]) for x, y in points]


def _join_pieces(pieces: Sequence[Sequence[Point]]) -> list[Point]:
    """Return consecutive pieces as one line, without points in the middle of straight parts."""
    points: list[Point] = []
    for x, y in (point for piece in pieces for point in piece):
        while len(points) > 1 and all(abs(x - before) < 0.01 for before, _ in points[-2:]):
            points.pop()
        points.append((x, y))
    return points
