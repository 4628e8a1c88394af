"""Time the kernels: activations, norms and losses, forward and backward, and Adam steps.

    python benchmarks/kernels.py [--rounds 15] [--only TEXT] [--json FILE] [--check]

The inputs are 8,192 rows of 512 elements in single precision; two threads.  In JAX, each call is compiled as a whole.
"""

import argparse
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from retrograd.bench import Case, Suite, Table, converter, library, main, parser, run_suite, subjects

SHAPE = (8192, 512)
BUDGET = 0.9  # of PyTorch's time
THREADS = 2


def array(*shape: int, seed: int = 0) -> np.ndarray:
    """Return normal samples, the same for every subject."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def layer_norm(m: ModuleType) -> Callable[[Any], Any]:
    """Return layer normalization with learned weights."""
    weight, bias = (m.from_numpy(array(SHAPE[1], seed=s)).requires_grad_(True) for s in (2, 3))
    return lambda x: m.nn.functional.layer_norm(x, SHAPE[1:], weight, bias)


def cross_entropy(m: ModuleType) -> Callable[[Any], Any]:
    """Return the cross entropy of 512 classes."""
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
BOTH_WAYS = " + backward"  # suffix of rows that include the backward pass
ROWS: dict[str, dict[str, float]] = {
    f"{name}{way}": {"PyTorch": BUDGET} for name in FUNCTIONS for way in ("", BOTH_WAYS)
}
ROWS |= {"bias gradient": {"PyTorch": BUDGET}, "Adam step": {"PyTorch": BUDGET}}


def adam(m: ModuleType) -> Callable[[], Any]:
    """Return an Adam step on one matrix."""
    p = m.from_numpy(array(*SHAPE)).requires_grad_(True)
    p.grad = m.from_numpy(array(*SHAPE, seed=1))
    optimizer = m.optim.Adam([p])

    def step() -> Any:
        optimizer.step()
        return p

    return step


def call_of(m: ModuleType, row: str) -> Callable[[], Any]:
    """Return a row's call; its result must agree between subjects."""
    if row == "Adam step":
        return adam(m)
    x, g = m.from_numpy(array(*SHAPE)), m.from_numpy(array(*SHAPE, seed=1))
    if row == "bias gradient":
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


def torch_case(m: ModuleType, row: str) -> Case:
    """Return a row's case in retrograd or PyTorch."""
    call = call_of(m, row)
    return Case(call, lambda: [converter(m)(call()).copy()])


def jax_function(name: str) -> Callable[[Any], Any]:
    """Return JAX's function for a name of retrograd's."""
    import jax
    import jax.numpy as jnp

    target = np.random.default_rng(1).integers(0, SHAPE[1], SHAPE[0])
    weight, bias = (array(SHAPE[1], seed=s) for s in (2, 3))

    def layer_norm(x: Any) -> Any:
        x = x - x.mean(1, keepdims=True)
        return x / jnp.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * weight + bias

    return {
        "softmax": lambda x: jax.nn.softmax(x, 1),
        "log_softmax": lambda x: jax.nn.log_softmax(x, 1),
        "cross_entropy": lambda x: -jnp.take_along_axis(jax.nn.log_softmax(x, 1), target[:, None], 1).mean(),
        "layer_norm": layer_norm,
        "gelu": lambda x: jax.nn.gelu(x, approximate=False),
        "gelu, tanh": jax.nn.gelu,
        "silu": jax.nn.silu,
        "sigmoid": jax.nn.sigmoid,
        "softplus": jax.nn.softplus,
    }[name]


def jax_case(row: str) -> Case | None:
    """Return a row's case in JAX, compiled as a whole."""
    import jax

    name = row.removesuffix(BOTH_WAYS)
    if name not in FUNCTIONS:
        return None
    function, x, g = jax_function(name), jax.numpy.asarray(array(*SHAPE)), jax.numpy.asarray(array(*SHAPE, seed=1))

    def back_too(x: Any, g: Any) -> Any:
        out, pull = jax.vjp(function, x)
        return out, pull(g if out.ndim else jax.numpy.ones_like(out))[0]

    compiled = jax.jit(back_too if row.endswith(BOTH_WAYS) else lambda x, g: (None, function(x)))

    def call() -> Any:
        return jax.block_until_ready(compiled(x, g))[1]

    return Case(call, lambda: [np.asarray(call())])


def cases(name: str, threads: int) -> Callable[[str], Case | None]:
    """Return a function from row to case in a subject's process."""
    m = library(name, threads)
    return jax_case if name == "JAX jit" else lambda row: torch_case(m, row)


SUITE = Suite(
    f"Kernels, {SHAPE[0]:,} x {SHAPE[1]} float32",
    __file__,
    ROWS,
    subjects("retrograd", "PyTorch", "JAX jit"),
    cases,
    threads=THREADS,
)


def report(options: argparse.Namespace) -> list[Table]:
    """Return one table."""
    return [run_suite(SUITE, options)]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 15), report, cases))
