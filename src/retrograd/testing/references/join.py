"""Reference implementations of joining and repeating."""

import itertools

import numpy as np


def repeat_interleave(x, repeats, dim, output_size):
    if repeats is None:
        return np.array([i for i, n in enumerate(x) for _ in range(n)])
    return np.repeat(x, repeats, axis=dim)


def combinations(x, r, with_replacement):
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(choose(x, r))) if r else np.zeros(0)


def repeat_indices(repeats, output_size):
    return (
        repeat_interleave(repeats, None, 0, None)
        if repeats.ndim == 1
        else np.stack([repeat_interleave(row, None, 0, None) for row in repeats])
    )


def cartesian_prod(*tensors):
    return tensors[0] if len(tensors) == 1 else np.array([*itertools.product(*tensors)])


def combination_indices(n, r, with_replacement):
    return combinations(range(n), r, with_replacement)
