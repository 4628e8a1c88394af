"""Measure the memory of arrays and Python objects, which `tracemalloc` counts exactly, unlike resident memory."""

import tracemalloc
from collections.abc import Callable

WARM_UP = 3  # calls: .grad is None before the first, so a compiled step has two programs


def traced_peak(step: Callable[[], object]) -> int:
    """Return by how many bytes the peak of a step exceeds the memory before it, in a later call of it."""
    for _ in range(WARM_UP):
        step()
    tracemalloc.start()
    try:
        step()  # what it replaces in the measured call was allocated under the trace
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        step()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
