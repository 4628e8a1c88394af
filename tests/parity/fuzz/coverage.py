"""Coverage: which operators occurred in random programs with a result that both libraries accepted."""

import re
from collections import Counter

from retrograd.core import registry

SYMBOLS = {
    " + ": "add", " - ": "sub", " * ": "mul", " / ": "div", " ** ": "pow", " // ": "floor_divide", " % ": "remainder",
    " @ ": "matmul", " < ": "lt", " > ": "gt", " == ": "eq", "v[": "getitem", "(-v": "neg",
}  # fmt: skip


class Coverage:
    """Counts the names that occur in programs."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()

    def count(self, lines: list[str]) -> None:
        """Count the names in the lines of a program."""
        for line in lines:
            self.names.update(re.findall(r"[.](\w+)", line))
            self.names.update(name for symbol, name in SYMBOLS.items() if symbol in line)

    def missing(self) -> list[str]:
        """Return the differentiable operators with PyTorch's names that did not occur."""
        return sorted(name for name in common_operators() if not any(self.names[n] for n in _spellings(name)))

    def __str__(self) -> str:
        """Return how many occurred, and which did not."""
        missing, every = self.missing(), common_operators()
        return f"{len(every) - len(missing)} of {len(every)} operators occurred; not: {' '.join(missing)}"


def common_operators() -> list[str]:
    """Return the differentiable operators that PyTorch has under the same name."""
    from .operators import counterparts

    return [n for n in counterparts() if registry[n].differentiable or registry[n].composite]


def _spellings(name: str) -> set[str]:
    names = {n.rpartition(".")[2] for n in (name, *registry[name].public_names)}
    return names | {f"{n}_" for n in names}
