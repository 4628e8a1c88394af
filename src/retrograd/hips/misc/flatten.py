"""Flatten trees of arrays to vectors, and back."""

from collections.abc import Callable
from functools import wraps
from math import prod
from typing import Any

import optree

from retrograd import numpy as np
from retrograd.foundation.suggestions import suggest_in_module


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return all values of a tree of arrays as one vector, and the inverse function.

    Both are differentiable. Leaves of dicts are in the order of their keys.

    >>> vector, unflatten = flatten({"b": np.ones(2), "a": 3.0})
    >>> vector, unflatten(2 * vector)
    (array([3., 1., 1.]), {'b': array([2., 2.]), 'a': array(6.)})
    """
    leaves: list
    leaves, spec = optree.tree_flatten(value)
    shapes = [np.shape(leaf) for leaf in leaves]
    vector = np.concatenate([np.ravel(leaf) for leaf in leaves]) if leaves else np.array([])

    def unflatten(vector: Any) -> Any:
        parts, start = [], 0
        for shape in shapes:
            size = prod(shape)
            parts.append(np.reshape(vector[start : start + size], shape))
            start += size
        return optree.tree_unflatten(spec, parts)

    return vector, unflatten


def flatten_func(func: Callable, example: Any) -> tuple[Callable, Callable, Any]:
    """Return a function of trees as one of vectors, the unflattening function, and the example's vector."""
    vector, unflatten = flatten(example)

    @wraps(func)
    def of_vector(x: Any, *args: Any) -> Any:
        return flatten(func(unflatten(x), *args))[0]

    return of_vector, unflatten, vector


suggest_in_module(globals())
