"""Random programs as text: one line per instruction, over tensors `v[0]`, `v[1]`, ... of a library `L`."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from .autodiff import backward, detached, gradient, state, transform
from .expressions import along, binary, choice, convert, join, like, product, reduction, rowwise, scalar, unary
from .operators import call, literal
from .picker import Picker, Tensors
from .views import indexing, several, strided, view
from .writes import assignment, augmented, into, write

Kind = Callable[[Picker, Tensors], str]


def _expression(p: Picker, v: Tensors) -> str:
    return p.pick((unary, binary, reduction, view, call, rowwise, indexing, choice, product))(p, v)


# How often a line is of which kind; an expression makes a new tensor, a statement is a line of its own.
EXPRESSIONS: list[tuple[float, Kind]] = [
    (2.0, unary), (2.5, binary), (0.8, scalar), (1.2, reduction), (0.8, rowwise), (3.0, view), (0.8, several),
    (0.5, strided), (2.0, indexing), (0.8, convert), (0.6, join), (0.6, product), (0.7, along), (0.6, choice),
    (0.3, like), (5.0, call), (0.6, gradient), (0.4, detached), (1.0, partial(transform, expression=_expression)),
]  # fmt: skip
STATEMENTS: list[tuple[float, Kind]] = [
    (2.5, write),
    (0.7, augmented),
    (1.0, assignment),
    (0.5, into),
    (0.4, backward),
    (0.4, state),
]
KINDS = [*EXPRESSIONS, *STATEMENTS]
# Without calls of registered operators, transforms and higher orders: where PyTorch has fewest faults of its own.
CORE = [(weight, kind) for weight, kind in KINDS if kind not in (call, strided, into, gradient, convert) and
        not isinstance(kind, partial)]  # fmt: skip
STATEMENT_KINDS = [kind for _, kind in STATEMENTS]


class Generator(Picker):
    """Write lines that suit the current tensors of a program, as PyTorch computed them."""

    def __init__(self, seed: int, kinds: list[tuple[float, Kind]] = KINDS) -> None:
        super().__init__(seed)
        self.kinds = [kind for _, kind in kinds]
        self.ends = np.cumsum([weight for weight, _ in kinds]) / sum(weight for weight, _ in kinds)

    def leaves(self) -> Iterator[str]:
        """Yield lines that make the initial tensors of a program."""
        for i in range(self.between(2, 4)):
            sizes = (1, 2, 3, 2, 3) if self.chance(0.9) else (0, 1, 2)
            shape = tuple(self.pick(sizes) for _ in range(self.between(0, 3)))
            dtype = self.pick(("float64", "float64", "float64", "float32", "float64", "int64"))
            yield f"v[{i}] = {self._leaf(shape, dtype)}"

    def _leaf(self, shape: tuple[int, ...], dtype: str) -> str:
        values = np.round(self.rng.normal(size=shape) * (4 if dtype == "int64" else 2), 3).astype(dtype)
        grad = ".requires_grad_()" if dtype != "int64" and self.chance(0.8) else ""
        return literal(values) + grad

    def line(self, v: Tensors) -> str:
        """Return a line that makes a new tensor from those in `v`, or changes them."""
        kind = self.kinds[int(np.searchsorted(self.ends, self.rng.random()))]
        made = kind(self, v)
        if made.endswith(".data"):
            self.data.add(max(v) + 1)
        return made if kind in STATEMENT_KINDS else f"v[{max(v) + 1}] = {made}"
