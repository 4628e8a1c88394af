"""Pad nested tensors to dense ones, and back: linear maps, each the other's transpose."""

from typing import Any

from retrograd.backend import padding as kernels
from retrograd.backend.ragged import structure_of
from retrograd.core import Aval, Op, Tensor, op, registry
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nested.buffer import remove_holes, values, wrap_buffer
from retrograd.nested.buffer_layout import get_layout, is_nested
from retrograd.nested.dispatch import rule_for, with_final_errors
from retrograd.nested.rules.segment_reduce import Segments
from retrograd.ops.create import as_tensor
from retrograd.ops.family import Composite
from retrograd.ops.methods import concrete
from retrograd.ops.view import movedim


@op("nested.pad_rows(Tensor x, *, any structure, int row, int[] sizes, number padding=0) -> Tensor")
class pad_rows(Segments, elements="moved", in_host_memory=False):
    """The components in boxes of `sizes`, filled with `padding`: the row dimension becomes (components, *sizes)."""

    def impl(xp, x, *, structure, row, sizes, padding):
        return xp.padding.pad_rows(x, structure, row, sizes, padding)

    def shape(x, *, structure, row, sizes, padding):
        return Aval((*x.shape[:row], len(structure), *sizes, *x.shape[row + 1 :]), x.dtype)

    def vjp_x(g, structure, row):
        return unpad_rows(g, structure=structure, row=row)

    def jvp_x(t, structure, row, sizes):
        return pad_rows(t, structure=structure, row=row, sizes=sizes, padding=0)

    def samples(r):
        structure = structure_of([(2,), (0,), (3,)])[0]
        yield (r(5, 2),), {"structure": structure, "row": 0, "sizes": (4,)}
        yield (r(2, 5),), {"structure": structure, "row": 1, "sizes": (3,), "padding": -1.5}
        structure = structure_of([(1, 3), (2, 2)])[0]
        yield (r(2, 7, 2),), {"structure": structure, "row": 1, "sizes": (2, 3)}


@op("nested.unpad_rows(Tensor x, *, any structure, int row) -> Tensor")
class unpad_rows(Segments, linear="x", elements="moved", in_host_memory=False):
    """The rows of components in the corners of boxes: the dimensions (components, *sizes) become rows."""

    def impl(xp, x, *, structure, row):
        return xp.padding.unpad_rows(x, structure, row)

    def shape(x, *, structure, row):
        several = structure.sizes.shape[1]
        kernels.check_boxes(x.shape[row : row + 1 + several], structure)
        return Aval((*x.shape[:row], structure.rows, *x.shape[row + 1 + several :]), x.dtype)

    def vjp_x(g, x_aval, structure, row):
        sizes = x_aval.shape[row + 1 : row + 1 + structure.sizes.shape[1]]
        return pad_rows(g, structure=structure, row=row, sizes=sizes, padding=0)

    def samples(r):
        structure = structure_of([(2,), (0,), (3,)])[0]
        yield (r(3, 4, 2),), {"structure": structure, "row": 0}
        yield (r(2, 3, 3),), {"structure": structure, "row": 1}
        yield (r(2, 2, 3),), {"structure": structure_of([(1, 3), (2, 2)])[0], "row": 0}


# ------------------------------------------------------------------------------------------------ nested -> dense


@op("to_padded_tensor(Tensor input, number padding, int[]? output_size=None) -> Tensor")
class to_padded_tensor(Composite, home="nested"):
    """The dense tensor in which each component of a nested one starts at index 0, followed by `padding`.

    Each dimension has the largest size of any component, or that of
    `output_size`, which has a size for each dimension.  ValueError if one is too small.  Works for any number of
    ragged dimensions, and nested components.

    >>> import retrograd as rg
    >>> x = rg.nested.nested_tensor([[1.0, 2.0], [3.0]])
    >>> x.to_padded_tensor(0.0, output_size=(2, 3)).tolist()
    [[1.0, 2.0, 0.0], [3.0, 0.0, 0.0]]
    """

    def compose(x, *, padding, output_size):
        raise TypeError(f"to_padded_tensor: expected a nested tensor, got a dense one of shape {x.shape}")


Tensor.to_padded_tensor = to_padded_tensor  # type: ignore[attr-defined]


@rule_for("to_padded_tensor")
@with_final_errors
def _to_padded(op: Op, args: tuple, params: dict) -> Any:
    """Pad the buffer, nested components first."""
    (x,), output_size = args, params["output_size"]
    needed = [kernels.largest(size) for size in x.shape]
    output_size = needed if output_size is None else output_size
    if len(output_size) != x.ndim:
        raise ValueError(
            f"to_padded_tensor: output_size must have {x.ndim} sizes, one for each dimension, got {output_size}"
        )
    for d, (size, requested) in enumerate(zip(needed, output_size, strict=True)):
        if requested < size:
            raise ValueError(
                f"to_padded_tensor: output_size has {requested} for dimension {d}, of which {size} are needed"
            )
    return pad_to(x, params["padding"], tuple(output_size))


def pad_to(x: Tensor, padding: Any, sizes: tuple[int, ...]) -> Tensor:
    """Return a tensor as a dense one of these sizes, which are large enough."""
    if not is_nested(x):
        more = [(0, size - s) for s, size in zip(x.shape, sizes, strict=True)]
        pads = [n for pair in more[::-1] for n in pair]
        return registry["pad"](x, tuple(pads), value=padding) if any(pads) else x
    x = remove_holes(x)
    layout = get_layout(x)
    first, last, lead = layout.ragged.start, layout.ragged.stop, layout.lead
    rows = values(x)
    rows = pad_to(rows, padding, (*sizes[:lead], *sizes[lead + 1 : first], rows.shape[layout.row], *sizes[last:]))
    out = pad_rows(rows, structure=layout.structure, row=layout.row, sizes=sizes[first:last], padding=padding)
    out = movedim(out, layout.row, lead) if layout.axis else out
    return pad_to(out, padding, sizes)


# ------------------------------------------------------------------------------------------------ dense -> nested


def nested_tensor_from_padded(pad_to: Tensor, lengths: Any) -> Tensor:
    """Return the nested tensor of a padded tensor's components, given their lengths: inverse of `to_padded_tensor`.

    padded: (components, *sizes, ...).  lengths: integers, the length of each component along dimension 1; of shape
    (components, n), along the n dimensions from 1 on, which are then all ragged.  A nested tensor of lengths gives
    nested components: it has a length for each inner component.

    Raises ValueError, naming the first component whose length is negative or too large, TypeError for
    non-integers.

    >>> import retrograd as rg
    >>> rg.nested.nested_tensor_from_padded(rg.arange(6).reshape(2, 3), [1, 2])
    nested_tensor([
      tensor([0]),
      tensor([3, 4])
    ])
    """
    name, inner = "nested_tensor_from_padded", None
    if isinstance(lengths, Tensor) and is_nested(lengths):
        lengths = remove_holes(lengths)
        inner, lengths = values(lengths), get_layout(lengths).structure.sizes
    pad_to, numbers = as_tensor(pad_to), concrete(as_tensor(lengths))
    if pad_to.ndim < 2:
        raise ValueError(f"{name}: expected a tensor of 2 dimensions or more, got shape {pad_to.shape}")
    structure = kernels.structure_of_lengths(name, numbers, pad_to.shape)
    rows = unpad_rows(pad_to, structure=structure, row=0)
    return wrap_buffer(rows if inner is None else nested_tensor_from_padded(rows, inner), structure)


suggest_in_module(globals())
