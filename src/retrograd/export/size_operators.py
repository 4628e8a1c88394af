"""Sizes in graphs: operators whose results are Python integers, used as params of later operators."""

from typing import Any

from retrograd.core import Internal, op, operator_named
from retrograd.ops.family import Composite


@op("export::size(Tensor x, *, int dim) -> int")
class size(Internal, Composite):
    """Return the size of a dimension of x as an integer; transforms that keep the dimension do not change it."""

    def compose(x: Any, *, dim: int) -> Any:
        return x.shape[dim]


@op("export::plus(int a, int b) -> int")
class plus(Internal, Composite):
    """Return a + b, for sizes."""

    def compose(a: int, b: int) -> Any:
        return a + b


@op("export::times(int a, int b) -> int")
class times(Internal, Composite):
    """Return a * b, for sizes."""

    def compose(a: int, b: int) -> Any:
        return a * b


@op("export::over(int a, int b) -> int")
class over(Internal, Composite):
    """Return a // b, for sizes."""

    def compose(a: int, b: int) -> Any:
        return a // b


@op("export::ratio(number a, number b) -> float")
class ratio(Internal, Composite):
    """Return a / b, for sizes or a number and a size."""

    def compose(a: float, b: float) -> Any:
        return a / b


NAMES = ("size", "plus", "times", "over", "ratio")
NUMBERS = SIZE, PLUS, TIMES, OVER, RATIO = tuple(operator_named(f"export::{name}") for name in NAMES)
