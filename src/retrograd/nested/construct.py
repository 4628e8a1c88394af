"""Construct nested tensors: from components, from a dense tensor's slices, and over an existing buffer."""

from collections.abc import Sequence
from typing import Any

from retrograd.backend.offsets import equal_parts, structure_of_offsets
from retrograd.backend.ragged import no_sizes
from retrograd.core import Tensor, call
from retrograd.core.errors import OperandValueError
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nested.buffer import to_layout, values, wrap_buffer
from retrograd.nested.buffer_layout import component_shapes, is_nested
from retrograd.nested.buffer_layout import get_layout as get_ragged_layout
from retrograd.nested.component_lists import is_list, parse_components
from retrograd.nested.components import components, nest
from retrograd.ops.create import as_tensor
from retrograd.ops.layout import check_device, check_keywords, jagged, strided
from retrograd.ops.layout import layout as Layout
from retrograd.ops.methods import concrete


def nested_tensor(
    tensor_list: Any,
    dtype: Any = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a nested tensor with copies of components: a leaf, which no gradients pass through.

    tensor_list: tensors, arrays, numbers, or lists of numbers, all of one dtype and number of dimensions; shape
    (components, ...) for the result, ragged in all dimensions from the first to the last whose sizes differ, and (0,)
    for none.  A list whose members differ in shape, and a nested tensor, are nested components.  Python numbers take
    the dtype of the tensors and arrays.  layout: `rg.strided`, the default, or `rg.jagged`, which refuses more than one
    ragged dimension; results have the layout of their operands, and computations do not depend on it.

    Raises ValueError for another number of dimensions and TypeError for another dtype, naming the first such component.

    >>> import retrograd as rg
    >>> x = rg.nested.nested_tensor([[1.0, 2.0], [3.0]], requires_grad=True)
    >>> x, x.shape
    (nested_tensor([
      tensor([1., 2.], requires_grad=True),
      tensor([3.], requires_grad=True)
    ], requires_grad=True), (2, j))
    """
    check_keywords(device, pin_memory=pin_memory)
    made = _build("nested_tensor", tensor_list, dtype, layout, apart=True)
    leaf: Tensor = made.data
    return leaf.requires_grad_(requires_grad)


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Layout | None = None) -> Tensor:
    """Return the nested tensor of components, with gradients to them.

    ts: components as for `nested_tensor`; or a dense tensor, whose slices along the first dimension are the
    components, as views; or a nested tensor, which is returned as it is, or as a view in another layout.

    >>> import retrograd as rg
    >>> a = rg.ones(2, requires_grad=True)
    >>> (rg.nested.as_nested_tensor([a, rg.ones(3)]) * 2).values().sum().backward()
    >>> a.grad
    tensor([2., 2.])
    """
    check_device(device)
    return _build("as_nested_tensor", ts, dtype, layout, apart=False)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Any = None,
    lengths: Any = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """Return the nested tensor over existing rows, without a copy; gradients flow to `values`.

    values: the rows of all components along dimension `jagged_dim - 1`, where `jagged_dim`, 1 by default, counts in
    the result, which has the components in front.  offsets: integers, the first row of each component, and the end of
    the last one.  lengths: integers, the number of rows of each.  With both, rows may be left out, or shared.
    min_seqlen, max_seqlen: bounds of the lengths, which are checked.

    Raises ValueError, before any row is read, for offsets that do not begin with 0, decrease, or do not end at the
    number of rows, and for lengths that are negative or too large; TypeError for non-integers.

    >>> import retrograd as rg
    >>> rg.nested.nested_tensor_from_jagged(rg.arange(5), [0, 2, 5])
    nested_tensor([
      tensor([0, 1]),
      tensor([2, 3, 4])
    ])
    """
    name = "nested_tensor_from_jagged"
    if offsets is None and lengths is None:
        raise RuntimeError(f"{name}(): At least one of offsets or lengths is required.")
    values = as_tensor(values)
    axis = _ragged_axis(name, values, 1 if jagged_dim is None else jagged_dim)
    structure = structure_of_offsets(name, _to_array(offsets), _to_array(lengths), values.shape[axis])
    _check_bounds(name, structure.lengths, min_seqlen, max_seqlen)
    return wrap_buffer(values, structure, axis)


# ----------------------------------------------------------------------------------------------------- parts


def _build(name: str, given: Any, dtype: Any, layout: Layout | None, apart: bool) -> Tensor:
    """Return the nested tensor of components, for the function `name`; `apart` copies outside graphs."""
    if layout not in (None, strided, jagged):
        raise TypeError(f"{name}: layout must be rg.strided or rg.jagged, got {layout!r}")
    if is_list(given):
        made = _nest_lists(parse_components(name, given, dtype, apart), dtype)
    elif hasattr(given, "ndim"):
        made = as_tensor(given, dtype)
        made = as_nested(name, made)
        made = made.detach().clone() if apart else made
    else:
        raise TypeError(
            f"{name}: Only lists (List[Tensor] and List[List...[Scalar]]) of components, and tensors, are accepted in "
            f"{name}, got {type(given).__name__}"
        )
    if layout is None and is_nested(given):
        return made
    if layout is jagged:
        _check_jagged(name, made)
    return to_layout(made, layout is not jagged)


def _nest_lists(parts: list, dtype: Any) -> Tensor:
    """Return the nested tensor of components, each a tensor, or a list for a nested component."""
    sets = [_nest_lists(part, dtype) if isinstance(part, list) else part for part in parts]
    if not sets:
        return wrap_buffer(as_tensor([], dtype), no_sizes(0))
    return nest_nested(sets) if any(map(is_nested, sets)) else nest(sets)


def nest_nested(sets: Sequence[Tensor]) -> Tensor:
    """Return the nested tensor whose components are nested tensors; a dense one is split into its slices."""
    name = "nested_tensor"
    nested = [as_nested(name, one) for one in sets]
    _check_depths(name, nested)
    inner = [component for one in nested for component in components(one)]
    if inner:
        buffer = nest_nested(inner) if any(map(is_nested, inner)) else nest(inner)
    else:
        buffer = max(nested, key=lambda one: one.ndim)
    return wrap_buffer(buffer, structure_of_offsets(name, None, [len(one) for one in nested], len(inner)))


def _check_depths(name: str, sets: list[Tensor]) -> None:
    """Check that nested components have one number of dimensions, except those without components."""
    filled = [i for i, one in enumerate(sets) if len(one)]
    for i in filled:
        first = filled[0]
        if sets[i].ndim != sets[first].ndim:
            raise ValueError(
                f"{name}: components have one number of dimensions: component {first} has shape {sets[first].shape}, "
                f"component {i} has shape {sets[i].shape}"
            )


def nest_slices(name: str, x: Tensor) -> Tensor:
    """Return the nested tensor of the slices of a dense tensor along its first dimension."""
    if not x.ndim:
        raise OperandValueError(
            f"{name}(): Expected tensor argument to have dim() > 1: one without dimensions has no slices"
        )
    if x.ndim == 1:
        return wrap_buffer(x, no_sizes(x.shape[0]))
    count, size, *rest = x.shape
    return wrap_buffer(x.reshape((count * size, *rest)), equal_parts(count, size))


def as_nested(name: str, rows: Tensor) -> Tensor:
    """Return a nested tensor unchanged, or the nested tensor of a dense one's slices."""
    return rows if is_nested(rows) else nest_slices(name, rows)


def unflatten_rows(rows: Tensor, count: int, size: int) -> Tensor:
    """Group rows, dense or components of a nested tensor, by `size`, along a new first dimension."""
    if is_nested(rows):
        return wrap_buffer(rows, equal_parts(count, size))
    return rows.reshape((count, size, *rows.shape[1:]))


def _check_jagged(name: str, x: Tensor) -> None:
    """Refuse tensors without exactly one ragged dimension."""
    layout, jagged_only = get_ragged_layout(x), f"{name}: in the jagged layout"
    if not len(x):
        raise RuntimeError(f"{name}: Cannot construct a nested tensor from an empty tensor list in the jagged layout")
    if is_nested(call(values, (x,), {})):
        raise RuntimeError(f"{jagged_only} components are dense, but component 0 is a nested tensor; use rg.strided")
    if not layout.num_ragged:
        raise RuntimeError(
            f"{name}: Cannot construct a nested tensor from a list of zero-dim tensors in the jagged layout, and "
            f"component 0 has shape (); use rg.strided. {name}(): Expected tensor argument to have dim() > 1"
        )
    if layout.num_ragged > 1:
        shapes = component_shapes(x)
        other = next((i for i, s in enumerate(shapes) if s[layout.axis :] != shapes[0][layout.axis :]), 0)
        first, last = layout.ragged.start, layout.ragged.stop - 1
        raise RuntimeError(
            f"{name}: Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the "
            f"jagged layout only allows for a single ragged dimension, but components differ in dimensions {first} to "
            f"{last}: component 0 has shape {shapes[0]}, component {other} has shape {shapes[other]}; use rg.strided"
        )


# --------------------------------------------------------------------------------------- offsets and lengths


def _ragged_axis(name: str, values: Tensor, jagged_dim: int) -> int:
    """Return the dimension of the buffer that holds the rows."""
    if not values.ndim:
        raise ValueError(f"{name}: values must have a dimension, along which the rows lie, got shape ()")
    last = 1 if is_nested(values) else values.ndim
    if not 1 <= jagged_dim <= last:
        raise ValueError(
            f"{name}: Expected jagged_dim >=1, but got {jagged_dim}. At most it is {last}; dimension 0 of the result "
            f"is that of the components, and values has shape {values.shape}"
        )
    return jagged_dim - 1


def _to_array(integers: Any) -> Any:
    """Return offsets or lengths as an array."""
    return concrete(integers) if isinstance(integers, Tensor) else integers


def _check_bounds(name: str, lengths: Any, low: int | None, high: int | None) -> None:
    """Refuse bounds that some length violates."""
    for i, length in enumerate(lengths.tolist() if (low, high) != (None, None) else ()):
        if low is not None and length < low:
            raise ValueError(f"{name}: component {i} has length {length}, less than min_seqlen={low}")
        if high is not None and length > high:
            raise ValueError(f"{name}: component {i} has length {length}, more than max_seqlen={high}")


suggest_in_module(globals())
