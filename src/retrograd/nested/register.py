"""Register ragged arrays with the core."""

import math
from collections.abc import Callable
from typing import Any

from retrograd.backend.ragged import Ragged
from retrograd.core import Op, Tensor, call, registry
from retrograd.core.op import CompositeArray, composite_arrays
from retrograd.nested import flat_values
from retrograd.nested.buffer import remove_holes, values
from retrograd.nested.buffer_layout import get_layout, is_nested
from retrograd.nested.dispatch import decompose
from retrograd.nested.rules import copy
from retrograd.ops.layout import device_of_operands, jagged, making_on, strided
from retrograd.ops.layout import layout as Layout


class Nested(CompositeArray):
    """The core's interface to nested tensors."""

    def call(self, op: Op, args: tuple, params: dict) -> Any:
        """Run an operator by operators on buffers, or on components."""
        device = device_of_operands(args)
        if device is None:
            return decompose(op, args, params)
        with making_on(device):  # arrays that follow from the structure, as the divisors of a mean
            return decompose(op, args, params)

    def plain(self, x: Tensor) -> tuple[Tensor, Callable[[Tensor, int], Tensor]]:
        """Return the plain tensor with all elements of x, and its inverse: see `levels.plain`."""
        return flat_values.flat_buffer(x)

    def numel(self, x: Tensor) -> int:
        """Return the number of elements of all components, or of one component of a batch."""
        count: int = registry["nested.values"](remove_holes(x)).numel() if is_nested(x) else math.prod(x.shape)
        return count

    def layout(self, x: Tensor) -> Layout:
        """Return the layout: jagged if it was asked for, with one ragged dimension and dense components."""
        if not is_nested(x) or get_layout(x).num_ragged != 1 or get_layout(x).structure.strided:
            return strided
        return strided if is_nested(values(x)) else jagged

    def values(self, x: Tensor) -> Tensor:
        """Return the buffer."""
        if not is_nested(x):
            raise RuntimeError(f"values(): expected a nested tensor, got a tensor of shape {x.shape}")
        out: Tensor = call(values, (x,), {})
        return out

    def write(self, name: str, x: Tensor, src: Tensor) -> Tensor:
        """Write to the buffer."""
        return copy.write(name, x, src)

    def write_item(self, x: Tensor, key: Any, value: Any) -> None:
        """Write to the buffer, or to components."""
        copy.write_item(x, key, value)


composite_arrays[Ragged] = Nested()
