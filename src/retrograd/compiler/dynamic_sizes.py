"""Marks of dimensions whose sizes may differ from call to call, or may not."""

from typing import Any, NamedTuple

from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.levels.tangent_table import WeakIdDict

_marks = WeakIdDict()  # by tensor: by dimension, the range of sizes, or STATIC
STATIC = "static"


class Place(NamedTuple):
    """Where a size is among the arguments: a dimension of a tensor, or None and the number of an integer."""

    tensor: int | None
    dim: int


Change = tuple[Place, int]  # and the new size


@suggest_keywords
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

    Each size has a program of its own, made from those of other sizes where possible. These count as one for the limit
    of programs; the latest 64 are kept. This is so without a mark, too, unless the function is compiled with
    `dynamic=False`. Sizes below `min` or above `max` count as others. The mark holds for all later calls with arguments
    of the same kind. `hint_override` and `specialize_on` are accepted, and have no effect.

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


@suggest_keywords
def maybe_mark_dynamic(t: Tensor, index: int | list[int] | tuple[int, ...]) -> None:
    """Mark dimensions of a tensor as `mark_dynamic` does.

    Source: the name is that of torch._dynamo.maybe_mark_dynamic.

    >>> import retrograd as rg
    >>> rg.compiler.maybe_mark_dynamic(rg.ones(3), 0)
    """
    _mark("maybe_mark_dynamic", t, index, (0, None))


@suggest_keywords
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


def marks_of(t: Tensor) -> dict[int, Any]:
    """Return the marks of a tensor by dimension."""
    return _marks.get(t) or {}
