"""Sums of products over named dimensions: on the buffers, if components and ragged dimensions match."""

from collections.abc import Sequence
from typing import Any

from retrograd.core import Op, Tensor
from retrograd.nested.buffer import over, packed, values
from retrograd.nested.buffer_layout import Layout, is_nested, layout
from retrograd.nested.dispatch import composed
from retrograd.nested.rules.pointwise import check_alike
from retrograd.ops.family import canonical_dims
from retrograd.ops.linalg import einsum, matmul, read_equation
from retrograd.ops.products import tensordot
from retrograd.ops.view import squeeze, transpose, unsqueeze


@composed("tensordot")
def dot_of_dims(op: Op, args: tuple, params: dict) -> Any:
    """Multiply the buffer with a plain second operand, over dense dimensions."""
    a, b = args
    dims = params["dims"]
    if not is_nested(a) or is_nested(b):
        return NotImplemented
    if isinstance(dims, int):
        dims = range(a.ndim - dims, a.ndim), range(dims)
    a = packed(a)
    known = layout(a)
    left, right = ((d,) if isinstance(d, int) else tuple(d) for d in dims)
    left = canonical_dims("tensordot", left, a.ndim) if left else ()
    places = [known.in_buffer(d) for d in left]
    if None in places or not known.several:
        return NotImplemented
    out = tensordot(values(a), b, (tuple(places), right))
    lost = [sum(d < known.row for d in places if low <= d) for low in (0, known.lead)]  # type: ignore[operator]
    return over(out, known.structure, known.axis - lost[1], known.lead - (lost[0] - lost[1]))


@composed("einsum")
def sums_of_products(op: Op, args: tuple, params: dict) -> Any:
    """Compute an einsum on the buffers, or as a product of the matrices of each component."""
    terms, out = read_equation(params["equation"], tuple([a.shape for a in args]))
    if any(len(set(t)) < len(t) for t in terms):
        return NotImplemented
    args = tuple([packed(a) if is_nested(a) else a for a in args])
    found = _of_rows(args, terms, out)
    return _of_matrices(args, terms, out) if found is NotImplemented else found


def _of_rows(args: tuple, terms: Sequence[str], out: str) -> Any:
    """Compute one einsum of buffers, in which one letter represents the rows."""
    nested = [(a, t) for a, t in zip(args, terms, strict=True) if is_nested(a)]
    known = layout(nested[0][0])
    row = _row_letters(known, nested[0][1])
    if not known.several or any(_row_letters(layout(a), t) != row for a, t in nested):
        return NotImplemented
    plain = [t for a, t in zip(args, terms, strict=True) if not is_nested(a)]
    if any(c in t for c in row for t in plain) or not (set(row) <= set(out) or not set(row) & set(out)):
        return NotImplemented
    for other, _ in nested[1:]:
        if layout(other).structure != known.structure:
            check_alike("einsum", nested[0][0], other)
            return NotImplemented
    if row[0] in out and (row[1:] not in out or out.index(row[0]) > out.index(row[1])):
        return NotImplemented
    shorter = [_without(t, row) if any(a is n for n, _ in nested) else t for a, t in zip(args, terms, strict=True)]
    buffers = [values(a) if is_nested(a) else a for a in args]
    sums = einsum(f"{','.join(shorter)}->{_without(out, row)}", buffers)
    if row[0] not in out:
        return sums
    lead = out.index(row[0])
    return over(sums, known.structure, out.index(row[1]) - lead - 1, lead)


def _row_letters(known: Layout, term: str) -> str:
    """Return the letter of the components, and those of the ragged dimensions."""
    return term[known.lead] + term[known.ragged.start : known.ragged.stop]


def _without(term: str, row: str) -> str:
    """Return the term for a buffer: the letter of its rows is that of the first ragged dimension."""
    return "".join(c for c in term if c == row[1] or c not in row)


def _of_matrices(args: tuple, terms: Sequence[str], out: str) -> Any:
    """Compute the product of matrices of two operands with the components in front, if no permutation is needed."""
    if len(args) != 2 or not all(map(is_nested, args)) or {t[0] for t in terms} != {out[:1]}:
        return NotImplemented
    (a, b), (left, right) = args, terms
    shared = [c for c in left[1:] if c in right]
    front = "".join(c for c in shared if c in out)
    summed = [c for c in shared if c not in out]
    rows, columns = ([c for c in t[1:] if c not in shared] for t in (left, right))
    if len(summed) != 1 or max(len(rows), len(columns)) > 1 or any(c not in out for c in (*rows, *columns)):
        return NotImplemented
    x = _as_matrices(a, left, front, rows, summed)
    y = _as_matrices(b, right, front, summed, columns)
    made = out[0] + front + "".join(rows) + "".join(columns)
    if x is None or y is None or out not in (made, out[0] + front + "".join(columns) + "".join(rows)):
        return NotImplemented
    product = matmul(x, y)
    product = product if columns else squeeze(product, -1)
    product = product if rows else squeeze(product, -2 if columns else -1)
    return product if made == out else transpose(product, -2, -1)


def _as_matrices(x: Tensor, term: str, front: str, rows: Sequence[str], columns: Sequence[str]) -> Tensor | None:
    """Return an operand with its leading dimensions first; None if more than a transposition is needed."""
    order = front + "".join(rows) + "".join(columns)
    if term[1:] != order:
        if term[1:] != front + "".join(columns) + "".join(rows):
            return None
        x = transpose(x, -2, -1)
    x = x if rows else unsqueeze(x, -2)
    return x if columns else unsqueeze(x, -1)
