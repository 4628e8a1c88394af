"""Base class of tensors that are divided among ranks, for modules and optimizers."""

from collections.abc import Iterable
from typing import Any

from retrograd.core import Tensor
from retrograd.core.overrides import disabled_override


class TensorPart(Tensor):
    """Base of `retrograd.distributed.tensor.DTensor`: this rank's part of a whole tensor."""

    __tensor_function__ = staticmethod(disabled_override)

    def as_part(self, x: Tensor) -> "TensorPart":
        """Return a tensor with the shape of this part as the same part of another whole tensor."""
        raise NotImplementedError

    def part_of(self, whole: Tensor) -> Tensor:
        """Return the elements of this part, given those of the whole tensor."""
        raise NotImplementedError

    @property
    def whole_shape(self) -> tuple[int, ...]:
        """Return the shape of the whole tensor."""
        raise NotImplementedError

    @property
    def mesh_and_placement(self) -> Any:
        """Return what is equal for tensors that are divided among the same ranks, and can be hashed."""
        raise NotImplementedError

    def stack_over_ranks(self, x: Tensor) -> Tensor:
        """Return the scalars of all ranks that have other parts, as a vector."""
        raise NotImplementedError


def parts_by_division(params: Iterable[Any]) -> list[list[TensorPart]]:
    """Return the parts among parameters, in lists of those that are divided among the same ranks."""
    found: dict[Any, list[TensorPart]] = {}
    for p in params:
        if isinstance(p, TensorPart):
            found.setdefault(p.mesh_and_placement, []).append(p)
    return list(found.values())
