"""Decorator for kernels whose results may share memory with their operands."""

from collections.abc import Callable
from functools import wraps
from itertools import combinations
from typing import Any

import numpy as np


def separate(count: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for functions that write to their last `count` arguments before they have read all others.

    It copies operands that share memory with results.  Results that share memory with each other raise a ValueError.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any) -> Any:
            operands, results = args[:-count], args[-count:]
            written = [x for x in results if isinstance(x, np.ndarray)]
            if any(_share(x, y) for x, y in combinations(written, 2)):
                raise ValueError("the results share memory with each other")
            return function(*(x.copy() if any(_share(x, y) for y in written) else x for x in operands), *results)

        return call

    return decorate


def _share(x: Any, y: np.ndarray) -> bool:
    """Return whether x is an array that shares an element with y."""
    return isinstance(x, np.ndarray) and np.may_share_memory(x, y) and np.shares_memory(x, y)
