"""Matrix products: on the buffers if one operand is the same for all components, else component by component."""

from typing import Any

from retrograd.backend.ragged_products import Part, Parts, pair_structures
from retrograd.core import Aval, Op, Tensor
from retrograd.nested.buffer import remove_holes, values, wrap_buffer, wrap_buffer_like
from retrograd.nested.buffer_layout import Layout, component_shapes, get_layout, is_nested
from retrograd.nested.dispatch import rule_for
from retrograd.nested.rules.pointwise import buffer_operand, result_layout
from retrograd.nested.rules.segment_matmul import multiply_each
from retrograd.ops.family import same_dtype
from retrograd.ops.linalg import linear, matmul
from retrograd.ops.view import movedim, squeeze


@rule_for("linear")
def linear_rule(op: Op, args: tuple, params: dict) -> Any:
    """Compute one dense product of all rows of all components."""
    x, *weights = args
    if not is_nested(x) or any(map(is_nested, weights)) or weights[0].ndim != 2:
        return NotImplemented
    x = remove_holes(x)
    layout = get_layout(x)
    return (
        wrap_buffer_like(layout, linear(values(x), *weights))
        if layout.num_ragged and _dims_after_ragged(layout)
        else NotImplemented
    )


@rule_for("matmul")
def matmul_rule(op: Op, args: tuple, params: dict) -> Any:
    """Multiply the buffer by a shared operand, or multiply component by component."""
    a, b = (remove_holes(x) if is_nested(x) else x for x in args)
    if not all(isinstance(x, Tensor) for x in (a, b)):
        return NotImplemented
    same_dtype("matmul", (a, b))
    if not (is_nested(a) and is_nested(b)):
        shared = _matmul_shared(a, b)
        if shared is not NotImplemented:
            return shared
    return _matmul_each(a, b)


def _dims_after_ragged(layout: Layout) -> int:
    """Return the number of dimensions after the ragged ones."""
    return layout.ndim - layout.ragged.stop


# ------------------------------------------------------------------------------- with what all components share


def _matmul_shared(a: Tensor, b: Tensor) -> Any:
    """Multiply with a plain operand that all components share, if no ragged dimension is summed over."""
    nested, plain = (a, b) if is_nested(a) else (b, a)
    layout = get_layout(nested)
    own, summed = layout.ndim - layout.lead - 1, -1 if nested is a else -2
    plain = squeeze(plain, 0) if plain.ndim == own + 1 and plain.shape[0] == 1 else plain
    reaches = plain.ndim > 2 and plain.ndim > _dims_after_ragged(layout)
    if own < 2 or not plain.ndim or layout.ndim + summed in layout.ragged or not layout.num_ragged:
        return NotImplemented
    if plain.ndim > own or (reaches and not _broadcasts_along_rows(plain, layout)):
        return NotImplemented
    rows = values(nested)
    if nested is a:
        return wrap_buffer_like(layout, matmul(rows, plain))
    removed = plain.ndim == 1 and layout.ragged.stop == layout.ndim  # the dimension before the ragged one
    return wrap_buffer(matmul(plain, rows), layout.structure, layout.axis - removed, layout.lead)


def _broadcasts_along_rows(plain: Tensor, layout: Layout) -> bool:
    """Whether a plain operand broadcasts along the ragged dimension, if it has that dimension."""
    if layout.num_ragged != 1:
        return False
    ragged = plain.ndim - 1 - _dims_after_ragged(layout)
    return ragged >= plain.ndim - 2 or plain.shape[ragged] == 1


# ----------------------------------------------------------------------------------------- component by component


def _matmul_each(a: Tensor, b: Tensor) -> Any:
    """Multiply the matrices of each component."""
    layout = get_layout(a if is_nested(a) else b)
    one, other = _matrix_part(a, layout), _matrix_part(b, layout)
    if one is None or other is None:
        return _matmul_stacks(a, b)
    (left, x), (right, y) = one, other
    count = len(layout.structure)
    if is_nested(a) and is_nested(b) and len(get_layout(b).structure) != count:
        _check_shapes(a, b)
    out, axis = _product_layout(left, right, max(x.ndim - left.core, y.ndim - right.core))
    try:
        buffer = multiply_each(x, y, parts=Parts(left, right, out))
    except ValueError:
        _check_shapes(a, b)
        raise
    return movedim(buffer, -3, 0) if out.structure is None else wrap_buffer(buffer, out.structure, axis)  # type: ignore[arg-type]


def _matrix_part(x: Tensor, layout: Layout) -> tuple[Part, Tensor] | None:
    """Return the layout of the components' matrices and their buffer; None unless the ragged dimensions are the last
    two."""
    if not is_nested(x):
        has_row_each = x.ndim > 2 and x.ndim == layout.ndim and x.shape[0] == len(layout.structure)
        return (Part("none"), movedim(x, 0, -3)) if has_row_each else None
    its = get_layout(x)
    rows = values(x)
    if its.ndim - its.lead < 3 or its.lead or is_nested(rows):
        return None
    found = {(1, 1): "rows", (1, 0): "columns", (2, 0): "both"}.get((its.num_ragged, _dims_after_ragged(its)))
    return None if found is None else (Part(found, its.structure), rows)


def _product_layout(left: Part, right: Part, front: int) -> tuple[Part, int]:
    """Return the layout of the products, and the number of dimensions of a component before the ragged ones."""
    rows, columns = left.structures[0], right.structures[1]
    if rows is not None and columns is not None:
        return Part("both", pair_structures(rows, columns)), front
    if rows is not None:
        return Part("rows", rows), front
    return (Part("none"), front) if columns is None else (Part("columns", columns), front + 1)


def _matmul_stacks(a: Tensor, b: Tensor) -> Any:
    """Multiply stacks of matrices, one per row of two buffers."""
    if min(a.ndim, b.ndim) < 2 or any(_dims_after_ragged(get_layout(x)) < 2 for x in (a, b) if is_nested(x)):
        return NotImplemented
    layout = result_layout((a, b))
    operands = [buffer_operand(x, layout) for x in (a, b)]
    return NotImplemented if any(x is NotImplemented for x in operands) else wrap_buffer_like(layout, matmul(*operands))


def _check_shapes(a: Tensor, b: Tensor) -> None:
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
