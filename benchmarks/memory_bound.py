"""Time eager operators that are bound by memory bandwidth, with PyTorch.

    python benchmarks/memory_bound.py [--rounds 15] [--minima] [--json FILE] [--check]

Arrays of 4 million elements unless the row says otherwise; one thread, and two.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from retrograd.bench import Case, Suite, Table, converter, library, main, parser, run_suite, subjects

SIZE, SIDE = 1 << 22, 2048
Make = Callable[[ModuleType], Callable[[], Any]]


def normal(m: ModuleType, *shape: int) -> Any:
    """Return normal samples, the same for every subject."""
    return m.from_numpy(np.random.default_rng(len(shape)).standard_normal(shape, np.float32))


def both_ways(function: Callable[[Any], Any], x: Any, *more: Any) -> Callable[[], Any]:
    """Return forward and backward, with the gradients of x and of more leaves; results have the shape of x."""
    # No special direction: batch norm's gradient along its result is 0, and softmax's along equal numbers.
    g = (3 * x).cos()
    x.requires_grad_(True)

    def call() -> Any:
        for leaf in (x, *more):
            leaf.grad = None
        function(x).backward(g)
        return x.grad

    return call


# ------------------------------------------------------------------------------------------------------- chains


def chain(length: int, m: ModuleType, size: int = SIZE) -> Callable[[], Any]:
    """Return a chain of operators, each of which reads the result of the one before."""
    x, y = normal(m, size), normal(m, size)
    steps = [lambda z: z * y, lambda z: z + x, lambda z: z - 0.5, lambda z: z * 2.0, lambda z: -z]

    def call() -> Any:
        z = x + y
        for i in range(length - 1):
            z = steps[i % len(steps)](z)
        return z

    return call


def expression(m: ModuleType) -> Callable[[], Any]:
    """Return an expression whose intermediate results have no names."""
    a, b, c = normal(m, SIZE), normal(m, SIZE), normal(m, SIZE)
    return lambda: ((a * b + c) * 2.0 - a) / (b * b + 1.0)


def recorded_chain(m: ModuleType) -> Callable[[], Any]:
    """Return a chain that is recorded, with its backward."""
    y = normal(m, SIZE)
    return both_ways(lambda x: (x * y + y).tanh() * 0.5 - x, normal(m, SIZE))


# ---------------------------------------------------------------------------------------------- layers, reductions


def batch_norm(m: ModuleType) -> Callable[[], Any]:
    """Return batch normalization of images, forward and backward."""
    weight, bias = (normal(m, 64).requires_grad_(True) for _ in range(2))
    function = partial(m.nn.functional.batch_norm, running_mean=None, running_var=None, training=True)
    return both_ways(lambda x: function(x, weight=weight, bias=bias), normal(m, 16, 64, 56, 56), weight, bias)


def gelu(dtype: str, m: ModuleType) -> Callable[[], Any]:
    """Return gelu in a dtype, with its backward."""
    return both_ways(m.nn.functional.gelu, normal(m, *WIDE).to(getattr(m, dtype)))


def along(name: str, dim: int, shape: tuple[int, ...], m: ModuleType) -> Callable[[], Any]:
    """Return an operator along one dimension."""
    return partial(getattr(m, name), normal(m, *shape), dim)


def along_both_ways(name: str, dim: int, shape: tuple[int, ...], m: ModuleType) -> Callable[[], Any]:
    """Return an operator along one dimension, with its backward."""
    return both_ways(lambda x: getattr(m, name)(x, dim), normal(m, *shape))


def choice(m: ModuleType) -> Callable[[], Any]:
    """Return elements of one of two matrices."""
    x, y = normal(m, SIDE, SIDE), normal(m, SIZE).reshape(SIDE, SIDE)
    condition = x > y
    return lambda: m.where(condition, x, y)


def lerp(m: ModuleType) -> Callable[[], Any]:
    """Return two matrices interpolated by a third one."""
    x, y = normal(m, SIDE, SIDE), normal(m, SIZE).reshape(SIDE, SIDE)
    weight = x.sigmoid()
    return lambda: m.lerp(x, y, weight)


def elementwise(name: str, m: ModuleType) -> Callable[[], Any]:
    """Return a function of each element of a positive array."""
    return partial(getattr(m, name), normal(m, SIZE).abs() + 0.1)


def in_place(m: ModuleType) -> Callable[[], Any]:
    """Return an array written over by its logarithms' exponentials."""
    x = normal(m, SIZE).abs() + 0.1
    return lambda: x.log_().exp_()


def by_number(name: str, number: float, m: ModuleType) -> Callable[[], Any]:
    """Return an operator on an array and a number."""
    return partial(getattr(m, name), normal(m, SIZE), number)


def activation(name: str, m: ModuleType) -> Callable[[], Any]:
    """Return an activation function, with its backward."""
    return both_ways(getattr(m.nn.functional, name), normal(m, *WIDE))


def smooth_l1_loss(m: ModuleType) -> Callable[[], Any]:
    """Return the losses of all elements, with their backward."""
    function = partial(m.nn.functional.smooth_l1_loss, target=normal(m, SIZE).reshape(WIDE), reduction="none")
    return both_ways(function, normal(m, *WIDE))


def indices(m: ModuleType, *shape: int, high: int) -> Any:
    """Return random indices."""
    return m.from_numpy(np.random.default_rng(7).integers(0, high, shape))


def gather(m: ModuleType) -> Callable[[], Any]:
    """Return elements of a matrix along its rows."""
    x, index = normal(m, SIDE, SIDE), indices(m, SIDE, SIDE, high=SIDE)
    return lambda: m.gather(x, 1, index)


def columns(m: ModuleType) -> Callable[[], Any]:
    """Return some columns of a matrix."""
    x, index = normal(m, SIDE, SIDE), indices(m, SIDE, high=SIDE)
    return lambda: x[:, index]


def by_mask(name: str, m: ModuleType) -> Callable[[], Any]:
    """Return the positive elements of a matrix, or their indices."""
    x = normal(m, SIDE, SIDE)
    mask = x > 0
    return (lambda: x[mask]) if name == "elements" else mask.nonzero


def scatter_add(dim: int, m: ModuleType) -> Callable[[], Any]:
    """Return a matrix to whose elements others are added."""
    x, index, src = normal(m, SIDE, SIDE), indices(m, SIDE, SIDE, high=SIDE), normal(m, SIDE, SIDE) * 2
    return lambda: m.scatter_add(x, dim, index, src)


def index_add(m: ModuleType) -> Callable[[], Any]:
    """Return a matrix to whose rows others are added."""
    x, index, src = normal(m, SIDE, SIDE), indices(m, SIDE, high=SIDE), normal(m, SIDE, SIDE) * 2
    return lambda: m.index_add(x, 0, index, src)


def sort_values(dim: int, m: ModuleType) -> Callable[[], Any]:
    """Return sorted values; without its indices where the library has that."""
    x = normal(m, SIDE, SIDE)
    return lambda: m.sort(x, dim)[0]


def sort_without_indices(m: ModuleType) -> Callable[[], Any]:
    """Return the sorted values alone: `msort`."""
    x = normal(m, SIDE, SIDE)
    return lambda: m.msort(x)


def contiguous(order: tuple[int, ...], shape: tuple[int, ...], m: ModuleType) -> Callable[[], Any]:
    """Return an array with its dimensions in another order, also in memory."""
    x = normal(m, *shape).permute(*order)
    return lambda: x.contiguous()


def largest(k: int, m: ModuleType) -> Callable[[], Any]:
    """Return the k largest elements of each row."""
    x = normal(m, SIDE, SIDE)
    return lambda: m.topk(x, k)[0]


def cast(source: str, target: str, m: ModuleType) -> Callable[[], Any]:
    """Return an array converted to another dtype."""
    x = normal(m, SIZE).to(getattr(m, source))
    return lambda: x.to(getattr(m, target)) if target == "float32" else x.to(getattr(m, target)).to(m.float32)


def narrow_cast(target: str, m: ModuleType) -> Callable[[], Any]:
    """Return an array rounded to a narrower dtype."""
    x = normal(m, SIZE)
    return lambda: x.to(getattr(m, target))


def ragged_cumsum(m: ModuleType) -> Callable[[], Any]:
    """Return running sums over the ragged dimension of a batch; PyTorch loops over its components."""
    lengths = np.random.default_rng(0).integers(5, 200, 256)
    parts = [normal(m, int(n), 64) for n in lengths]
    if m.__name__ == "retrograd":
        x = m.nested.nested_tensor(parts, layout=m.jagged)
        return lambda: m.cumsum(x, 1)
    padded = m.nested.nested_tensor(parts, layout=m.jagged).to_padded_tensor(0.0)
    return lambda: m.cumsum(padded, 1)


WIDE, IMAGES = (8192, 512), (32, 64, 56, 56)
ROWS: dict[str, tuple[Make, float]] = {
    "chain of 5 operators": (partial(chain, 5), 1.0),
    "chain of 10 operators": (partial(chain, 10), 1.0),
    "chain of 10 operators, 65,536 elements": (partial(chain, 10, size=1 << 16), 1.0),
    "expression of 7 operators": (expression, 1.0),
    "chain of 5 operators + backward": (recorded_chain, 1.0),
    "batch_norm of images + backward": (batch_norm, 0.9),
    "silu": (lambda m: partial(m.nn.functional.silu, normal(m, *WIDE)), 0.9),
    "silu + backward": (lambda m: both_ways(m.nn.functional.silu, normal(m, *WIDE)), 0.9),
    "gelu + backward": (partial(gelu, "float32"), 0.9),
    "gelu + backward, float64": (partial(gelu, "float64"), 0.9),
    "leaky_relu + backward": (partial(activation, "leaky_relu"), 1.0),
    "relu6 + backward": (partial(activation, "relu6"), 1.0),
    "hardswish + backward": (partial(activation, "hardswish"), 1.0),
    "smooth_l1_loss + backward": (smooth_l1_loss, 1.2),
    **{name: (partial(elementwise, name), 1.0) for name in ("exp", "tanh", "log1p", "atan", "sqrt", "sign", "erfc")},
    "log_ and exp_": (in_place, 1.0),
    "where": (choice, 1.0),
    "lerp": (lerp, 1.0),
    "remainder by a number": (partial(by_number, "remainder", 0.7), 1.0),
    "floor_divide by a number": (partial(by_number, "floor_divide", 0.7), 1.0),
    "softmax along dimension 0": (partial(along, "softmax", 0, WIDE), 0.9),
    "softmax along dimension 0 + backward": (partial(along_both_ways, "softmax", 0, WIDE), 0.9),
    "softmax along channels of images": (partial(along, "softmax", 1, IMAGES), 0.9),
    "softmax along channels of images + backward": (partial(along_both_ways, "softmax", 1, IMAGES), 0.9),
    "log_softmax along dimension 0": (partial(along, "log_softmax", 0, WIDE), 0.9),
    "gather along rows": (gather, 1.0),
    "columns by index": (columns, 1.0),
    "elements by mask": (partial(by_mask, "elements"), 1.0),
    "nonzero": (partial(by_mask, "indices"), 1.0),
    "scatter_add along rows": (partial(scatter_add, 1), 1.0),
    "scatter_add along columns": (partial(scatter_add, 0), 1.0),
    "index_add": (index_add, 1.0),
    "msort": (sort_without_indices, 1.0),
    "sort along rows": (partial(sort_values, 1), 1.0),
    "sort along columns": (partial(sort_values, 0), 1.0),
    "the 5 largest of each row": (partial(largest, 5), 1.0),
    "transposed copy of a matrix": (partial(contiguous, (1, 0), (SIDE, SIDE)), 1.0),
    "copy of images with channels last": (partial(contiguous, (0, 2, 3, 1), IMAGES), 1.0),
    "copy of images with channels first": (partial(contiguous, (0, 3, 1, 2), (32, 56, 56, 64)), 1.0),
    "float32 to float16": (partial(narrow_cast, "float16"), 1.0),
    "float16 to float32": (partial(cast, "float16", "float32"), 1.0),
    "float32 to bfloat16": (partial(narrow_cast, "bfloat16"), 1.0),
    "bfloat16 to float32": (partial(cast, "bfloat16", "float32"), 1.0),
    "cumsum over the ragged dimension": (ragged_cumsum, 0.9),
    "cumsum along rows": (partial(along, "cumsum", 1, (SIDE, SIDE)), 1.0),
    "cumsum along columns": (partial(along, "cumsum", 0, (SIDE, SIDE)), 1.0),
}


def cases(name: str, threads: int) -> Callable[[str], Case]:
    """Return a function from row to case in a subject's process."""
    m = library(name, threads)

    def case(row: str) -> Case:
        call = ROWS[row][0](m)

        def check() -> list:
            found = call()
            return [] if "ragged" in row or "float16" in row else [converter(m)(found).copy()]

        return Case(call, check)

    return case


def suite(threads: int) -> Suite:
    """Return the suite with a number of threads."""
    rows = {row: {"PyTorch": budget} for row, (_, budget) in ROWS.items()}
    return Suite("Memory-bound operators", __file__, rows, subjects("retrograd", "PyTorch"), cases, threads=threads)


def report(options: argparse.Namespace) -> list[Table]:
    """Return a table for each number of threads."""
    return [run_suite(suite(threads), options) for threads in ([options.threads] if options.threads else [1, 2])]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 9), report, cases))
