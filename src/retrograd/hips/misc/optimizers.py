"""Gradient descent methods as functions; `grad(x, i)` takes a tree of arrays and the step's index.

Each calls `callback(x, i, g)` before a step, and returns the final tree. `retrograd.optim` has more optimizers.
"""

from collections.abc import Callable
from typing import Any

from retrograd import numpy as np
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.hips.misc.flatten import flatten


def _descend(grad: Callable, x0: Any, callback: Callable | None, num_iters: int, change: Callable) -> Any:
    """Return the tree after `num_iters` steps of `x + change(g, i)`."""
    x, unflatten = flatten(x0)
    for i in range(num_iters):
        slope = grad(unflatten(x), i)
        if callback is not None:
            callback(unflatten(x), i, slope)
        x = x + change(flatten(slope)[0], i)
    return unflatten(x)


def sgd(
    grad: Callable,
    x0: Any,
    callback: Callable | None = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Gradient descent with momentum: steps along a running mean of the gradient.

    >>> bool(np.all(np.abs(sgd(lambda x, i: 2 * x, np.ones(2))) < 1e-3))
    True
    """
    velocity = 0.0

    def change(g: Any, i: int) -> Any:
        nonlocal velocity
        velocity = mass * velocity - (1.0 - mass) * g
        return step_size * velocity

    return _descend(grad, x0, callback, num_iters, change)


def rmsprop(
    grad: Callable,
    x0: Any,
    callback: Callable | None = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Steps along the gradient divided by the root of the running mean of its square, which starts at one."""
    square = 1.0

    def change(g: Any, i: int) -> Any:
        nonlocal square
        square = gamma * square + (1 - gamma) * g**2
        return -step_size * g / (np.sqrt(square) + eps)

    return _descend(grad, x0, callback, num_iters, change)


def adam(
    grad: Callable,
    x0: Any,
    callback: Callable | None = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Adam (D. P. Kingma and J. Ba, https://arxiv.org/abs/1412.6980): bias-corrected running means of both."""
    mean = square = 0.0

    def change(g: Any, i: int) -> Any:
        nonlocal mean, square
        mean = b1 * mean + (1 - b1) * g
        square = b2 * square + (1 - b2) * g**2
        unbiased = mean / (1 - b1 ** (i + 1)), square / (1 - b2 ** (i + 1))
        return -step_size * unbiased[0] / (np.sqrt(unbiased[1]) + eps)

    return _descend(grad, x0, callback, num_iters, change)


suggest_in_module(globals())
