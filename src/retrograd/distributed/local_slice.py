"""`LocalSlice`: the elements of a tensor that this rank has."""

from dataclasses import dataclass

from retrograd.core import Tensor


@dataclass(frozen=True)
class LocalSlice:
    """Some elements of a tensor: those from `low` on, in row-major order, as many as `tensor` has.

    shape: of the whole tensor.  copies: how many ranks have these elements, of which this one is number `copy`.

    >>> import retrograd as rg
    >>> LocalSlice(rg.ones(2, 3), (4, 3), 6).high
    12
    """

    tensor: Tensor
    shape: tuple[int, ...]
    low: int
    copy: int = 0
    copies: int = 1

    @property
    def high(self) -> int:
        """Return the index after the last element."""
        return self.low + self.tensor.numel()

    def share(self) -> "LocalSlice":
        """Return the elements that this rank saves, if each rank with a copy saves an equal number.

        >>> import retrograd as rg
        >>> LocalSlice(rg.arange(5), (5,), 0, copy=1, copies=2).share()
        LocalSlice(tensor=tensor([3, 4]), shape=(5,), low=3, copy=0, copies=1)
        """
        if self.copies == 1:
            return self
        size = -(-self.tensor.numel() // self.copies)
        start = min(self.copy * size, self.tensor.numel())
        part = self.tensor.detach().reshape(-1)[start : start + size]
        return LocalSlice(part, self.shape, self.low + start)
