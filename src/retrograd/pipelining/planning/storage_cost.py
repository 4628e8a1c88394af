"""Measure the cost of moving activations to a file and back."""

import time
from statistics import median

from retrograd.core import registry
from retrograd.interop.stored_arrays import StoredArrays
from retrograd.pipelining.planning.link_cost import LARGE, SMALL, LinearCost, fit_line
from retrograd.pipelining.transports import Transport

ROUNDS = 5


def storage_cost() -> LinearCost:
    """Measure the seconds of a move in one direction, from writing and reading temporary files of two sizes.

    >>> storage_cost().seconds(1000) > 0
    True
    """
    return fit_line(*(median(_seconds(size) for _ in range(ROUNDS)) for size in (SMALL, LARGE)))


def common_storage_cost(transport: Transport, ranks: int) -> LinearCost:
    """Return the cost of moves on the slowest rank, while all of them move."""
    found = transport.launch(transport.world or ranks, lambda _: tuple(storage_cost()))
    return LinearCost(*map(max, zip(*found, strict=True)))


def _seconds(size: int) -> float:
    """Return the seconds of a move of `size` bytes, the mean of both directions."""
    array = registry["ones"](size, dtype="uint8").value
    start = time.perf_counter()
    StoredArrays([array], []).load()
    return (time.perf_counter() - start) / 2
