"""`LocalSlice`: the elements of a tensor that this rank has."""

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any
from weakref import WeakSet

from retrograd.core import Tensor
from retrograd.nn.parameter import is_on_meta

_divided: WeakSet[Any] = WeakSet()  # parameters of which this process has slices
_lock = Lock()  # ranks may be threads


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


def note_divided(parameter: Any) -> None:
    """Note an object with the `shard` of a parameter of some `shape`, from the element `low` on."""
    with _lock:
        _divided.add(parameter)


def with_slices(leaves: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """Yield paths and values of a state dict, with a slice for each tensor that is the shard of a divided parameter.

    The tensors of `module.state_dict()` are new ones on the memory of the shards.
    """
    with _lock:
        known = {_address_and_shape(p.shard): p for p in _divided if not is_on_meta(p.shard)}
    for path, value in leaves:
        has_memory = isinstance(value, Tensor) and not is_on_meta(value)
        p = known.get(_address_and_shape(value)) if has_memory else None
        yield path, value if p is None else LocalSlice(value.detach(), p.shape, p.low)


def _address_and_shape(x: Tensor) -> tuple[int, tuple[int, ...]]:
    return x.data_ptr(), tuple(x.shape)
