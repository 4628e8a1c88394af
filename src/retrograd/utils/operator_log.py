"""A readable log of executed operators."""

from itertools import zip_longest
from typing import Any

from retrograd.core import Op, Tensor, call
from retrograd.core.level import TransparentLevel
from retrograd.foundation.source_location import user_line


class OperatorLog(TransparentLevel):
    """Record every operator that runs in the block, with the shapes of its tensors and the user's line."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, str]] = []  # the operator with its shapes, the line

    def process(self, op: Op, args: tuple, params: dict[str, Any]) -> Any:
        """Record the operator, and run it."""
        shapes = ", ".join(str(a.aval) if isinstance(a, Tensor) else repr(a) for a in args)
        self.entries.append((f"{op.name}({shapes})", user_line()))
        return call(op, args, params)


def side_by_side(before: list[tuple[str, str]], now: list[tuple[str, str]]) -> str:
    """Format two lists of operators in columns, with a mark at the first difference.

    >>> print(side_by_side([("sin(x)", "a.py:1"), ("cos(x)", "a.py:2")], [("sin(x)", "a.py:1"), ("exp(x)", "a.py:3")]))
    operators of the forward pass | of the recomputation
      sin(x)                      | sin(x)
    > cos(x)                      | exp(x)
    the first difference: forward cos(x) at a.py:2, recomputation exp(x) at a.py:3
    """
    pairs = list(zip_longest(before, now, fillvalue=("", "")))
    first = next((number for number, (a, b) in enumerate(pairs) if a[0] != b[0]), None)
    rows = [("operators of the forward pass", "of the recomputation")]
    rows += [((">" if number == first else " ") + f" {a[0]}", b[0]) for number, (a, b) in enumerate(pairs)]
    width = max(len(left) for left, _ in rows)
    lines = [f"{left:{width}} | {right}".rstrip() for left, right in rows]
    if first is not None:
        a, b = pairs[first]
        lines.append(f"the first difference: forward {_format_entry(a)}, recomputation {_format_entry(b)}")
    return "\n".join(lines)


def _format_entry(entry: tuple[str, str]) -> str:
    operator, line = entry
    return f"{operator} at {line}" if operator else "ran nothing more"
