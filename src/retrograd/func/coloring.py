"""Colours: groups of columns of a sparse matrix of which one product gives all entries.

Curtis, Powell, Reid, "On the estimation of sparse Jacobian matrices", J. Inst. Maths Applics 13 (1974); Gebremedhin,
Manne, Pothen, "What color is your Jacobian?", SIAM Review 47 (2005).  All are greedy: in some order, each gets the
first colour that is free.  A set of colours is an integer with a bit for each.
"""

from collections.abc import Iterable, Sequence

NONE = -1  # the colour of a column without entries, which needs no product


def num_colors(colors: Sequence[int]) -> int:
    """Return the number of colours."""
    return max(colors, default=NONE) + 1


def partial_coloring(columns: Sequence[Sequence[int]], rows: int, order: Iterable[int]) -> list[int]:
    """Return colours of columns, given as the rows of their entries; columns of one colour share no row."""
    row_colors = [0] * rows  # the colours with an entry in each row
    colors = [NONE] * len(columns)
    for j in order:
        used_colors = 0
        for i in columns[j]:
            used_colors |= row_colors[i]
        color, bit = _first_free_color(used_colors)
        for i in columns[j]:
            row_colors[i] |= bit
        if columns[j]:
            colors[j] = color
    return colors


def _first_free_color(used_colors: int) -> tuple[int, int]:
    """Return the first colour that is not in a set, and the set of it alone."""
    bit = ~used_colors & (used_colors + 1)
    return bit.bit_length() - 1, bit


def star_coloring(neighbours: Sequence[Sequence[int]], order: Iterable[int]) -> list[int]:
    """Return colours for a symmetric matrix, given as the columns of the entries of each row.

    For each entry (i, j), either j is the only column of its colour with an entry in row i, or i is the only one of its
    colour in row j.  In that row, the product of the matrix with the ones of that colour is the entry.
    """
    star = _StarColoring([[j for j in row if j != i] for i, row in enumerate(neighbours)])
    for v in order:
        if neighbours[v]:
            star.color_vertex(v)
    return star.colors


class _StarColoring:
    """The state of a star colouring.

    For each vertex: `neighbour_colors` is the set of colours of its neighbours; `repeated_colors`, the set of those
    that several neighbours have; `first_neighbour`, the first neighbour of each colour.  `forbidden` is the set of
    colours of the neighbours that see this vertex's colour twice.  No other neighbour may get such a colour: the
    entries that the vertex shares with these neighbours can be recovered in its own row only.
    """

    def __init__(self, neighbours: list[list[int]]) -> None:
        n = len(neighbours)
        self.neighbours = neighbours
        self.colors = [NONE] * n
        self.neighbour_colors, self.repeated_colors, self.forbidden = [0] * n, [0] * n, [0] * n
        self.first_neighbour: list[dict[int, int]] = [{} for _ in range(n)]

    def color_vertex(self, v: int) -> None:
        """Give a vertex the first colour with which all entries among coloured vertices can still be recovered."""
        color, bit = _first_free_color(self._forbidden_colors(v))
        self.colors[v] = color
        for w in self.neighbours[v]:
            other_color = self.colors[w]
            if other_color != NONE and self.repeated_colors[v] >> other_color & 1:
                self.forbidden[w] |= bit
            self._update_neighbour(w, v, color, bit)

    def _forbidden_colors(self, v: int) -> int:
        used_colors = 0
        for w in self.neighbours[v]:
            color = self.colors[w]
            if color != NONE:
                used_colors |= 1 << color | self.forbidden[w]
                if self.repeated_colors[v] >> color & 1:  # the entry (v, w) can be recovered in row w only
                    used_colors |= self.neighbour_colors[w]
        return used_colors

    def _update_neighbour(self, w: int, v: int, color: int, bit: int) -> None:
        """Update a neighbour w of v with v's colour."""
        if not self.neighbour_colors[w] & bit:
            self.neighbour_colors[w] |= bit
            self.first_neighbour[w][color] = v
            return
        own_bit = 0 if self.colors[w] == NONE else 1 << self.colors[w]
        if not self.repeated_colors[w] & bit:
            self.repeated_colors[w] |= bit
            self.forbidden[self.first_neighbour[w][color]] |= own_bit
        self.forbidden[v] |= own_bit
