"""`LocalSlice`: the elements of a tensor that this rank has."""

from dataclasses import dataclass, replace

from retrograd.core import Tensor


@dataclass(frozen=True)
class LocalSlice:
    """Some elements of a tensor: those from `low` on, as many as `tensor` has.

    shape: of the whole tensor.  copies: how many ranks have these elements, of which this one is number `copy`.
    dim: elements are in row-major order of the whole tensor with this dimension moved to the front, and so are those
    of `tensor`.  Then each rank has a range of elements, whichever dimension is divided.

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

    @property
    def high(self) -> int:
        """Return the index after the last element."""
        return self.low + self.tensor.numel()

    def share(self) -> "LocalSlice":
        """Return the elements that this rank saves, if each rank with a copy saves an equal number.

        >>> import retrograd as rg
        >>> LocalSlice(rg.arange(5), (5,), 0, copy=1, copies=2).share()
        LocalSlice(tensor=tensor([3, 4]), shape=(5,), low=3, copy=0, copies=1, dim=0)
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


def positions(index: Tensor, shape: tuple[int, ...], dim: int, other: int) -> Tensor:
    """Return the indices of elements in another order: `index` counts with `dim` moved to the front.

    other: the dimension that is at the front in the other order.

    >>> import retrograd as rg
    >>> positions(rg.arange(6), (2, 3), 0, 1).tolist()  # [[0, 1, 2], [3, 4, 5]] by columns
    [0, 2, 4, 1, 3, 5]
    """
    rest = [size for axis, size in enumerate(shape) if axis != dim]
    coordinates = []
    for size in reversed([shape[dim], *rest]):
        coordinates.append(index % size)
        index = index // size
    by_axis = coordinates[::-1]
    by_axis.insert(dim, by_axis.pop(0))
    first = by_axis.pop(other)
    found = first
    for size, coordinate in zip([n for axis, n in enumerate(shape) if axis != other], by_axis, strict=True):
        found = found * size + coordinate
    return found
