"""Time ragged batches: nested tensors in retrograd, next to PyTorch's padded batches and its jagged layout.

    python benchmarks/nested.py [--rounds 15] [--json FILE] [--check]

256 components of 5 to 200 rows, drawn once, 64 features, float32.  One thread.
"""

import argparse
import importlib
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.bench import Case, Suite, Table, library, main, parser, run_suite, subjects

COUNT, FEATURES, HEADS = 256, 64, 4
LENGTHS = random.Random(0).choices(range(5, 201), k=COUNT)

# Measured work, forward and backward, and the budgets as shares of the time of padded and of jagged PyTorch.
BUDGETS: dict[str, tuple[float | None, float | None]] = {
    "linear, gelu, layer_norm": (0.6, 0.25),
    "attention, 4 heads": (0.6, 0.25),
    "attention, 4 heads, causal": (None, None),
    "add": (None, None),
    "sum over the ragged dimension": (None, None),
    "softmax over the ragged dimension": (None, None),
    "linear": (None, None),
    "matmul, attention scores": (None, None),
    "to_padded_tensor": (None, None),
    "a + a of 3 components of 2 rows, forward only": (None, None),
}
# Not compared: padding adds scores with nonzero gradients; the vjp of ones through a softmax is only rounding.
UNLIKE = ("matmul, attention scores", "softmax over the ragged dimension")
PADDED, JAGGED = "PyTorch, padded", "PyTorch, jagged"


class BatchLayout:
    """How a library represents the batch: as nested tensors, or padded."""

    def __init__(self, m: Any, padded: bool) -> None:
        self.drawn, self.pulled = np.random.default_rng(0), []
        self.m, self.padded, self.functional = m, padded, m.nn.functional
        mask = [[i < n for i in range(max(LENGTHS))] for n in LENGTHS]
        self.mask = m.tensor(mask) if padded else None

    def batch(self, *after: int) -> Any:
        """Return a leaf of random values."""
        numbers = self.m.from_numpy(self.drawn.standard_normal((COUNT, max(LENGTHS), *after), np.float32))
        if self.padded:
            return numbers.requires_grad_()
        return self.nested([row[:n] for row, n in zip(numbers, LENGTHS, strict=True)]).requires_grad_()

    def nested(self, parts: list) -> Any:
        """Return a nested tensor, in PyTorch of the jagged layout."""
        layout = {"layout": self.m.jagged} if self.m.__name__ == "torch" else {}
        return self.m.nested.nested_tensor(parts, **layout)

    def weights(self) -> list:
        """Return the weights of a layer and of a normalization."""
        m, n = self.m, FEATURES
        first = m.from_numpy(self.drawn.standard_normal((n, n), np.float32)) / n**0.5
        made = first, m.zeros(n), m.ones(n), m.zeros(n)
        return [w.requires_grad_() for w in made]

    def pull(self, out: Any, *leaves: Any) -> None:
        """Run the backward pass, from ones; where padded, from zeros after the components."""
        seed = self.m.ones_like(out)
        if self.padded and out.shape[:2] == self.mask.shape:
            seed = self.mask.reshape(*self.mask.shape, *[1] * (out.ndim - 2)).to(out.dtype).expand(out.shape)
        for leaf in leaves:
            leaf.grad = None
        out.backward(seed)
        self.pulled = leaves

    def norms(self) -> list:
        """Return the norms of all gradients as one array; padding contributes zeros."""
        flat = [g.values() if g.is_nested else g for g in (leaf.grad for leaf in self.pulled)]
        return [np.array([float((g * g).sum()) ** 0.5 for g in flat])]


def feed_forward(kind: BatchLayout) -> Callable[[], object]:
    """Return runs of a dense layer, its activation and a normalization."""
    x, (w, b, gain, shift), f = kind.batch(FEATURES), kind.weights(), kind.functional

    def run() -> None:
        out = f.layer_norm(f.gelu(f.linear(x, w, b)), (FEATURES,), gain, shift)
        kind.pull(out, x, w, b, gain, shift)

    return run


def by_heads(x: Any) -> Any:
    """Return (batch, length, features) as (batch, heads, length, features of a head)."""
    return x.unflatten(-1, (HEADS, FEATURES // HEADS)).transpose(1, 2)


def attention(kind: BatchLayout, causal: bool) -> Callable[[], object]:
    """Return runs of scaled dot-product attention; where padded, without the keys after the components."""
    leaves = [kind.batch(FEATURES) for _ in range(3)]
    mask = kind.mask[:, None, None, :] if kind.padded and not causal else None

    def run() -> None:
        out = kind.functional.scaled_dot_product_attention(*map(by_heads, leaves), attn_mask=mask, is_causal=causal)
        kind.pull(out.transpose(1, 2).flatten(2), *leaves)

    return run


def scores(kind: BatchLayout) -> Callable[[], object]:
    """Return products of every query of a component with every key of it."""
    q, k = (kind.batch(HEADS, FEATURES // HEADS) for _ in range(2))
    return lambda: kind.pull(q.transpose(1, 2) @ k.transpose(1, 2).transpose(-2, -1), q, k)


def softmax(kind: BatchLayout) -> Callable[[], object]:
    """Return the softmax over the rows of each component; where padded, without those after."""
    x = kind.batch(FEATURES)
    behind = ~kind.mask[:, :, None] if kind.padded else None

    def run() -> None:
        scores = x.masked_fill(behind, -1e30) if kind.padded else x
        kind.pull(scores.softmax(1), x)

    return run


def total(kind: BatchLayout) -> Callable[[], object]:
    """Return the sum over the rows of each component; where padded, without those after."""
    x = kind.batch(FEATURES)
    kept = kind.mask[:, :, None].to(x.dtype) if kind.padded else None
    return lambda: kind.pull((x * kept if kind.padded else x).sum(1), x)


def padded(kind: BatchLayout) -> Callable[[], object] | None:
    """Return the padding of a nested tensor."""
    if kind.padded:
        return None
    x = kind.batch(FEATURES)
    pad = x.to_padded_tensor if kind.m.__name__ != "torch" else lambda p: kind.m.nested.to_padded_tensor(x, p)
    return lambda: kind.pull(pad(0.0), x)


def add(kind: BatchLayout) -> Callable[[], object]:
    """Return an elementwise sum."""
    x, y = kind.batch(FEATURES), kind.batch(FEATURES)
    y = y if kind.padded else x.detach().requires_grad_()  # PyTorch adds no separately built jagged tensors
    return lambda: kind.pull(x + y, x, y)


def layer(kind: BatchLayout) -> Callable[[], object]:
    """Return runs of a dense layer."""
    x, (w, b, _, _) = kind.batch(FEATURES), kind.weights()
    return lambda: kind.pull(kind.functional.linear(x, w, b), x, w, b)


def small(kind: BatchLayout) -> Callable[[], object]:
    """Return an operator on a small batch, for its overhead."""
    a = kind.m.randn(3, 2) if kind.padded else kind.nested([kind.m.randn(2) for _ in range(3)])
    return lambda: a + a


CALLS: dict[str, Callable[[BatchLayout], Callable[[], object] | None]] = {
    "linear, gelu, layer_norm": feed_forward,
    "attention, 4 heads": lambda kind: attention(kind, False),
    "attention, 4 heads, causal": lambda kind: attention(kind, True),
    "add": add,
    "sum over the ragged dimension": total,
    "softmax over the ragged dimension": softmax,
    "linear": layer,
    "matmul, attention scores": scores,
    "to_padded_tensor": padded,
    "a + a of 3 components of 2 rows, forward only": small,
}


def cases(name: str, threads: int) -> Callable[[str], Case | None]:
    """Return a function from row to case in a subject's process."""
    warnings.filterwarnings("ignore", module="torch")
    m = library(name, threads)
    m.nested = importlib.import_module(f"{m.__name__}.nested")

    def case(row: str) -> Case | None:
        kind = BatchLayout(m, padded="padded" in name)
        call = CALLS[row](kind)
        if call is None:
            return None
        call()  # functions that a library lacks fail here
        return Case(call, lambda: [] if row in UNLIKE else kind.norms())

    return case


def budgets(row: str) -> dict[str, float]:
    """Return the budgets of a row by peer."""
    return {peer: most for peer, most in zip((PADDED, JAGGED), BUDGETS[row], strict=True) if most}


SUITE = Suite(
    "Ragged batches", __file__, {row: budgets(row) for row in BUDGETS}, subjects("retrograd", PADDED, JAGGED), cases
)


def report(options: argparse.Namespace) -> list[Table]:
    """Return one table; its notes list what jagged tensors can't do."""
    return [run_suite(SUITE, options)]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 7), report, cases))
