"""Random choices that suit the current tensors of a program."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import torch

T = TypeVar("T")
Tensors = dict[int, torch.Tensor]


class Picker:
    """A seeded source of tensor numbers, dimensions, Python numbers and keys."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.data: set[int] = set()  # the numbers of tensors made by `.data`

    def below(self, end: int) -> int:
        """Return an integer from 0 on, below the end."""
        return int(self.rng.random() * end)

    def between(self, first: int, last: int) -> int:
        """Return an integer from the first to the last, both of them included."""
        return first + self.below(last - first + 1)

    def chance(self, probability: float) -> bool:
        """Return True with that probability."""
        return bool(self.rng.random() < probability)

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options."""
        return options[self.below(len(options))]

    def one(self, v: Tensors) -> int:
        """Return a tensor's number: more often one of the latest."""
        numbers = list(v)
        return numbers[-min(int(self.rng.geometric(0.25)), len(numbers))]

    def writable(self, v: Tensors) -> int:
        """Return the number of a tensor whose elements do not share memory, and whose graphs see writes to it."""
        data = [v[i] for i in self.data & v.keys()]
        chosen = {
            i: t
            for i, t in v.items()
            if torch._debug_has_internal_overlap(t) != 1
            and (t.requires_grad or not any(share_memory(t, other) for other in data))
        }
        return self.one(chosen or v)

    def floating(self, v: Tensors) -> int:
        """Return the number of a floating tensor, if there is one."""
        chosen = {i: t for i, t in v.items() if t.is_floating_point()}
        return self.one(chosen or v)

    def partner(self, v: Tensors, i: int) -> int:
        """Return the number of a tensor that broadcasts with another."""
        return self.pick([j for j in v if broadcasts(v[i].shape, v[j].shape)])

    def fitting(self, v: Tensors, i: int) -> int:
        """Return the number of a tensor that can be written to another."""
        return self.pick([j for j in v if broadcasts_to(v[j].shape, v[i].shape)])

    def dim(self, tensor: torch.Tensor) -> int:
        """Return a dimension, counted from either end."""
        return self.between(-max(tensor.ndim, 1), max(tensor.ndim, 1) - 1)

    def dims(self, tensor: torch.Tensor) -> tuple[int, ...]:
        """Return one or two different dimensions."""
        order = self.rng.permutation(max(tensor.ndim, 1))[: self.between(1, 2)]
        return tuple(int(d) for d in order)

    def size(self, tensor: torch.Tensor, d: int) -> int:
        """Return the size along a dimension; 1 of a tensor without dimensions."""
        return tensor.shape[d] if tensor.ndim else 1

    def number(self) -> str:
        """Return a Python number as text."""
        return self.pick(("2", "-1", "0.5", "-1.5", "3", "0", "1", "True", "2.0", "0.25", "-2", "1e-3"))

    def indices(self, size: int, count: int) -> list[int]:
        """Return indices into a dimension, from its start or its end."""
        return [self.between(-max(size, 1), max(size, 1) - 1) for _ in range(count)]

    def key(self, x: torch.Tensor, distinct: bool = False) -> str:
        """Return the text of a key for a tensor; a distinct one selects no element twice."""
        count = self.pick((1, 2, 2, 3))
        parts = [self._part(int(size), count, distinct) for size in x.shape[: self.between(1, max(x.ndim, 1))]]
        if self.chance(0.2):
            parts.insert(self.below(len(parts) + 1), self.pick(("None", "...")))
        return ", ".join(parts) or self.pick(("...", "None", "()", "True", "False"))

    def _part(self, size: int, count: int, distinct: bool) -> str:
        start, stop = self.between(-size, size), self.between(-size, size)
        numbers = self.rng.permutation(size)[:count].tolist() or [0] if distinct else self.indices(size, count)
        mask = [self.chance(0.6) for _ in range(size)]
        return self.pick((
            f"{numbers[0]}", f"{start}:", f"::{self.between(1, 2)}", ":", f"{numbers}", f"L.tensor({numbers})",
            f":{stop}", f"{start}:{stop}", f"L.tensor({mask})" if mask else ":", f"L.tensor({numbers[0]})",
            f"L.tensor([{numbers}])",
        ))  # fmt: skip


def share_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two tensors have one storage; PyTorch's lazy zeros have none."""
    if a._is_zerotensor() or b._is_zerotensor():
        return False
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def broadcasts(a: torch.Size, b: torch.Size) -> bool:
    """Return whether two shapes broadcast."""
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False))


def broadcasts_to(a: torch.Size, b: torch.Size) -> bool:
    """Return whether the first shape broadcasts to the second."""
    return len(a) <= len(b) and all(m in (1, n) for m, n in zip(a[::-1], b[::-1], strict=False))
