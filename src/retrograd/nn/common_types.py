"""Types of sizes, under the names of torch.nn.common_types, and functions that repeat a size for each dimension.

They are for layers of users: the layers of this package check their sizes themselves.
"""

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any, TypeAlias, TypeVar

from retrograd.core import Tensor

_Item = TypeVar("_Item")
_scalar_or_tuple_any_t: TypeAlias = _Item | tuple[_Item, ...]
_scalar_or_tuple_1_t: TypeAlias = _Item | tuple[_Item]
_scalar_or_tuple_2_t: TypeAlias = _Item | tuple[_Item, _Item]
_scalar_or_tuple_3_t: TypeAlias = _Item | tuple[_Item, _Item, _Item]
_size_any_t: TypeAlias = int | tuple[int, ...]
_size_1_t: TypeAlias = int | tuple[int]
_size_2_t: TypeAlias = int | tuple[int, int]
_size_3_t: TypeAlias = int | tuple[int, int, int]
_size_any_opt_t: TypeAlias = int | tuple[int | None, ...] | None
_size_2_opt_t: TypeAlias = int | tuple[int | None, int | None] | None
_size_3_opt_t: TypeAlias = int | tuple[int | None, int | None, int | None] | None
_ratio_2_t: TypeAlias = float | tuple[float, float]
_ratio_3_t: TypeAlias = float | tuple[float, float, float]
_ratio_any_t: TypeAlias = float | tuple[float, ...]
_tensor_list_t: TypeAlias = Tensor | list[Tensor]
_maybe_indices_t: TypeAlias = Tensor | tuple[Tensor, Tensor]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple]:
    """Return a function that makes a tuple of an iterable, and of another value the tuple that repeats it n times.

    >>> _ntuple(2)(3), _ntuple(2)([3, 4])
    ((3, 3), (3, 4))
    """

    def parse(x: Any) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: tuple, n: int) -> tuple:
    """Return a tuple with the elements in reverse order, each n times: paddings of sides, for `functional.pad`.

    >>> _reverse_repeat_tuple((1, 2), 2)
    (2, 2, 1, 1)
    """
    return tuple(x for x in reversed(t) for _ in range(n))
