"""Sparsity: where a matrix of derivatives may be nonzero, and the colours by which its entries are computed."""

from typing import Any

from retrograd.backend import sparse
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func.coloring import num_colors, partial_coloring, star_coloring


class Sparsity:
    """The possibly nonzero entries of a Jacobian or Hessian, and the groups by which they are computed.

    `pattern` is a boolean `scipy.sparse.csr_array`; `colors` has a number for each column, or row, -1 for those without
    entries; `count` is the number of colours, and so of products; `by` is what is coloured: "columns", "rows",
    or "both" for symmetric patterns.

    It is constructed from a pattern, a sparse or dense array.  All stored entries of a sparse array count, including
    zeros.  With `symmetric`, the mirror images of the entries are added.

    >>> from scipy.sparse import eye_array
    >>> Sparsity(eye_array(4)).count
    1
    """

    def __init__(self, pattern: Any, symmetric: bool = False) -> None:
        if len(pattern.shape) != 2 or (symmetric and pattern.shape[0] != pattern.shape[1]):
            what = "square matrix" if symmetric else "matrix"
            raise ValueError(f"Sparsity: the pattern must be a {what}, got shape {tuple(pattern.shape)}")
        self.pattern = sparse.as_pattern(pattern)
        if symmetric:
            self.pattern = sparse.symmetric(self.pattern)
        self.by, colors = _color_symmetric(self.pattern) if symmetric else _color_columns_or_rows(self.pattern)
        self.colors = sparse.as_colors(colors)
        self.count = num_colors(colors)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        rows, columns = self.pattern.shape
        return rows, columns

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<Sparsity of {rows} x {columns}, {self.pattern.nnz} entries, {self.count} colours of {self.by}>"


def _color_symmetric(pattern: Any) -> tuple[str, list[int]]:
    if pattern.nnz == pattern.shape[0] ** 2:
        return "both", list(range(pattern.shape[0]))
    neighbours = sparse.lists(pattern)
    return "both", star_coloring(neighbours, _by_descending_degree(neighbours))


def _color_columns_or_rows(pattern: Any) -> tuple[str, list[int]]:
    """Return colours of columns or rows, whichever needs fewer; of columns in a tie."""
    transposed = sparse.transpose_pattern(pattern)
    lower_bounds = {"columns": sparse.max_row_entries(pattern), "rows": sparse.max_row_entries(transposed)}
    lines = {"columns": transposed, "rows": pattern}
    first, second = sorted(lower_bounds, key=lambda side: lower_bounds[side])  # columns first, if they tie
    colors = _color_lines(lines[first], lower_bounds[first])
    if num_colors(colors) > lower_bounds[second]:
        other = _color_lines(lines[second], lower_bounds[second])
        if (num_colors(other), second) < (num_colors(colors), first):
            return second, other
    return first, colors


def _color_lines(pattern: Any, lower_bound: int) -> list[int]:
    """Return colours of rows in their order, or, if not minimal, the better of that and fullest first."""
    n, across = pattern.shape
    if lower_bound >= n:
        return list(range(n))
    lines = sparse.lists(pattern)
    colors = partial_coloring(lines, across, range(n))
    if num_colors(colors) > lower_bound:
        colors = min(colors, partial_coloring(lines, across, _by_descending_degree(lines)), key=num_colors)
    return colors


def _by_descending_degree(lines: list[list[int]]) -> list[int]:
    return sorted(range(len(lines)), key=lambda i: -len(lines[i]))


suggest_in_module(globals())
