"""For compile.py: the matrix products of a compiled step alone, as the step computes them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.backend.traced_array import blank
from retrograd.compiler.program import Call
from retrograd.compiler.specialization import trace_call

PRODUCTS = ("matmul", "multiply_matrices")  # the ufuncs that compute them


def products_alone(program: Any) -> Callable[[], None] | None:
    """Return a function that computes all matrix products of a program; None if it has none.

    Each has operands and a result of its own, in the layouts of the program. The products inside other kernels, those
    of attention, convolutions and recurrent layers, are not among them.
    """
    calls = []
    for instruction in program.plan:
        trace = trace_call(instruction, program.layouts) if isinstance(instruction, Call) else None
        for step in () if trace is None else trace.steps:
            if isinstance(step.function, np.ufunc) and step.function.__name__ in PRODUCTS:
                operands = [_numbers(trace.layouts[operand]) for operand in step.operands]
                calls.append((step.function, operands, blank(*trace.layouts[step.results[0]])))

    def run() -> None:
        for function, operands, out in calls:
            function(*operands, out=out)

    return run if calls else None


def _numbers(layout: tuple) -> np.ndarray:
    """Return an array of a layout with normal numbers."""
    made = blank(*layout)
    made[...] = np.random.default_rng(0).standard_normal(made.shape)
    return made
