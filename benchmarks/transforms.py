"""Time function transforms: derivatives and batches in retrograd.func and torch.func.

    python benchmarks/transforms.py [--rounds 15] [--json FILE] [--check]

Subjects take turns in one run, each on one thread.
"""

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from retrograd.bench import Case, Suite, Table, converter, library, main, parser, run_suite, subjects

SMALL, DIGITS, WIDE, IMAGES = (16, 32, 32, 4), (64, 128, 128, 10), (256, 128, 128, 10), (784, 128, 128, 10)

# Measured calls, and the budget as a share of PyTorch's time.
ROWS: dict[str, float | None] = {
    "hessian, Rosenbrock of 100": 0.7,
    "per-example gradients, MLP 64-128-128-10, 256 examples": 0.8,
    "per-example gradients, MLP 16-32-32-4, 256 examples": 0.8,
    "per-example gradients, MLP 256-128-128-10, 256 examples": 0.8,
    "per-example gradients, MLP 784-128-128-10, 256 examples": 0.8,
    "jvp, MLP 64-128-128-10, 256 examples": 0.7,
    "jvp, MLP 16-32-32-4, 256 examples": 0.7,
    "jvp, MLP 784-128-128-10, 256 examples": 0.7,
    "grad, Rosenbrock of 100": None,
    "jacrev, tanh(W x), 100 by 100": None,
    "jacfwd, tanh(W x), 100 by 100": None,
    "vmap of jacrev, tanh(W x), 10 by 10, 64 examples": None,
    "vmap, softmax attention of 16 by 8, 64 examples": 0.7,
    "linearize and 10 tangents, MLP 64-128-128-10, 256 examples": None,
}


def normal(m: Any, *shape: int) -> Any:
    """Return normal samples, the same for every subject."""
    return m.from_numpy(np.random.default_rng(shape).standard_normal(shape, np.float32))


def leaves(found: Any) -> Iterator[Any]:
    """Yield the tensors in tuples and lists."""
    if isinstance(found, tuple | list):
        for part in found:
            yield from leaves(part)
    else:
        yield found


def rosenbrock(x: Any) -> Any:
    """Return the chained Rosenbrock function: H. H. Rosenbrock, The Computer Journal 3 (1960)."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def network(m: Any, sizes: tuple[int, ...]) -> tuple[Callable, list]:
    """Return a network with tanh between its layers, as a function of parameters and inputs, and its parameters."""
    params = [(normal(m, n, k) / k**0.5, m.zeros(n)) for k, n in itertools.pairwise(sizes)]

    def apply(params: Any, x: Any) -> Any:
        for i, (w, b) in enumerate(params):
            x = m.nn.functional.linear(x, w, b)
            x = x if i == len(params) - 1 else m.tanh(x)
        return x

    return apply, params


def per_example(m: Any, func: Any, sizes: tuple[int, ...]) -> Callable[[], object]:
    """Return the gradient of each example's loss with respect to all parameters."""
    apply, params = network(m, sizes)
    x, y = normal(m, 256, sizes[0]), normal(m, 256, sizes[-1])

    def loss(params: Any, x: Any, y: Any) -> Any:
        return ((apply(params, x) - y) ** 2).mean()

    return partial(func.vmap(func.grad(loss), (None, 0, 0)), params, x, y)


def directional_derivative(m: Any, func: Any, sizes: tuple[int, ...]) -> Callable[[], object]:
    """Return the derivative along a direction of parameters and inputs."""
    apply, params = network(m, sizes)
    x = normal(m, 256, sizes[0])
    tangents = ([(normal(m, *w.shape), normal(m, *b.shape)) for w, b in params], normal(m, *x.shape))
    return partial(func.jvp, apply, (params, x), tangents)


def linearization(m: Any, func: Any) -> Callable[[], object]:
    """Return one linearization, and ten directions."""
    apply, params = network(m, DIGITS)
    x, ts = normal(m, 256, 64), normal(m, 10, 256, 64)

    def run() -> Any:
        _, push = func.linearize(partial(apply, params), x)
        return [push(t) for t in ts]

    return run


def attention(m: Any) -> Callable:
    """Return scaled dot-product attention of one sequence."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        return m.softmax(q @ k.T / 8**0.5, -1) @ v

    return attend


def torch_like(m: Any) -> Callable[[str], Callable[[], object]]:
    """Return the calls in retrograd or PyTorch, by row."""
    func = m.func
    x, w, small = m.linspace(-1, 1, 100), normal(m, 100, 100) / 10, normal(m, 10, 10)
    qkv = [normal(m, 64, 16, 8) for _ in range(3)]
    calls: dict[str, Callable[[], Callable[[], object]]] = {
        "hessian": lambda: partial(func.hessian(rosenbrock), x),
        "grad": lambda: partial(func.grad(rosenbrock), x),
        "jacrev": lambda: partial(func.jacrev(lambda x: m.tanh(w @ x)), x),
        "jacfwd": lambda: partial(func.jacfwd(lambda x: m.tanh(w @ x)), x),
        "vmap of jacrev": lambda: partial(func.vmap(func.jacrev(lambda x: m.tanh(small @ x))), normal(m, 64, 10)),
        "vmap": lambda: partial(func.vmap(attention(m)), *qkv),
        "linearize and 10 tangents": lambda: linearization(m, func),
    }
    for sizes in (SMALL, DIGITS, WIDE, IMAGES):
        name = f"MLP {'-'.join(map(str, sizes))}"
        calls[f"per-example gradients, {name}"] = partial(per_example, m, func, sizes)
        calls[f"jvp, {name}"] = partial(directional_derivative, m, func, sizes)

    def call(row: str) -> Callable[[], object]:
        return calls[row.rpartition(",")[0] if "MLP" in row and "linearize" not in row else row.partition(",")[0]]()

    return call


def cases(name: str, threads: int) -> Callable[[str], Case]:
    """Return a function from row to case in a subject's process."""
    m = library(name, threads)
    calls = torch_like(m)

    def case(row: str) -> Case:
        call = calls(row)
        return Case(call, lambda: [converter(m)(x) for x in leaves(call())])

    return case


SUITE = Suite(
    "Function transforms",
    __file__,
    {row: {"PyTorch": budget} if budget else {} for row, budget in ROWS.items()},
    subjects("retrograd", "PyTorch"),
    cases,
)


def report(options: argparse.Namespace) -> list[Table]:
    """Return one table."""
    return [run_suite(SUITE, options)]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 9), report, cases))
