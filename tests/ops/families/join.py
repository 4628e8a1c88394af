"""Reference implementations of joining and repeating."""

import itertools

import numpy as np


def repeated(x, repeats, dim, output_size):
    if repeats is None:
        return np.array([i for i, n in enumerate(x) for _ in range(n)])
    return np.repeat(x, repeats, axis=dim)


def combined(x, r, with_replacement):
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(choose(x, r))) if r else np.zeros(0)


ORACLES = {
    "repeat_places": lambda repeats, output_size: (
        repeated(repeats, None, 0, None)
        if repeats.ndim == 1
        else np.stack([repeated(row, None, 0, None) for row in repeats])
    ),
    "repeat_interleave": repeated,
    "cartesian_prod": lambda *tensors: tensors[0] if len(tensors) == 1 else np.array([*itertools.product(*tensors)]),
    "combination_places": lambda n, r, with_replacement: combined(range(n), r, with_replacement),
    "combinations": combined,
}
