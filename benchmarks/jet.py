"""Time derivatives of high order: Taylor mode, nested jvp, and JAX's Taylor mode, eager and compiled.

    python benchmarks/jet.py [--rounds 9] [--json FILE]

One thread.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from retrograd.bench import Case, Subject, Suite, Table, main, parser, run_suite

ORDERS = range(1, 9)
NESTED = 6  # nested jvp of the network is not measured above this order
PROGRAMS = ("sin(exp(x)), 4 elements", "MLP, 3 x 64, tanh, batch 16")
JAX = Subject("jax", {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "JAX_PLATFORMS": "cpu"})

# ---------------------------------------------------------------------------------------------------- programs


def numbers(shape: tuple[int, ...]) -> Any:
    """Return values of about 1, the same in every process."""
    import numpy as np

    return np.random.default_rng(0).normal(size=shape).astype("float32")


def program(m: Any, name: str) -> tuple[Callable, Any, Any]:
    """Return a function of a library, a point and a direction."""
    if name == PROGRAMS[0]:
        return lambda x: m.sin(m.exp(x)), m.asarray(numbers((4,)) * 0.3), m.asarray(numbers((4,)))
    weights = [m.asarray(numbers((64, 64)) / 8) for _ in range(3)]

    def network(x: Any) -> Any:
        for w in weights:
            x = m.tanh(x @ w)
        return x.sum()

    return network, m.asarray(numbers((16, 64))), m.asarray(numbers((16, 64)))


# ---------------------------------------------------------------------------------------------------- subjects


def call_of(row: str) -> tuple[str, int]:
    """Return the program and the order of a row."""
    name, _, order = row.rpartition(", order ")
    return name, int(order)


def taylor(row: str) -> Callable[[], object]:
    """Return derivatives by retrograd's Taylor mode."""
    import retrograd as rg

    name, order = call_of(row)
    f, x, v = program(rg, name)
    return lambda: rg.func.jet(f, (x,), ([v] + [0] * (order - 1),))


def nested(row: str) -> Callable[[], object] | None:
    """Return the derivative of a derivative of ..., by retrograd's forward mode."""
    import retrograd as rg

    name, order = call_of(row)
    if name != PROGRAMS[0] and order > NESTED:
        return None
    f, x, v = program(rg, name)

    def derivative(f: Callable) -> Callable:
        return lambda x: rg.func.jvp(f, (x,), (v,))[1]

    for _ in range(order):
        f = derivative(f)
    return lambda: f(x)


def jax(row: str, *, compiled: bool) -> Callable[[], object]:
    """Return derivatives by JAX's Taylor mode."""
    import jax
    import jax.numpy as jnp
    from jax.experimental.jet import jet

    name, order = call_of(row)
    f, x, v = program(jnp, name)
    zeros = [jnp.zeros_like(v)] * (order - 1)

    def run(x: Any) -> Any:
        return jet(f, (x,), ([v, *zeros],))

    run = jax.jit(run) if compiled else run
    return lambda: jax.block_until_ready(run(x))


CALLS: dict[str, Callable[[str], Callable[[], object] | None]] = {
    "jet": taylor,
    "nested jvp": nested,
    "JAX": partial(jax, compiled=False),
    "JAX, jit": partial(jax, compiled=True),
}


def cases(name: str, threads: int) -> Callable[[str], Case | None]:
    """Return a function from row to case in a subject's process; ImportError if the library is missing."""
    CALLS[name](f"{PROGRAMS[0]}, order 1")

    def case(row: str) -> Case | None:
        call = CALLS[name](row)
        return call and Case(call, lambda: [highest(call())])

    return case


def highest(found: Any) -> Any:
    """Return the derivative of the highest order, which Taylor modes return last."""
    import numpy as np

    while isinstance(found, tuple | list):
        found = found[-1]
    return found.detach().numpy() if hasattr(found, "detach") else np.asarray(found)


SUITE = Suite(
    "Derivatives of high order",
    __file__,
    {f"{name}, order {order}": {} for name in PROGRAMS for order in ORDERS},
    {"jet": Subject("retrograd"), "nested jvp": Subject("retrograd"), "JAX": JAX, "JAX, jit": JAX},
    cases,
    unit="us",
    ours="jet",
    tolerance=1e-3,  # cancellation grows with the order
)


def report(options: argparse.Namespace) -> list[Table]:
    """Return one table, without budgets."""
    return [run_suite(SUITE, options)]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 7), report, cases))
