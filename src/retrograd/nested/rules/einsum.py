"""Sums of products over named dimensions: on the buffers, if components and ragged dimensions match."""

from collections.abc import Sequence
from typing import Any

from retrograd.core import Op, Tensor
from retrograd.nested.buffer import remove_holes, values, wrap_buffer
from retrograd.nested.buffer_layout import Layout, get_layout, is_nested
from retrograd.nested.dispatch import rule_for
from retrograd.nested.rules.pointwise import check_broadcast
from retrograd.ops.family import canonical_dims
from retrograd.ops.linalg import einsum, matmul, read_equation
from retrograd.ops.products import tensordot
from retrograd.ops.view import squeeze, transpose, unsqueeze


@rule_for("tensordot")
def tensordot_rule(op: Op, args: tuple, params: dict) -> Any:
    """Multiply the buffer with a plain second operand, over dense dimensions."""
    a, b = args
    dims = params["dims"]
    if not is_nested(a) or is_nested(b):
        return NotImplemented
    if isinstance(dims, int):
        dims = range(a.ndim - dims, a.ndim), range(dims)
    a = remove_holes(a)
    layout = get_layout(a)
    left, right = ((d,) if isinstance(d, int) else tuple(d) for d in dims)
    left = canonical_dims("tensordot", left, a.ndim) if left else ()
    contracted = [layout.buffer_dim(d) for d in left]
    if None in contracted or not layout.num_ragged:
        return NotImplemented
    out = tensordot(values(a), b, (tuple(contracted), right))
    num_removed = [sum(d < layout.row for d in contracted if low <= d) for low in (0, layout.lead)]  # type: ignore[operator]
    return wrap_buffer(
        out, layout.structure, layout.axis - num_removed[1], layout.lead - (num_removed[0] - num_removed[1])
    )


@rule_for("einsum")
def einsum_rule(op: Op, args: tuple, params: dict) -> Any:
    """Compute an einsum on the buffers, or as a product of the matrices of each component."""
    terms, out = read_equation(params["equation"], tuple([a.shape for a in args]))
    if any(len(set(t)) < len(t) for t in terms):
        return NotImplemented
    args = tuple([remove_holes(a) if is_nested(a) else a for a in args])
    found = _einsum_on_buffers(args, terms, out)
    return _einsum_by_matmul(args, terms, out) if found is NotImplemented else found


def _einsum_on_buffers(args: tuple, terms: Sequence[str], out: str) -> Any:
    """Compute one einsum of buffers, in which one letter represents the rows."""
    nested = [(a, t) for a, t in zip(args, terms, strict=True) if is_nested(a)]
    layout = get_layout(nested[0][0])
    row = _row_letters(layout, nested[0][1])
    if not layout.num_ragged or any(_row_letters(get_layout(a), t) != row for a, t in nested):
        return NotImplemented
    plain = [t for a, t in zip(args, terms, strict=True) if not is_nested(a)]
    if any(c in t for c in row for t in plain) or not (set(row) <= set(out) or not set(row) & set(out)):
        return NotImplemented
    for other, _ in nested[1:]:
        if get_layout(other).structure != layout.structure:
            check_broadcast("einsum", nested[0][0], other)
            return NotImplemented
    if row[0] in out and (row[1:] not in out or out.index(row[0]) > out.index(row[1])):
        return NotImplemented
    buffer_terms = [
        _buffer_term(t, row) if any(a is n for n, _ in nested) else t for a, t in zip(args, terms, strict=True)
    ]
    buffers = [values(a) if is_nested(a) else a for a in args]
    sums = einsum(f"{','.join(buffer_terms)}->{_buffer_term(out, row)}", buffers)
    if row[0] not in out:
        return sums
    lead = out.index(row[0])
    return wrap_buffer(sums, layout.structure, out.index(row[1]) - lead - 1, lead)


def _row_letters(layout: Layout, term: str) -> str:
    """Return the letter of the components, and those of the ragged dimensions."""
    return term[layout.lead] + term[layout.ragged.start : layout.ragged.stop]


def _buffer_term(term: str, row: str) -> str:
    """Return the term for a buffer: the letter of its rows is that of the first ragged dimension."""
    return "".join(c for c in term if c == row[1] or c not in row)


def _einsum_by_matmul(args: tuple, terms: Sequence[str], out: str) -> Any:
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
    natural = out[0] + front + "".join(rows) + "".join(columns)
    if x is None or y is None or out not in (natural, out[0] + front + "".join(columns) + "".join(rows)):
        return NotImplemented
    product = matmul(x, y)
    product = product if columns else squeeze(product, -1)
    product = product if rows else squeeze(product, -2 if columns else -1)
    return product if natural == out else transpose(product, -2, -1)


def _as_matrices(x: Tensor, term: str, front: str, rows: Sequence[str], columns: Sequence[str]) -> Tensor | None:
    """Return an operand with its leading dimensions first; None if more than a transposition is needed."""
    order = front + "".join(rows) + "".join(columns)
    if term[1:] != order:
        if term[1:] != front + "".join(columns) + "".join(rows):
            return None
        x = transpose(x, -2, -1)
    x = x if rows else unsqueeze(x, -2)
    return x if columns else unsqueeze(x, -1)
