"""Dynamic sizes: programs that differ only in sizes are one kind, of which the latest are kept."""

from typing import Any

from retrograd.core import Tensor
from retrograd.levels.tangent_table import WeakIdDict

MOST_SIZES = 64  # programs of one kind
MOST_UNUSED = 64  # programs of one kind that are dropped one after the other, none of which has run again
_marks = WeakIdDict()  # by tensor: by dimension, the range of sizes, or STATIC
STATIC = "static"
Change = tuple[int | None, int, int]  # the number of a tensor, a dimension, and the size; None: an integer argument


def mark_dynamic(
    t: Tensor,
    index: int | list[int] | tuple[int, ...],
    *,
    hint_override: int | None = None,
    min: int | None = None,
    max: int | None = None,
    specialize_on: list[Any] | None = None,
) -> None:
    """Mark dimensions of a tensor, before a compiled function gets it: their sizes may differ from call to call.

    Each size has a program of its own, and these count as one for the limit of programs; the latest 64 are kept. This
    is so without a mark, too, unless the function is compiled with `dynamic=False`. Sizes below `min` or above `max`
    count as others. The mark holds for all later calls with arguments of the same kind. `hint_override` and
    `specialize_on` are accepted, and have no effect.

    Raises IndexError for a dimension that the tensor does not have.

    Source: the name is that of torch._dynamo.mark_dynamic.

    >>> import retrograd as rg
    >>> f = rg.compile(lambda x: x * 2, dynamic=False, recompile_limit=1)
    >>> x = rg.ones(3)
    >>> rg.compiler.mark_dynamic(x, 0)
    >>> [f(x).sum().item(), f(rg.ones(5)).sum().item()]
    [6.0, 10.0]
    """
    _mark("mark_dynamic", t, index, (0 if min is None else min, max))


def maybe_mark_dynamic(t: Tensor, index: int | list[int] | tuple[int, ...]) -> None:
    """Mark dimensions of a tensor as `mark_dynamic` does.

    Source: the name is that of torch._dynamo.maybe_mark_dynamic.

    >>> import retrograd as rg
    >>> rg.compiler.maybe_mark_dynamic(rg.ones(3), 0)
    """
    _mark("maybe_mark_dynamic", t, index, (0, None))


def mark_static(t: Tensor, index: int | list[int] | tuple[int, ...] | None = None) -> None:
    """Mark dimensions of a tensor, all with None: programs for other sizes count for the limit of programs.

    Raises IndexError for a dimension that the tensor does not have.

    Source: the name is that of torch._dynamo.mark_static.

    >>> import retrograd as rg
    >>> rg.compiler.mark_static(rg.ones(3), 0)
    """
    _mark("mark_static", t, tuple(range(t.ndim)) if index is None else index, STATIC)


def _mark(name: str, t: Tensor, index: int | list[int] | tuple[int, ...], mark: Any) -> None:
    marks = dict(_marks.get(t) or {})
    for dim in index if isinstance(index, list | tuple) else (index,):
        if not -t.ndim <= dim < t.ndim:
            raise IndexError(f"{name}: dimension {dim} of a tensor with {t.ndim} dimensions")
        marks[dim % t.ndim] = mark
    _marks.set(t, marks)


class ProgramKind:
    """Programs that differ only in sizes, and which sizes may differ.

    `dynamic`: True, also integers among the arguments; None, sizes of tensors; False, marked ones only.
    """

    def __init__(self, tensors: list[Any], dynamic: bool | None) -> None:
        self._marks = [_marks.get(t) or {} for t in tensors]
        self._dynamic = dynamic
        self._unused = 0  # programs dropped in a row that have not run again

    def allows(self, changes: list[Change]) -> bool:
        """Return whether arguments with these changes of sizes are of this kind."""
        return all(self._allows(*change) for change in changes)

    def _allows(self, number: int | None, dim: int, size: int) -> bool:
        mark = None if number is None else self._marks[number].get(dim)
        if mark is None or mark == STATIC:
            return mark is None and (self._dynamic is True or (self._dynamic is None and number is not None))
        low, high = mark
        return bool(low <= size and (high is None or size <= high))

    def drop(self, programs: list[Any]) -> list[Any]:
        """Return the programs without the one of this kind that has not run for the longest time, if there are many."""
        own = [program for program in programs if program.kind is self]
        if len(own) < MOST_SIZES:
            return programs
        self._unused = 0 if own[-1].uses else self._unused + 1
        return [program for program in programs if program is not own[-1]]

    @property
    def is_exhausted(self) -> bool:
        """Whether sizes do not come again, so that programs for them are of no use."""
        return self._unused >= MOST_UNUSED
