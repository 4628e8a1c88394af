"""What the kernels gain: activations, norms and losses forward and backward, and steps of Adam, beside PyTorch.

    python benchmarks/kernels.py [--threads 2] [--rounds 15] [--json FILE] [--check]

Both compute the same first, which is checked; then they take turns.  A row's ratio is the median of the rounds' ratios.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from common import cells, library, main, parser, present, sampler, table, verdict

SHAPE = (8192, 512)
BUDGET = 0.9  # of PyTorch's time
TOLERANCE = 3e-5


def array(*shape: int, seed: int = 0) -> np.ndarray:
    """Normal numbers, the same for everyone."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def layer_norm(m: ModuleType) -> Callable[[Any], Any]:
    """With weights that are learnt."""
    weight, bias = (m.from_numpy(array(SHAPE[1], seed=s)).requires_grad_(True) for s in (2, 3))
    return lambda x: m.nn.functional.layer_norm(x, SHAPE[1:], weight, bias)


def cross_entropy(m: ModuleType) -> Callable[[Any], Any]:
    """Of 512 classes."""
    target = m.from_numpy(np.random.default_rng(1).integers(0, SHAPE[1], SHAPE[0]))
    return lambda x: m.nn.functional.cross_entropy(x, target)


FUNCTIONS: dict[str, Callable[[ModuleType], Callable[[Any], Any]]] = {
    "softmax": lambda m: lambda x: m.softmax(x, 1),
    "log_softmax": lambda m: lambda x: m.log_softmax(x, 1),
    "cross_entropy": cross_entropy,
    "layer_norm": layer_norm,
    "gelu": lambda m: m.nn.functional.gelu,
    "gelu, tanh": lambda m: lambda x: m.nn.functional.gelu(x, approximate="tanh"),
    "silu": lambda m: m.nn.functional.silu,
    "sigmoid": lambda m: m.sigmoid,
    "softplus": lambda m: m.nn.functional.softplus,
}
BOTH_WAYS = " and back"  # after a row's name: the derivative too
ROWS = {f"{name}{way}": BUDGET for name in FUNCTIONS for way in ("", BOTH_WAYS)}
ROWS |= {"a bias's gradient": BUDGET, "a step of Adam": BUDGET}


def adam(m: ModuleType) -> Callable[[], Any]:
    """Of one matrix."""
    p = m.from_numpy(array(*SHAPE)).requires_grad_(True)
    p.grad = m.from_numpy(array(*SHAPE, seed=1))
    optimizer = m.optim.Adam([p])

    def step() -> Any:
        optimizer.step()
        return p

    return step


def call_of(m: ModuleType, row: str) -> Callable[[], Any]:
    """A row's call; it returns what must agree."""
    if row == "a step of Adam":
        return adam(m)
    x, g = m.from_numpy(array(*SHAPE)), m.from_numpy(array(*SHAPE, seed=1))
    if row == "a bias's gradient":
        return lambda: g.sum(0)
    function = FUNCTIONS[row.removesuffix(BOTH_WAYS)](m)
    if not row.endswith(BOTH_WAYS):
        return lambda: function(x)
    x.requires_grad_(True)

    def back_too() -> Any:
        x.grad = None
        out = function(x)
        out.backward(g if out.ndim else None)
        return x.grad

    return back_too


def threaded(name: str, threads: int) -> ModuleType:
    """A subject's module, on so many threads."""
    m = library(name)
    m.set_num_threads(threads)
    return m


def disagreements(threads: int) -> list[str]:
    """The rows in which the two differ, none if PyTorch is missing."""
    try:
        both = [threaded(name, threads) for name in ("retrograd", "PyTorch")]
    except ImportError:
        return []
    found = []
    for row in ROWS:
        ours, its = (call_of(m, row)().detach().numpy() for m in both)
        if not np.allclose(ours, its, rtol=TOLERANCE, atol=TOLERANCE * float(np.abs(its).max())):
            found.append(f"{row}: they differ by {np.abs(ours - its).max():.2g}")
    return found


def measured(threads: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    """The seconds of every round, by row and subject."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = dict.fromkeys(names, str(threads))
    times: dict[str, dict[str, list[float]]] = {row: {} for row in ROWS}
    with present(__file__, dict.fromkeys(("retrograd", "PyTorch"), environment)) as workers:
        for number in range(rounds + 1):
            for row, by_subject in times.items():
                for worker in workers if number % 2 else reversed(workers):
                    taken = worker.sample(row)
                    if number:  # the first round warms up
                        by_subject.setdefault(worker.name, []).append(taken)
    return times


def report(options: argparse.Namespace) -> tuple[object, bool]:
    """The table, and whether the two agree and every budget is met."""
    differing = disagreements(options.threads)
    print("\n".join(differing) or f"All rows agree. {SHAPE[0]} x {SHAPE[1]} float32, {options.threads} threads.")
    figures, lines, fine = {}, [], not differing
    for row, found in measured(options.threads, options.rounds).items():
        medians = {name: statistics.median(times) for name, times in found.items()}
        pairs = zip(found["retrograd"], found.get("PyTorch", ()), strict=False)
        ratio = statistics.median([ours / its for ours, its in pairs]) if "PyTorch" in found else None
        ok = ratio is None or ratio <= ROWS[row]
        fine = fine and ok
        figures[row] = {**medians, "ratio": ratio}
        times = cells([medians.get(n) and medians[n] * 1e3 for n in ("retrograd", "PyTorch")], "{:.2f}")
        lines.append([row, *times, *cells([ratio, ROWS[row]], "{:.2f}"), verdict(ok) if ratio else ""])
    print(table(["ms", "retrograd", "PyTorch", "ratio", "budget", ""], lines))
    return figures, fine


def worker(name: str) -> Callable[[str], float | None]:
    """One subject's samples; the threads are those of its environment."""
    m = threaded(name, int(os.environ["OMP_NUM_THREADS"]))
    return sampler(lambda row: call_of(m, row))


if __name__ == "__main__":
    arguments = parser(__doc__, rounds=15, figures="the medians in seconds, and the ratios")
    arguments.add_argument("--threads", type=int, default=2)
    sys.exit(main(arguments, report, worker))
