"""Ragged arrays make themselves known to the core."""

from typing import Any

from retrograd.backend.ragged import Ragged
from retrograd.core import Op, Tensor
from retrograd.core.op import Compound, compounds
from retrograd.nested import writing
from retrograd.nested.apart import take_apart


class Nested(Compound):
    """What takes operators on nested tensors apart."""

    def call(self, op: Op, args: tuple, params: dict) -> Any:
        """By way of operators on buffers, or on components."""
        return take_apart(op, args, params)

    def write(self, name: str, x: Tensor, src: Tensor) -> Tensor:
        """By a write to the buffer."""
        return writing.write(name, x, src)

    def write_item(self, x: Tensor, key: Any, value: Any) -> None:
        """By writes to the buffer, or to components."""
        writing.write_item(x, key, value)


compounds[Ragged] = Nested()
