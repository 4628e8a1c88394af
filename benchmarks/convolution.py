"""Time convolution, pooling, padding and resizing of images, forward and backward, next to PyTorch.

    python benchmarks/convolution.py [--rounds 9] [--only TEXT] [--json FILE] [--check]

retrograd and PyTorch, each a process with one thread, take turns.  A sample is one forward and backward pass in single
precision, with gradients of images and weight.

The speed of a convolution is limited by the matrix product of NumPy's BLAS, which is the last row.  An OpenBLAS that
does not recognize the processor uses kernels for older ones; OPENBLAS_CORETYPE=SKYLAKEX selects those with AVX-512.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from retrograd.bench import Case, Suite, Table, converter, library, main, parser, run_suite, subjects

BUDGET = 2.0  # of PyTorch's time, for each convolution
# Title: images, weight, params.
CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, int]]] = {
    "3x3, 64 channels, 56x56": ((32, 64, 56, 56), (64, 64, 3, 3), {"padding": 1}),
    "7x7, stride 2, 3 channels, 224x224": ((16, 3, 224, 224), (64, 3, 7, 7), {"stride": 2, "padding": 3}),
    "3x3, 256 channels, 14x14": ((32, 256, 14, 14), (256, 256, 3, 3), {"padding": 1}),
    "3x3, stride 2, 64 channels, 56x56": ((32, 64, 56, 56), (128, 64, 3, 3), {"stride": 2, "padding": 1}),
    "1x1, 128 channels, 28x28": ((32, 128, 28, 28), (128, 128, 1, 1), {}),
    "3x3 depthwise, 64 channels, 56x56": ((32, 64, 56, 56), (64, 1, 3, 3), {"padding": 1, "groups": 64}),
    "3x3, 16 groups, 64 channels": ((32, 64, 56, 56), (64, 4, 3, 3), {"padding": 1, "groups": 16}),
    "5x5, 1 channel, 28x28": ((256, 1, 28, 28), (8, 1, 5, 5), {}),
}
IMAGES = (32, 64, 56, 56)
OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "max_pool2d 2x2": lambda F, x: F.max_pool2d(x, 2),
    "max_pool2d 3x3, stride 2": lambda F, x: F.max_pool2d(x, 3, 2, 1),
    "avg_pool2d 2x2": lambda F, x: F.avg_pool2d(x, 2),
    "adaptive_avg_pool2d to 1x1": lambda F, x: F.adaptive_avg_pool2d(x, 1),
    "pad, reflect": lambda F, x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "interpolate x2, nearest": lambda F, x: F.interpolate(x, scale_factor=2),
    "interpolate x2, bilinear": lambda F, x: F.interpolate(x, scale_factor=2, mode="bilinear"),
}
PRODUCT = "1000x1000 matrix product"


def passes(m: ModuleType, function: Callable[..., Any], *shapes: tuple[int, ...]) -> Case:
    """Return one forward and backward pass of a function of tensors of these shapes."""
    drawn = np.random.default_rng(0)
    inputs = [m.from_numpy(drawn.standard_normal(s, np.float32)).requires_grad_() for s in shapes]
    g = m.ones_like(function(*inputs))

    def step() -> None:
        for x in inputs:
            x.grad = None
        function(*inputs).backward(g)

    def check() -> list:
        step()
        return [converter(m)(x.grad).copy() for x in inputs]

    return Case(step, check)


def cases(name: str, threads: int) -> Callable[[str], Case]:
    """Return a function from row to case in a subject's process."""
    m = library(name, threads)
    functional = m.nn.functional

    def case(row: str) -> Case:
        if row == PRODUCT:
            return Case(partial(m.matmul, m.randn(1000, 1000), m.randn(1000, 1000)))
        if row in OTHERS:
            return passes(m, partial(OTHERS[row], functional), IMAGES)
        images, weight, params = CONVOLUTIONS[row]
        return passes(m, partial(functional.conv2d, **params), images, weight, weight[:1])

    return case


SUITE = Suite(
    "Convolution, pooling and resizing, forward and backward",
    __file__,
    {row: {"PyTorch": BUDGET} if row in CONVOLUTIONS else {} for row in [*CONVOLUTIONS, *OTHERS, PRODUCT]},
    subjects("retrograd", "PyTorch"),
    cases,
)


def report(options: argparse.Namespace) -> list[Table]:
    """Return one table."""
    return [run_suite(SUITE, options)]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 5), report, cases))
