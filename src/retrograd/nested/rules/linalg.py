"""Matrix products: on the buffers if one operand is the same for all components, else component by component."""

from typing import Any

from retrograd.backend.ragged_products import Part, Parts, pair_structures
from retrograd.core import Aval, Op, Tensor
from retrograd.nested.buffer import like, over, packed, values
from retrograd.nested.buffer_layout import Layout, component_shapes, is_nested, layout
from retrograd.nested.dispatch import composed
from retrograd.nested.rules.pointwise import buffer_operand, result_layout
from retrograd.nested.rules.segment_matmul import multiply_each
from retrograd.ops.family import same_dtype
from retrograd.ops.linalg import linear, matmul
from retrograd.ops.view import movedim, squeeze


@composed("linear")
def linear_of_rows(op: Op, args: tuple, params: dict) -> Any:
    """Compute one dense product of all rows of all components."""
    x, *weights = args
    if not is_nested(x) or any(map(is_nested, weights)):
        return NotImplemented
    x = packed(x)
    known = layout(x)
    return like(known, linear(values(x), *weights)) if known.several and _dims_after_ragged(known) else NotImplemented


@composed("matmul")
def product(op: Op, args: tuple, params: dict) -> Any:
    """Multiply the buffer by a shared operand, or multiply component by component."""
    a, b = (packed(x) if is_nested(x) else x for x in args)
    if not all(isinstance(x, Tensor) for x in (a, b)):
        return NotImplemented
    same_dtype("matmul", (a, b))
    if not (is_nested(a) and is_nested(b)):
        shared = _matmul_shared(a, b)
        if shared is not NotImplemented:
            return shared
    return _matmul_each(a, b)


def _dims_after_ragged(known: Layout) -> int:
    """Return the number of dimensions after the ragged ones."""
    return known.ndim - known.ragged.stop


# ------------------------------------------------------------------------------- with what all components share


def _matmul_shared(a: Tensor, b: Tensor) -> Any:
    """Multiply with a plain operand that all components share, if no ragged dimension is summed over."""
    nested, plain = (a, b) if is_nested(a) else (b, a)
    known = layout(nested)
    own, summed = known.ndim - known.lead - 1, -1 if nested is a else -2
    plain = squeeze(plain, 0) if plain.ndim == own + 1 and plain.shape[0] == 1 else plain
    reaches = plain.ndim > 2 and plain.ndim > _dims_after_ragged(known)
    if own < 2 or not plain.ndim or known.ndim + summed in known.ragged or not known.several:
        return NotImplemented
    if plain.ndim > own or (reaches and not _broadcasts_along_rows(plain, known)):
        return NotImplemented
    rows = values(nested)
    if nested is a:
        return like(known, matmul(rows, plain))
    lost = plain.ndim == 1 and known.ragged.stop == known.ndim  # the dimension before the ragged one
    return over(matmul(plain, rows), known.structure, known.axis - lost, known.lead)


def _broadcasts_along_rows(plain: Tensor, known: Layout) -> bool:
    """Whether a plain operand broadcasts along the ragged dimension, if it has that dimension."""
    if known.several != 1:
        return False
    ragged = plain.ndim - 1 - _dims_after_ragged(known)
    return ragged >= plain.ndim - 2 or plain.shape[ragged] == 1


# ----------------------------------------------------------------------------------------- component by component


def _matmul_each(a: Tensor, b: Tensor) -> Any:
    """Multiply the matrices of each component."""
    known = layout(a if is_nested(a) else b)
    one, other = _part(a, known), _part(b, known)
    if one is None or other is None:
        return _matmul_stacks(a, b)
    (left, x), (right, y) = one, other
    count = len(known.structure)
    if is_nested(a) and is_nested(b) and len(layout(b).structure) != count:
        _check(a, b)
    out, axis = _of_product(left, right, max(x.ndim - left.core, y.ndim - right.core))
    try:
        buffer = multiply_each(x, y, parts=Parts(left, right, out))
    except ValueError:
        _check(a, b)
        raise
    return movedim(buffer, -3, 0) if out.structure is None else over(buffer, out.structure, axis)  # type: ignore[arg-type]


def _part(x: Tensor, known: Layout) -> tuple[Part, Tensor] | None:
    """Return the layout of the components' matrices and their buffer; None unless the ragged dimensions are the last
    two."""
    if not is_nested(x):
        follows = x.ndim > 2 and x.ndim == known.ndim and x.shape[0] == len(known.structure)
        return (Part("none"), movedim(x, 0, -3)) if follows else None
    its = layout(x)
    rows = values(x)
    if its.ndim - its.lead < 3 or its.lead or is_nested(rows):
        return None
    found = {(1, 1): "rows", (1, 0): "columns", (2, 0): "both"}.get((its.several, _dims_after_ragged(its)))
    return None if found is None else (Part(found, its.structure), rows)


def _of_product(left: Part, right: Part, front: int) -> tuple[Part, int]:
    """Return the layout of the products, and the number of dimensions of a component before the ragged ones."""
    rows, columns = left.structures[0], right.structures[1]
    if rows is not None and columns is not None:
        return Part("both", pair_structures(rows, columns)), front
    if rows is not None:
        return Part("rows", rows), front
    return (Part("none"), front) if columns is None else (Part("columns", columns), front + 1)


def _matmul_stacks(a: Tensor, b: Tensor) -> Any:
    """Multiply stacks of matrices, one per row of two buffers."""
    if min(a.ndim, b.ndim) < 2 or any(_dims_after_ragged(layout(x)) < 2 for x in (a, b) if is_nested(x)):
        return NotImplemented
    known = result_layout((a, b))
    operands = [buffer_operand(x, known) for x in (a, b)]
    return NotImplemented if any(x is NotImplemented for x in operands) else like(known, matmul(*operands))


def _check(a: Tensor, b: Tensor) -> None:
    """Raise ValueError that names the first component whose matrices cannot be multiplied, and their shapes."""
    left, right = (component_shapes(x) if is_nested(x) else [x.shape[1:]] * x.shape[0] for x in (a, b))
    if len(left) != len(right):
        raise ValueError(f"matmul: the nested tensors have {len(left)} and {len(right)} components")
    for i, (one, other) in enumerate(zip(left, right, strict=True)):
        try:
            matmul.definition.shape(Aval(one, a.dtype), Aval(other, b.dtype))
        except ValueError:
            raise ValueError(
                f"matmul: the nested tensors do not fit: component {i} has shapes {one} and {other}"
            ) from None
