"""Colours: groups of columns of a sparse matrix of which one product gives all entries.

Curtis, Powell, Reid, "On the estimation of sparse Jacobian matrices", J. Inst. Maths Applics 13 (1974); Gebremedhin,
Manne, Pothen, "What color is your Jacobian?", SIAM Review 47 (2005).  All are greedy: in some order, each gets the
first colour that is free.  A set of colours is an integer with a bit for each.
"""

from collections.abc import Iterable, Sequence

NONE = -1  # the colour of a column without entries, which needs no product


def count_of(colors: Sequence[int]) -> int:
    """Return the number of colours."""
    return max(colors, default=NONE) + 1


def partial_coloring(columns: Sequence[Sequence[int]], rows: int, order: Iterable[int]) -> list[int]:
    """Return colours of columns, given as the rows of their entries: equal colours never share a row."""
    seen = [0] * rows  # the colours with an entry in each row
    colors = [NONE] * len(columns)
    for j in order:
        taken = 0
        for i in columns[j]:
            taken |= seen[i]
        color, bit = _first_free(taken)
        for i in columns[j]:
            seen[i] |= bit
        if columns[j]:
            colors[j] = color
    return colors


def _first_free(taken: int) -> tuple[int, int]:
    """Return the first colour that is not in a set, and the set of it alone."""
    bit = ~taken & (taken + 1)
    return bit.bit_length() - 1, bit


def star_coloring(neighbours: Sequence[Sequence[int]], order: Iterable[int]) -> list[int]:
    """Return colours for a symmetric matrix, given as the columns of the entries of each row.

    Of each entry (i, j), either j is the only one of its colour among those that have an entry in row i, or i is in
    row j: there the product of the matrix with the ones of that colour shows the entry.
    """
    star = _Star([[j for j in row if j != i] for i, row in enumerate(neighbours)])
    for v in order:
        if neighbours[v]:
            star.give(v)
    return star.colors


class _Star:
    """The state of a star colouring.

    Of each vertex: `near`, the colours of its neighbours; `twice`, those that several of them have; `first`, which
    neighbour had each first; and `closed`, the colours of neighbours that have its own colour twice: of these it must
    stay the only one in sight, since the entries of that neighbour show here.
    """

    def __init__(self, neighbours: list[list[int]]) -> None:
        n = len(neighbours)
        self.neighbours = neighbours
        self.colors = [NONE] * n
        self.near, self.twice, self.closed = [0] * n, [0] * n, [0] * n
        self.first: list[dict[int, int]] = [{} for _ in range(n)]

    def give(self, v: int) -> None:
        """Give a vertex the first colour with which all entries among coloured vertices can still be recovered."""
        color, bit = _first_free(self._taken(v))
        self.colors[v] = color
        for w in self.neighbours[v]:
            theirs = self.colors[w]
            if theirs != NONE and self.twice[v] >> theirs & 1:
                self.closed[w] |= bit
            self._meet(w, v, color, bit)

    def _taken(self, v: int) -> int:
        taken = 0
        for w in self.neighbours[v]:
            color = self.colors[w]
            if color != NONE:
                taken |= 1 << color | self.closed[w]
                if self.twice[v] >> color & 1:  # the entry (v, w) can be recovered in row w only
                    taken |= self.near[w]
        return taken

    def _meet(self, w: int, v: int, color: int, bit: int) -> None:
        """Update a neighbour w of v with v's colour."""
        if not self.near[w] & bit:
            self.near[w] |= bit
            self.first[w][color] = v
            return
        mine = 0 if self.colors[w] == NONE else 1 << self.colors[w]
        if not self.twice[w] & bit:
            self.twice[w] |= bit
            self.closed[self.first[w][color]] |= mine
        self.closed[v] |= mine
