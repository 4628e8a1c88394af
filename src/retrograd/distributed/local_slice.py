"""`LocalSlice`: the elements of a tensor that this rank has."""

from dataclasses import dataclass, replace

from retrograd.core import Tensor


@dataclass(frozen=True)
class LocalSlice:
    """Some elements of a tensor: those from `low` on, as many as `tensor` has.

    shape: of the whole tensor.  copies: how many ranks have these elements, of which this one is number `copy`.
    dim: elements are in row-major order of the whole tensor with this dimension moved to the front, and so are those
    of `tensor`.  Then each rank has a range of elements, whichever dimension is divided.
    box: if several dimensions are divided, the ranges of indices among which `low` and these elements count.

    >>> import retrograd as rg
    >>> LocalSlice(rg.ones(2, 3), (4, 3), 6).high
    12
    """

    tensor: Tensor
    shape: tuple[int, ...]
    low: int
    copy: int = 0
    copies: int = 1
    dim: int = 0
    box: tuple[tuple[int, int], ...] | None = None

    @property
    def high(self) -> int:
        """Return the index after the last element."""
        return self.low + self.tensor.numel()

    @property
    def bounds(self) -> tuple[tuple[int, int], ...]:
        """Return the box, or the ranges of all indices."""
        return tuple([(0, size) for size in self.shape]) if self.box is None else self.box

    def share(self) -> "LocalSlice":
        """Return the elements that this rank saves, if each rank with a copy saves an equal number.

        >>> import retrograd as rg
        >>> LocalSlice(rg.arange(5), (5,), 0, copy=1, copies=2).share()
        LocalSlice(tensor=tensor([3, 4]), shape=(5,), low=3, copy=0, copies=1, dim=0, box=None)
        """
        if self.copies == 1:
            return self
        size = -(-self.tensor.numel() // self.copies)
        start = min(self.copy * size, self.tensor.numel())
        part = self.tensor.detach().reshape(-1)[start : start + size]
        return replace(self, tensor=part, low=self.low + start, copy=0, copies=1)


def move_to_front(x: Tensor, dim: int) -> Tensor:
    """Return a view with a dimension moved to the front."""
    return x.movedim(dim, 0) if dim else x


def move_back(x: Tensor, dim: int) -> Tensor:
    """Return a view with the first dimension moved back."""
    return x.movedim(0, dim) if dim else x
