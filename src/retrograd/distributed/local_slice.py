"""`LocalSlice`: the elements of a tensor that this rank has."""

from dataclasses import dataclass

from retrograd.core import Tensor


@dataclass(frozen=True)
class LocalSlice:
    """Some elements of a tensor: those from `low` on, in row-major order, as many as `tensor` has.

    shape: of the whole tensor.

    >>> import retrograd as rg
    >>> LocalSlice(rg.ones(2, 3), (4, 3), 6).high
    12
    """

    tensor: Tensor
    shape: tuple[int, ...]
    low: int

    @property
    def high(self) -> int:
        """Return the index after the last element."""
        return self.low + self.tensor.numel()
