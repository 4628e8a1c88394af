"""The short benchmark, `retrograd bench`: retrograd compared with PyTorch, if that is installed.

This module is also the script of its worker processes. Inputs are sine waves, which every library computes equally.
"""

import argparse
import math
import sys
from collections.abc import Callable
from typing import Any

from retrograd.bench.figures import Table
from retrograd.bench.measure import Suite, run_suite
from retrograd.bench.script import main, parser
from retrograd.bench.subjects import OURS, converter, library, subjects
from retrograd.bench.workers import Case, Cases

CHAIN, ROWS, WIDTH = 1000, 2048, 512
SIZES, BATCH = (784, 128, 10), 32
ROUNDS = 9
CaseFunction = Callable[[Any], Case]


def waves(m: Any, *shape: int) -> Any:
    """Return values between -1 and 1."""
    return m.sin(m.arange(math.prod(shape), dtype=m.float32) * 0.7 + 0.1).reshape(*shape)


def forward_backward(m: Any, function: Callable[[Any], Any], x: Any) -> Case:
    """Return a function of x, and its gradient by x, on which subjects must agree."""
    x = x.requires_grad_(True)
    g = waves(m, *function(x).shape).cos() if function(x).ndim else None

    def call() -> None:
        x.grad = None
        function(x).backward(g)

    def check() -> list[Any]:
        call()
        return [converter(m)(x.grad).copy()]

    return Case(call, check)


def chain(m: Any) -> Case:
    """Return four chained products."""
    y = m.tensor([1.0, 1.001, 0.999, 1.0])

    def products(x: Any) -> Any:
        for _ in range(CHAIN):
            x = x * y
        return x.sum()

    return forward_backward(m, products, m.tensor([1.0, 1.001, 0.999, 1.0]))._replace(operations=CHAIN)


def training(m: Any) -> Case:
    """Return a step of Adam for a network of two layers; the losses of the first steps must agree."""
    layers = [m.nn.Linear(SIZES[0], SIZES[1]), m.nn.ReLU(), m.nn.Linear(SIZES[1], SIZES[2])]
    model = m.nn.Sequential(*layers)
    with m.no_grad():
        for p in model.parameters():
            p.copy_(waves(m, *p.shape) / p.shape[-1] ** 0.5)
    x, y = waves(m, BATCH, SIZES[0]), m.arange(BATCH) % SIZES[-1]
    optimizer = m.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> float:
        optimizer.zero_grad()
        loss = m.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return Case(step, lambda: [step() for _ in range(3)])


def rowwise(name: str) -> CaseFunction:
    """Return a case for a function of rows, forward and backward."""

    def make(m: Any) -> Case:
        functional = m.nn.functional
        calls = {
            "softmax": lambda x: functional.softmax(x, 1),
            "layer_norm": lambda x: functional.layer_norm(x, (WIDTH,)),
            "gelu": functional.gelu,
            "cross_entropy": lambda x: functional.cross_entropy(x, m.arange(ROWS) % WIDTH),
        }
        return forward_backward(m, calls[name], waves(m, ROWS, WIDTH))

    return make


FUNCTIONS = ("softmax", "layer_norm", "gelu", "cross_entropy")
# The cases, and their budgets as fractions of PyTorch's time.
CASES: dict[str, tuple[CaseFunction, float]] = {
    f"chain of {CHAIN:,} multiplications of 4 elements": (chain, 0.33),
    f"MLP {'-'.join(map(str, SIZES))}, batch {BATCH}, Adam step": (training, 0.5),
    **{f"{name}, {ROWS} x {WIDTH}": (rowwise(name), 0.9) for name in FUNCTIONS},
}


def cases(name: str, threads: int) -> Cases:
    """Return the function from row to case in a subject's process."""
    module = library(name, threads)
    return lambda row: CASES[row][0](module)


def report(options: argparse.Namespace) -> list[Table]:
    """Return one table; a note is added if there is no peer."""
    rows = {name: {"PyTorch": budget} for name, (_, budget) in CASES.items()}
    known = subjects(OURS, "PyTorch")
    table = run_suite(Suite("forward and backward", __file__, rows, known, cases, "us", options.threads or 1), options)
    if table.subjects == [OURS]:
        table.notes.append("PyTorch is not installed, so there is nothing to compare with.")
    return [table]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__ or "", ROUNDS), report, cases))
